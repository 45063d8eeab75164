"""How a schedule stands devices that are slow, by chance or always, and slow paths between them.

Every device runs the same order on its own compute stream. A permute leaves when its source comes to the start; other
collectives begin when the last of their group does. Compute and transfers take as long as they do undisturbed, where
they share links and memory (`engine.simulate.simulator`): what is asked is how waiting spreads. That devices out of
step share links with others than undisturbed is left out. A transfer that loop state carries into the next iteration
is waited for as long as undisturbed.
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
from engine.simulate.run import Call, CallPlan, ComputationRun, Stretch
from engine.simulate.simulator import simulate_computations

_ALIKE = 32
"""Iterations that run alike of which as many are simulated one by one; the others take as long as the last half of
these on average."""


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
    slow = [d for d, _ in disturbance.slow_devices]
    for device in (*slow, *(d for a, b, _ in disturbance.slow_paths for d in (a, b))):
        if not 0 <= device < devices:
            what = f"device {device} cannot be slow" if device in slow else f"no path leads to or from device {device}"
            raise UsageError(f"{what}: the module runs on devices 0 to {devices - 1}")
    runs = simulate_computations(program, schedule, control=control.part(0.0, 0.2))
    entry = runs[program.module.proto.entry_computation_id]
    calm = _Devices(program, Disturbance(), control.part(0.2, 0.4))
    disturbed = _Devices(program, disturbance, control.part(0.4, 1.0))
    undisturbed = calm.execute(entry, np.zeros(devices, dtype=np.int64))
    finish = disturbed.execute(entry, np.zeros(devices, dtype=np.int64))
    for column in (finish, disturbed.exposed):
        column.flags.writeable = False
    work = float(disturbed.busy.max()) / float(calm.busy.max()) if calm.busy.max() else 1.0
    return Spread(finish, disturbed.exposed, int(undisturbed.max()), work)


_Arrival = Callable[[Ints, int], Ints]
"""From the time at which each device comes to a transfer, and how long that takes undisturbed, to the time at which it
has it."""


@dataclass(eq=False)
class _Devices:
    program: Program
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
        self._arrivals: dict[int, _Arrival] = {}

    def execute(self, run: ComputationRun, now: Ints) -> Ints:
        """Run one computation that each device reaches at its own time; when each leaves it."""
        work = run.plan.work
        arrived: dict[int, Ints] = {}
        for node in run.plan.order.nodes.tolist():
            if work.waits[node] in arrived:
                now = self._wait(now, arrived.pop(work.waits[node]))
            elif run.start[node] > run.reached[node]:
                now = self._wait(now, now + int(run.start[node] - run.reached[node]))
            sends = work.transfer[node] > 0
            if work.compute[node]:
                now = now + self._computing(int((run.depart if sends else run.end)[node] - run.start[node]))
            if sends:
                arrival = self._arrival(int(work.graph.ids[node]))(now, _duration(run, node))
                if node in work.blocking:
                    now = self._wait(now, arrival)
                else:
                    arrived[node] = arrival
            if node in run.calls:
                now = self._call(run.plan.calls[node], run.calls[node], now)
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

    def _call(self, plan: CallPlan, call: Call, now: Ints) -> Ints:
        if len(plan.branches) > 1:
            return self._either(plan, now)
        for stretch in call.stretches:
            now = self._repeat(stretch, now)
        return now

    def _either(self, plan: CallPlan, now: Ints) -> Ints:
        """The mean over a conditional's branches, rounded up as the simulator does."""
        before = np.stack([now, self.exposed, self.busy])
        passed, weight = np.zeros_like(before), 0
        for branch_weight, runs in plan.branches:
            after = now
            for run in runs:
                after = self.execute(run, after)
            passed += branch_weight * (np.stack([after, self.exposed, self.busy]) - before)
            weight += branch_weight
            self.exposed, self.busy = before[1].copy(), before[2].copy()
        mean: Ints = before - (-passed // weight)
        now, self.exposed, self.busy = mean
        return now

    def _repeat(self, stretch: Stretch, now: Ints) -> Ints:
        times: list[Ints] = []
        simulated = min(stretch.count, _ALIKE)
        for iteration in range(simulated):
            self.control.step(iteration / simulated, "simulating every device")
            exposed, busy, after = self.exposed.copy(), self.busy.copy(), now
            for run in stretch.runs:
                after = self.execute(run, after)
            if stretch.copies:
                after = after + self._computing(stretch.copies)
            times.append(np.stack([after - now, self.exposed - exposed, self.busy - busy]))
            now = after
        left = stretch.count - simulated
        if left > 0:
            usual = np.mean(times[_ALIKE // 2 :], axis=0)
            # Devices that exchange anything keep pace with each other in the long run.
            usual[0] = usual[0].max() if self._arrivals else usual[0]
            more = np.rint(usual * left).astype(np.int64)
            now = now + more[0]
            self.exposed += more[1]
            self.busy += more[2]
        return now

    def _arrival(self, instruction: int) -> _Arrival:
        if instruction not in self._arrivals:
            self._arrivals[instruction] = self._plan(self._wrapped(self.program.module.instructions[instruction]))
        return self._arrivals[instruction]

    def _wrapped(self, proto: HloInstructionProto) -> HloInstructionProto:
        if proto.opcode != "async-start":
            return proto
        module = self.program.module
        return module.instructions[module.computations[proto.called_computation_ids[0]].root_id]

    def _plan(self, proto: HloInstructionProto) -> _Arrival:
        header = self.program.module.header
        if proto.opcode.startswith("collective-permute"):
            pairs = np.array(pairs_of(proto, header), dtype=np.int64).reshape(-1, 2)
            return _permute(pairs, self._paths(pairs))
        if proto.opcode.startswith(("all-", "reduce-scatter", "ragged-all", "collective-broadcast")):
            groups = [np.array(group, dtype=np.int64) for group in device_groups(proto, header)]
            return _together(groups, [self._slowest(group) for group in groups])
        return lambda now, time: now + time

    def _paths(self, pairs: Ints) -> npt.NDArray[np.float64]:
        factors = np.ones(len(pairs))
        for one, other, factor in self.disturbance.slow_paths:
            both = ((pairs == (one, other)) | (pairs == (other, one))).all(axis=1)
            factors[both] = np.maximum(factors[both], factor)
        return factors

    def _slowest(self, group: Ints) -> float:
        members = set(group.tolist())
        return max((f for a, b, f in self.disturbance.slow_paths if a in members and b in members), default=1.0)


def _duration(run: ComputationRun, node: int) -> int:
    """Picoseconds of a transfer undisturbed; alone, where it outlives its computation."""
    over = int(run.arrive[node])
    return over - int(run.depart[node]) if over >= 0 else run.plan.work.transfer[node]


def _permute(pairs: Ints, factors: npt.NDArray[np.float64]) -> _Arrival:
    def arrive(now: Ints, time: int) -> Ints:
        arrived = now.copy()
        done = now[pairs[:, 0]] + np.rint(time * factors).astype(np.int64)
        np.maximum.at(arrived, pairs[:, 0], done)
        np.maximum.at(arrived, pairs[:, 1], done)
        return arrived

    return arrive


def _together(groups: Sequence[Ints], factors: Sequence[float]) -> _Arrival:
    def arrive(now: Ints, time: int) -> Ints:
        arrived = now.copy()
        for group, factor in zip(groups, factors, strict=True):
            arrived[group] = now[group].max(initial=0) + round(time * factor)
        return arrived

    return arrive
