"""How a schedule stands devices that are slow, by chance or always, and slow paths between them.

Every device runs the same order on its own compute stream. A permute leaves when its source comes to the start; other
collectives begin when the last of their group does. Transfers run at full speed: what is asked is how waiting
spreads, not how links are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.control import QUIET, Control
from engine.cost.collectives import pairs_of
from engine.cost.program import Program
from engine.errors import UsageError
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.graph import Ints
from engine.ir.groups import device_groups
from engine.schedule.problem import Schedule
from engine.simulate.copies import copy_time
from engine.simulate.plan import branch_weights, callers
from engine.simulate.work import Work, work_of

_ALIKE = 32
"""Iterations of a loop that are simulated one by one; the others take as long as the last half of these on average."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What goes wrong."""

    jitter: float = 0.0
    """Standard deviation of each instruction's compute time on each device, as a part of that time; never faster than
    half of it."""
    slow_devices: tuple[tuple[int, float], ...] = ()
    """(device, factor on its compute times)."""
    slow_paths: tuple[tuple[int, int, float], ...] = ()
    """(device, device, factor on the time of transfers between them, both ways)."""
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Spread:
    """The program on all devices. Times are picoseconds, arrays have shape [devices] and are read-only."""

    finish: Ints
    """When each device is done."""
    exposed: Ints
    """How long each waited for transfers."""
    undisturbed: int
    """When all would be done if nothing went wrong, by the same simulation."""
    worst: float
    """How much longer the slowest device's own work takes than undisturbed: what cannot be hidden."""

    @property
    def slowdown(self) -> float:
        """Time of the last device over the undisturbed time."""
        return int(self.finish.max()) / self.undisturbed if self.undisturbed else 1.0


def spread(program: Program, schedule: Schedule, disturbance: Disturbance, control: Control = QUIET) -> Spread:
    """Simulate `program` on each of the devices that its module runs on.

    Raises UsageError for a device that the module does not run on.
    """
    devices = program.module.header.devices
    named = [d for d, _ in disturbance.slow_devices] + [d for a, b, _ in disturbance.slow_paths for d in (a, b)]
    for device in named:
        if not 0 <= device < devices:
            raise UsageError(f"device {device} cannot be slow: the module runs on devices 0 to {devices - 1}")
    calm = _Devices(program, schedule, Disturbance(), control.part(0.0, 0.3))
    disturbed = _Devices(program, schedule, disturbance, control.part(0.3, 1.0))
    entry = program.module.proto.entry_computation_id
    undisturbed = calm.execute(entry, np.zeros(devices, dtype=np.int64))
    finish = disturbed.execute(entry, np.zeros(devices, dtype=np.int64))
    for column in (finish, disturbed.exposed):
        column.flags.writeable = False
    work = float(disturbed.busy.max()) / float(calm.busy.max()) if calm.busy.max() else 1.0
    return Spread(finish, disturbed.exposed, int(undisturbed.max()), work)


_Arrival = Callable[[Ints], Ints]
"""From the time at which each device comes to a transfer to the time at which it has it."""


