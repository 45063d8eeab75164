"""Checks a proto for what XLA's parser lets through and its later stages abort on, or run with silent nonsense.

Structure is checked here: ids, order, calls, parameters, carried shapes. What one opcode asks of its operands is in
`engine.hlo.operands`. An error names the instruction and its computation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine.errors import InputError
from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, HloModuleProto, ShapeProto
from engine.hlo.operands import BY_SHAPES, OPERAND_CHECKS
from engine.ir import shapes

DEEPEST = 64
"""Deepest nesting of tuple types: XLA's own protos cannot be read back much beyond it."""

COUNTED = 20
"""Problems looked for before giving up: the first is shown, the rest counted."""

_FUSION_LIKE = frozenset({"fusion", "call"})
_REDUCING = frozenset({"reduce", "reduce-scatter", "all-reduce", "all-reduce-start"})


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one instruction."""

    computation: str
    instruction: str
    message: str

    def __str__(self) -> str:
        return f"{self.instruction} in {self.computation}: {self.message}"


def verify(proto: HloModuleProto, path: str) -> None:
    """Raises InputError with the first problem of the module, and how many there are."""
    found = []
    for problem in problems(proto):
        found.append(problem)
        if len(found) == COUNTED:
            break
    if not found:
        return
    more = f" (and {len(found) - 1}{'+' if len(found) == COUNTED else ''} more problems)" if len(found) > 1 else ""
    raise InputError(f"{path}: the module is not valid HLO: {found[0]}{more}")


def problems(proto: HloModuleProto) -> Iterator[Problem]:
    """Everything found wrong, in the proto's order. Later checks of an instruction rely on the earlier ones."""
    if not proto.computations:
        yield Problem(proto.name, "the module", "it has no computations")
        return
    done: dict[int, _Callee] = {}
    seen = _Seen()
    for computation in proto.computations:
        yield from _computation(computation, done, seen)
    entry = done.get(proto.entry_computation_id)
    if entry is None:
        yield Problem(proto.name, "the module", f"its entry computation {proto.entry_computation_id} does not exist")
        return
    if len(set(seen.names)) < len(seen.names):
        for name, count in Counter(seen.names).items():
            if count > 1:
                yield Problem(proto.name, name, f"{count} instructions have this name")
    yield from _entry(proto, entry)
    yield from _schedule(proto, done)


@dataclass(slots=True)
class _Seen:
    """What was looked at so far: large modules hold the same few shapes, and the same few sums of them, all over."""

    ids: set[int] = field(default_factory=set)
    names: list[str] = field(default_factory=list)
    shapes: set[bytes] = field(default_factory=set)
    """Serialised, and found good."""
    alike: set[tuple[object, ...]] = field(default_factory=set)
    """Opcode, shape and operands' shapes of what was found good and is judged by these alone."""


@dataclass(frozen=True, slots=True)
class _Callee:
    """A computation that was looked at, as its callers see it."""

    proto: HloComputationProto
    parameters: Mapping[int, ShapeProto]
    """By number."""
    result: ShapeProto | None
    """None where its root does not exist."""

    @property
    def name(self) -> str:
        return self.proto.name


def _computation(computation: HloComputationProto, done: dict[int, _Callee], seen: _Seen) -> Iterator[Problem]:
    """Problems of one computation, which is then one of `done`."""
    known: dict[int, tuple[ShapeProto, bytes]] = {}
    parameters: list[HloInstructionProto] = []
    instructions = list(computation.instructions)  # wrappers are made anew on every pass otherwise
    if not instructions:
        yield Problem(computation.name, "the computation", "it has no instructions")
    for instruction in instructions:
        id_, opcode, shape = instruction.id, instruction.opcode, instruction.shape
        written = shape.SerializeToString()
        operands = list(instruction.operand_ids)
        key = None
        if opcode in BY_SHAPES and not (instruction.control_predecessor_ids or instruction.called_computation_ids):
            key = (opcode, written, *[known[o][1] if o in known else None for o in operands])
        elif opcode == "parameter":
            parameters.append(instruction)
        if key not in seen.alike or id_ in seen.ids:
            found = _instruction(instruction, (shape, written), operands, known, instructions, done, seen)
            message = next(found, None)
            if message is not None:
                yield Problem(computation.name, instruction.name, message)
            elif key is not None:
                seen.alike.add(key)
        known[id_] = shape, written
        seen.ids.add(id_)
        seen.names.append(instruction.name)
    result = known.get(computation.root_id)
    done[computation.id] = _Callee(
        computation, {p.parameter_number: p.shape for p in parameters}, result[0] if result is not None else None
    )
    if not instructions:
        return
    if result is None:
        yield Problem(computation.name, "the computation", f"its root {computation.root_id} does not exist")
    yield from _parameters(computation.name, parameters)


def _instruction(
    instruction: HloInstructionProto,
    shape: tuple[ShapeProto, bytes],
    operand_ids: Sequence[int],
    known: Mapping[int, tuple[ShapeProto, bytes]],
    beside: Sequence[HloInstructionProto],
    done: Mapping[int, _Callee],
    seen: _Seen,
) -> Iterator[str]:
    """Problems of one instruction; only the first is of interest, since later checks rely on earlier ones.

    `shape` is its shape, and the same serialised, as `known` has them of what came before; `beside` is all of its
    computation.
    """
    if instruction.id in seen.ids:
        yield f"its id {instruction.id} is taken"
    if shape[1] not in seen.shapes:
        yield from _shape(shape[0])
        seen.shapes.add(shape[1])
    for operand in operand_ids:
        if operand not in known:
            later = any(i.id == operand for i in beside)
            yield f"its operand {operand} does not {'come before it' if later else 'exist'}"
    for predecessor in instruction.control_predecessor_ids:
        if predecessor not in known and all(i.id != predecessor for i in beside):
            yield f"its control predecessor {predecessor} does not exist"
    called = list(instruction.called_computation_ids)
    for callee in called:
        if callee not in done:
            yield f"the computation {callee} that it calls does not exist or does not come before its caller"
    operands = [known[o][0] for o in operand_ids]
    check = OPERAND_CHECKS.get(instruction.opcode)
    if check is not None:
        yield from check(instruction, operands)
    yield from _calls(instruction, operands, [done[c] for c in called])


def _shape(shape: ShapeProto) -> Iterator[str]:
    stack = [(shape, 0)]
    while stack:
        part, depth = stack.pop()
        if depth > DEEPEST:
            yield f"its type nests tuples more than {DEEPEST} deep"
            return
        if not shapes.is_known(part.element_type):
            yield f"its element type {int(part.element_type)} is not known to this version"
        if any(d < 0 for d in part.dimensions):
            yield f"its shape {shapes.text(part)} has a negative dimension"
        minor_to_major = part.layout.minor_to_major
        if minor_to_major and sorted(minor_to_major) != list(range(len(part.dimensions))):
            yield f"the layout {list(minor_to_major)} of its shape {shapes.text(part)} is no permutation"
        stack.extend((inner, depth + 1) for inner in part.tuple_shapes)


def _calls(instruction: HloInstructionProto, operands: list[ShapeProto], callees: list[_Callee]) -> Iterator[str]:
    opcode = instruction.opcode
    if opcode == "while":
        yield from _while(instruction, operands, callees)
    elif opcode in _FUSION_LIKE:
        if len(callees) != 1:
            yield f"it calls {len(callees)} computations, expected one"
        else:
            yield from _called_with(callees[0], operands)
            yield from _gives(callees[0], instruction.shape)
    elif opcode == "conditional":
        yield from _conditional(instruction, operands, callees)
    elif opcode == "async-start":
        if len(callees) != 1:
            yield f"it calls {len(callees)} computations, expected one"
        else:
            yield from _called_with(callees[0], operands)
    elif opcode in _REDUCING:
        yield from _reducer(instruction, operands, callees)


def _while(instruction: HloInstructionProto, operands: list[ShapeProto], callees: list[_Callee]) -> Iterator[str]:
    if len(operands) != 1 or len(callees) != 2:
        yield f"expected one operand, a body and a condition, found {len(operands)} operands and {len(callees)} calls"
        return
    body, condition = callees
    carried = operands[0]
    if not shapes.same(instruction.shape, carried):
        yield f"its shape {shapes.text(instruction.shape)} is not that of its initial value {shapes.text(carried)}"
    for callee in callees:
        yield from _called_with(callee, [carried])
    yield from _gives(body, carried)
    given = condition.result
    if given is not None and shapes.text(given) != "pred[]":
        yield f"its condition {condition.name} gives {shapes.text(given)}, expected pred[]"