@dataclass(eq=False)
class _Devices:
    program: Program
    schedule: Schedule
    disturbance: Disturbance
    control: Control
    exposed: Ints = field(init=False)
    busy: Ints = field(init=False)

    def __post_init__(self) -> None:
        self._count = self.program.module.header.devices
        self.exposed = np.zeros(self._count, dtype=np.int64)
        self.busy = np.zeros(self._count, dtype=np.int64)
        self._random = np.random.Generator(np.random.PCG64(self.disturbance.seed))
        self._factor = np.ones(self._count)
        for device, factor in self.disturbance.slow_devices:
            self._factor[device] = factor
        self._works: dict[int, Work] = {}
        self._arrivals: dict[int, _Arrival] = {}

    def execute(self, computation: int, now: Ints) -> Ints:
        """Run one computation that each device reaches at its own time; when each leaves it."""
        if computation not in self._works:
            self._works[computation] = work_of(self.program, computation)
        work = self._works[computation]
        calling = set(callers(work.graph))
        arrived: dict[int, Ints] = {}
        for node in self.schedule.orders[computation].nodes.tolist():
            if work.waits[node] in arrived:
                now = self._wait(now, arrived.pop(work.waits[node]))
            if work.compute[node]:
                now = now + self._computing(work.compute[node])
            if work.transfer[node]:
                arrival = self._arrival(int(work.graph.ids[node]), work.transfer[node])(now)
                if node in work.blocking:
                    now = self._wait(now, arrival)
                else:
                    arrived[node] = arrival
            if node in calling:
                now = self._call(work, node, now)
        return now

    def _wait(self, now: Ints, arrival: Ints) -> Ints:
        until = np.maximum(now, arrival)
        self.exposed += until - now
        return until

    def _computing(self, time: int) -> Ints:
        factor = self._factor
        if self.disturbance.jitter:
            factor = factor * np.maximum(0.5, self._random.normal(1.0, self.disturbance.jitter, self._count))
        taken: Ints = np.rint(time * factor).astype(np.int64)
        self.busy += taken
        return taken

    def _call(self, work: Work, node: int, now: Ints) -> Ints:
        graph = work.graph
        called = [int(c) for c in graph.called.of(node)]
        if graph.opcodes[node] == "while":
            body, condition = called
            copies = copy_time(self.program, body, self.schedule.orders[body])
            now = self._iterate(body, condition, copies, self.program.trips[int(graph.ids[node])], now)
            return self.execute(condition, now)
        ends = [self.execute(callee, now) for callee in called]
        if graph.opcodes[node] == "conditional":
            weights = branch_weights(self.program, graph, node)
            mean: Ints = np.average(ends, axis=0, weights=weights).astype(np.int64)
            return mean
        return ends[-1]

    def _iterate(self, body: int, condition: int, copies: int, trips: int, now: Ints) -> Ints:
        times: list[Ints] = []
        for iteration in range(min(trips, _ALIKE)):
            self.control.step(iteration / min(trips, _ALIKE), "simulating every device")
            exposed, busy = self.exposed.copy(), self.busy.copy()
            after = self.execute(body, self.execute(condition, now))
            if copies:
                after = after + self._computing(copies)
            times.append(np.stack([after - now, self.exposed - exposed, self.busy - busy]))
            now = after
        left = trips - len(times)
        if left > 0:
            usual = np.mean(times[_ALIKE // 2 :], axis=0)
            # Devices that exchange anything keep pace with each other in the long run.
            usual[0] = usual[0].max() if self._arrivals else usual[0]
            more = np.rint(usual * left).astype(np.int64)
            now = now + more[0]
            self.exposed += more[1]
            self.busy += more[2]
        return now

    def _arrival(self, instruction: int, time: int) -> _Arrival:
        if instruction not in self._arrivals:
            proto = self.program.module.instructions[instruction]
            self._arrivals[instruction] = self._plan(self._wrapped(proto), time)
        return self._arrivals[instruction]

    def _wrapped(self, proto: HloInstructionProto) -> HloInstructionProto:
        if proto.opcode != "async-start":
            return proto
        module = self.program.module
        return module.instructions[module.computations[proto.called_computation_ids[0]].root_id]

    def _plan(self, proto: HloInstructionProto, time: int) -> _Arrival:
        header = self.program.module.header
        if proto.opcode.startswith("collective-permute"):
            pairs = np.array(pairs_of(proto, header), dtype=np.int64).reshape(-1, 2)
            return _permute(pairs, np.rint(time * self._paths(pairs)).astype(np.int64))
        if proto.opcode.startswith(("all-", "reduce-scatter", "ragged-all", "collective-broadcast")):
            groups = [np.array(group, dtype=np.int64) for group in device_groups(proto, header)]
            return _together(groups, [round(time * self._slowest(group)) for group in groups])
        return lambda now: now + time

    def _paths(self, pairs: Ints) -> npt.NDArray[np.float64]:
        factors = np.ones(len(pairs))
        for one, other, factor in self.disturbance.slow_paths:
            both = ((pairs == (one, other)) | (pairs == (other, one))).all(axis=1)
            factors[both] = np.maximum(factors[both], factor)
        return factors

    def _slowest(self, group: Ints) -> float:
        members = set(group.tolist())
        return max((f for a, b, f in self.disturbance.slow_paths if a in members and b in members), default=1.0)


def _permute(pairs: Ints, times: Ints) -> _Arrival:
    def arrive(now: Ints) -> Ints:
        arrived = now.copy()
        done = now[pairs[:, 0]] + times
        np.maximum.at(arrived, pairs[:, 0], done)
        np.maximum.at(arrived, pairs[:, 1], done)
        return arrived

    return arrive


def _together(groups: Sequence[Ints], times: Sequence[int]) -> _Arrival:
    def arrive(now: Ints) -> Ints:
        arrived = now.copy()
        for group, time in zip(groups, times, strict=True):
            arrived[group] = now[group].max(initial=0) + time
        return arrived

    return arrive