def _conditional(instruction: HloInstructionProto, operands: list[ShapeProto], callees: list[_Callee]) -> Iterator[str]:
    if len(callees) < 1 or len(operands) != len(callees) + 1:
        yield f"expected an index and an operand for each of {len(callees)} branches, found {len(operands)} operands"
        return
    for callee, operand in zip(callees, operands[1:], strict=True):
        yield from _called_with(callee, [operand])
        yield from _gives(callee, instruction.shape)


def _reducer(instruction: HloInstructionProto, operands: list[ShapeProto], callees: list[_Callee]) -> Iterator[str]:
    if len(callees) != 1:
        yield f"it calls {len(callees)} computations, expected one reducer"
        return
    expected = len(operands) if instruction.opcode == "reduce" else 2
    found = len(callees[0].parameters)
    if found != expected:
        yield f"its reducer {callees[0].name} takes {found} parameters, expected {expected}"


def _called_with(callee: _Callee, operands: list[ShapeProto]) -> Iterator[str]:
    wanted = callee.parameters
    if len(wanted) != len(operands):
        yield f"it passes {len(operands)} operands to {callee.name}, which takes {len(wanted)}"
        return
    for k, operand in enumerate(operands):
        parameter = wanted.get(k)
        if parameter is not None and not shapes.same(parameter, operand):
            yield f"operand {k} is {shapes.text(operand)}, but {callee.name} takes {shapes.text(parameter)}"


def _gives(callee: _Callee, expected: ShapeProto) -> Iterator[str]:
    given = callee.result
    if given is not None and not shapes.same(given, expected):
        yield f"{callee.name} gives {shapes.text(given)}, expected {shapes.text(expected)}"


def _parameters(computation: str, parameters: Sequence[HloInstructionProto]) -> Iterator[Problem]:
    taken: dict[int, str] = {}
    for parameter in parameters:
        number = parameter.parameter_number
        if number in taken:
            message = f"parameter number {number} is that of {taken[number]} as well"
            yield Problem(computation, parameter.name, message)
        elif not 0 <= number < len(parameters):
            missing = next(k for k in range(len(parameters) + 1) if all(p.parameter_number != k for p in parameters))
            message = f"it is parameter({number}), but there is no parameter({missing})"
            yield Problem(computation, parameter.name, message)
        taken[number] = parameter.name


def _entry(proto: HloModuleProto, entry: _Callee) -> Iterator[Problem]:
    """The entry layout in the header against the entry computation."""
    if not proto.HasField("host_program_shape"):
        return
    layout = proto.host_program_shape
    parameters = entry.parameters
    if len(layout.parameters) != len(parameters):
        message = f"the entry layout has {len(layout.parameters)} parameters, the entry computation {len(parameters)}"
        yield Problem(entry.name, "the entry layout", message)
        return
    for k, declared in enumerate(layout.parameters):
        if k in parameters and not shapes.same(declared, parameters[k]):
            message = f"parameter {k} is {shapes.text(declared)} there, but {shapes.text(parameters[k])} in the entry"
            yield Problem(entry.name, "the entry layout", message)
    result = entry.result
    if result is not None and not shapes.same(layout.result, result):
        message = f"the result is {shapes.text(layout.result)} there, but {shapes.text(result)} in the entry"
        yield Problem(entry.name, "the entry layout", message)


def _schedule(proto: HloModuleProto, computations: Mapping[int, _Callee]) -> Iterator[Problem]:
    """Every sequence holds each instruction once, after its operands and control predecessors."""
    for id_, sequence in proto.schedule.sequences.items():
        if id_ not in computations:
            yield Problem(proto.name, "the schedule", f"it orders computation {id_}, which does not exist")
            continue
        computation = computations[id_].proto
        position = {instruction: k for k, instruction in enumerate(sequence.instruction_ids)}
        ids = {i.id for i in computation.instructions}
        if position.keys() != ids or len(sequence.instruction_ids) != len(ids):
            message = f"it lists {len(sequence.instruction_ids)} instructions, the computation has {len(ids)}"
            yield Problem(computation.name, "the schedule", message)
            continue
        for instruction in computation.instructions:
            before = (*instruction.operand_ids, *instruction.control_predecessor_ids)
            late = next((o for o in before if position.get(o, -1) > position[instruction.id]), None)
            if late is not None:
                yield Problem(computation.name, instruction.name, "the schedule places it before what it needs")
