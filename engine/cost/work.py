"""What one instruction does, whatever the machine: matmuls, element-wise operations, elements and bytes moved.

A fused computation is read backwards from its result: what no one asks for is neither computed nor read, so that a
slice of a parameter costs the slice, a pad costs what is not padding, and an update in place costs the update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import log2, prod

from engine.cost.matmul import Matmul, library_matmul, matmul_of
from engine.hlo.hlo_pb2 import HloComputationProto, HloInstructionProto, ShapeProto
from engine.ir import shapes
from engine.ir.module import Module
from engine.ir.opcodes import MATMULS

FREE = frozenset(
    {
        "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "partition-id", "replica-id", "after-all",
        "opt-barrier", "add-dependency", "get-dimension-size", "domain",
    }
)  # fmt: skip
"""Opcodes that cost nothing."""
_SLICING = frozenset({"slice", "dynamic-slice", "gather"})
TRANSCENDENTAL = frozenset(
    {
        "acos", "acosh", "asin", "asinh", "atan2", "atanh", "cbrt", "cosh", "cosine", "divide", "erf", "exponential",
        "exponential-minus-one", "log", "log-plus-one", "logistic", "power", "remainder", "rsqrt", "sine", "sinh",
        "sqrt", "tan", "tanh",
    }
)  # fmt: skip
"""What is looked up or iterated for, not computed in one operation."""
MOVES = frozenset(
    {
        "copy", "transpose", "reshape", "broadcast", "concatenate", "pad", "reverse", "iota", "bitcast", "tuple",
        "get-tuple-element", "parameter", "constant", "dynamic-update-slice", *_SLICING,
    }
)  # fmt: skip
REDUCING = frozenset({"reduce", "reduce-window", "select-and-scatter"})
SORTING = frozenset({"fft", "sort", "topk"})
"""What takes about n·log n operations."""
_SENT = frozenset(
    {
        "all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute", "ragged-all-to-all",
        "reduce-scatter",
    }
)  # fmt: skip
"""Collectives: inside a fusion they travel while it computes, as in an asynchronous collective fusion of TPUs."""
_BY_ALL = MATMULS | {"custom-call", "fusion"}
"""Opcodes whose work is not decided by shapes alone."""
_GROUP_SIZES = 2
"""Operand of a ragged-dot: a few numbers, which no window holds."""
_WORD = 32
"""Bits of an element of a vector register."""


class Role(IntEnum):
    """What an array is to the matmul of an instruction; to an instruction without one it is READ or WRITTEN."""

    LHS = 0
    """Read for the first operand alone, with what is computed on its way there."""
    RHS = 1
    """Read for the second operand alone."""
    READ = 2
    """Read beside the result."""
    WRITTEN = 3


_SCALED = (Role.LHS, Role.RHS, Role.LHS, Role.RHS)
"""Of the operands of a scaled-dot: both factors, then the scales of each."""


@dataclass(slots=True)
class Work:
    """Added up over one instruction, its fused computation included. Elements count the padding of tiled layouts."""

    matmuls: list[Matmul] = field(default_factory=list)
    vector: float = 0.0
    """Element-wise operations."""
    transcendental: float = 0.0
    narrow: float = 0.0
    """Elements of the largest array of less than 32 bits an element: they are unpacked and packed again."""
    ports: float = 0.0
    """Elements of 32 bits that pass the vector units, wherever they lie: all that is read and written, but for the
    operands of a matmul, which the matmul units take in themselves."""
    ports_onchip: float = 0.0
    """Of these, those that do not lie in HBM."""
    in_hbm: list[float] = field(default_factory=lambda: [0.0] * len(Role))
    """Bytes read from and written to HBM, by `Role`."""
    in_chip: list[float] = field(default_factory=lambda: [0.0] * len(Role))
    """Bytes read from and written to other memory spaces, by `Role`."""
    scalar: bool = False
    """Whether everything read and written is a single element."""

    @property
    def flops(self) -> float:
        return sum(m.flops for m in self.matmuls) + self.vector + self.transcendental

    @property
    def hbm(self) -> float:
        """Bytes read from and written to HBM."""
        return sum(self.in_hbm)

    @property
    def onchip(self) -> float:
        """Bytes read from and written to other memory spaces."""
        return sum(self.in_chip)

    def move(self, shape: ShapeProto, share: float, role: Role = Role.READ) -> None:
        """Count a share of an array as read or written; what only feeds a matmul passes no vector units."""
        if share == 0:
            return
        if shape.tuple_shapes:
            for part in shape.tuple_shapes:
                self.move(part, share, role)
            return
        elements = padded_elements(shape) * share
        bits = shapes.bits(shape.element_type)
        size = elements * bits / 8
        onchip = shapes.memory_space(shape) != 0
        (self.in_chip if onchip else self.in_hbm)[role] += size
        if role >= Role.READ:
            self.ports += size / 4
            self.ports_onchip += size / 4 if onchip else 0.0
            if bits < _WORD:
                self.narrow = max(self.narrow, elements)


@dataclass(frozen=True, slots=True)
class _Body:
    """A computation, or a single instruction, seen from outside."""

    matmuls: Sequence[Matmul]
    vector: float
    transcendental: float
    reads: Sequence[float]
    """Share of each operand that is read, 0..1."""
    roles: Sequence[Role]
    """Of each operand."""
    writes: Sequence[float]
    """Share of each leaf of the result that is written, 0..1."""


class Reader:
    """Reads the work of a module's instructions; fused computations are read once."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._instructions: Mapping[int, HloInstructionProto] = module.instructions
        self._bodies: dict[int, _Body] = {}
        self._firsts: dict[int, int] = {}
        self._structures: dict[tuple[object, ...], int] = {}

    def work(self, instruction: HloInstructionProto) -> Work:
        """Work of one execution; zero for instructions that cost nothing or whose callees are priced by themselves."""
        if instruction.opcode in FREE:
            return Work()
        operands = [self._instructions[o].shape for o in instruction.operand_ids]
        if instruction.opcode == "reshape" and _is_bitcast(operands[0], instruction.shape):
            return Work()
        if instruction.opcode == "fusion":
            body = self.body(instruction.called_computation_ids[0])
        else:
            body = _single(instruction, operands)
        found = Work(list(body.matmuls), body.vector, body.transcendental)
        for shape, share, role in zip(operands, body.reads, body.roles, strict=False):
            found.move(shape, share, role)
        results = [instruction.shape] if not instruction.shape.tuple_shapes else list(instruction.shape.tuple_shapes)
        for shape, share in zip(results, body.writes, strict=False):
            found.move(shape, share, Role.WRITTEN)
        found.scalar = not found.matmuls and all(_is_scalar(shape) for shape in (*operands, *results))
        return found

    def body(self, computation: int) -> _Body:
        """A fused computation's work, read once."""
        found = self._bodies.get(computation)
        if found is None:
            found = self._bodies[computation] = _Backwards(self, self._module.computations[computation]).read()
        return found

    def first_alike(self, computation: int) -> int:
        """Of the fused computations asked for that are equal up to names, the first: it has the same work.

        Layers are alike, and to compare two computations takes a third of the time that reading one does.
        """
        found = self._firsts.get(computation)
        if found is None:
            structure = _structure(self._module.computations[computation])
            found = self._firsts[computation] = self._structures.setdefault(structure, computation)
        return found


def _structure(computation: HloComputationProto) -> tuple[object, ...]:
    """All that decides a fused computation's work: opcodes, shapes with layouts and who reads whom; of `_BY_ALL` all
    else but names, too."""
    place: dict[int, int] = {}
    found: list[object] = []
    for number, instruction in enumerate(computation.instructions):
        opcode = instruction.opcode
        place[instruction.id] = number
        found += opcode, instruction.shape.SerializeToString()
        if opcode == "parameter":
            found.append(instruction.parameter_number)
            continue
        found += [place[operand] for operand in instruction.operand_ids]
        if opcode in _BY_ALL:
            copy = HloInstructionProto()
            copy.CopyFrom(instruction)
            for name in ("id", "name", "metadata", "operand_ids"):
                copy.ClearField(name)
            found.append(copy.SerializeToString(deterministic=True))
    found.append(place[computation.root_id])
    return tuple(found)


def _is_scalar(shape: ShapeProto) -> bool:
    return prod(shape.dimensions) == 1 and not shape.tuple_shapes


def _is_bitcast(operand: ShapeProto, result: ShapeProto) -> bool:
    """Whether a reshape moves nothing: both are row-major, and tiled dimensions, if any, stay as they are."""
    if any(list(s.layout.minor_to_major) != list(range(len(s.dimensions)))[::-1] for s in (operand, result)):
        return False
    tiled = max((len(s.layout.tiles[0].dimensions) for s in (operand, result) if s.layout.tiles), default=0)
    return tiled == 0 or list(operand.dimensions[-tiled:]) == list(result.dimensions[-tiled:])


def _single(instruction: HloInstructionProto, operands: list[ShapeProto]) -> _Body:
    work = Work()
    _compute(work, instruction, operands, 1.0)
    reads = [_share_read(instruction, k, operands, 1.0) for k in range(len(operands))]
    write = 1.0
    if instruction.opcode == "dynamic-update-slice":
        reads[0], write = 0.0, _ratio(operands[1], operands[0])
    elif instruction.opcode == "scatter":
        reads[0] = write = min(1.0, _ratio(operands[-1], operands[0]))
    writes = [write] * max(1, len(instruction.shape.tuple_shapes))
    roles = _roles(instruction, len(operands), Role.READ)
    return _Body(work.matmuls, work.vector, work.transcendental, reads, roles, writes)


class _Backwards:
    """Reads one fused computation from its root to its parameters; shares are of each instruction's elements."""

    def __init__(self, reader: Reader, computation: HloComputationProto) -> None:
        self._reader = reader
        self._ordered = computation.instructions
        self._local = {i.id: i for i in computation.instructions}
        self._wanted = dict.fromkeys(self._local, 0.0)
        self._root = self._local[computation.root_id]
        self._in_place: set[int] = set()
        self._carries = any(i.opcode in _SENT for i in computation.instructions)
        self._roles: dict[int, Role] = {}
        """Of the instructions that are asked for."""
        self._work = Work()

    def read(self) -> _Body:
        writes = self._want_results()
        parameters: dict[int, float] = {}
        roles: dict[int, Role] = {}
        for instruction in reversed(self._ordered):
            share = min(1.0, self._wanted[instruction.id])
            if instruction.opcode == "parameter":
                parameters[instruction.parameter_number] = share
                roles[instruction.parameter_number] = self._roles.get(instruction.id, Role.READ)
            elif share > 0:
                self._pass_on(instruction, share)
        numbers = range(max(parameters, default=-1) + 1)
        reads = [parameters.get(k, 0.0) for k in numbers]
        all_roles = [roles.get(k, Role.READ) for k in numbers]
        return _Body(self._work.matmuls, self._work.vector, self._work.transcendental, reads, all_roles, writes)

    def _want_results(self) -> list[float]:
        """Ask for every result; share of each that is written."""
        outputs = [self._root]
        if self._root.opcode == "tuple":
            outputs = [self._local[o] for o in self._root.operand_ids]
        writes: list[float] = []
        for output in outputs:
            behind = output
            while behind.opcode == "bitcast":
                behind = self._local[behind.operand_ids[0]]
            if self._carries and (behind.opcode in _SENT or behind.opcode == "parameter"):
                writes.append(0.0)
                continue
            self._wanted[output.id] = 1.0
            self._roles[output.id] = Role.READ
            if behind.opcode == "dynamic-update-slice":
                self._in_place.add(behind.id)
                writes.append(_ratio(self._local[behind.operand_ids[1]].shape, behind.shape))
            elif behind.opcode == "fusion" and behind is self._root:
                writes.extend(self._reader.body(behind.called_computation_ids[0]).writes)
            else:
                writes.append(1.0)
        return writes

    def _pass_on(self, instruction: HloInstructionProto, share: float) -> None:
        operands = [self._local[o].shape for o in instruction.operand_ids]
        front = self._roles[instruction.id]
        if instruction.opcode == "fusion":
            inner = self._reader.body(instruction.called_computation_ids[0])
            self._work.matmuls.extend(inner.matmuls)
            self._work.vector += inner.vector * share
            self._work.transcendental += inner.transcendental * share
            reads = [read * share for read in inner.reads]
            roles = [role if front == Role.READ else front for role in inner.roles]
        else:
            _compute(self._work, instruction, operands, share)
            reads = [_share_read(instruction, k, operands, share) for k in range(len(operands))]
            roles = _roles(instruction, len(operands), front)
            if instruction.id in self._in_place:
                reads[0] = 0.0
        adds = instruction.opcode in _SLICING
        for operand, read, role in zip(instruction.operand_ids, reads, roles, strict=False):
            before = self._wanted[operand]
            self._wanted[operand] = before + read if adds else max(before, read)
            self._roles[operand] = max(self._roles.get(operand, role), role)


def _roles(instruction: HloInstructionProto, count: int, front: Role) -> list[Role]:
    """Of the `count` operands of an instruction whose result has the role `front`."""
    multiplies = instruction.opcode in MATMULS or library_matmul(instruction) is not None
    if not multiplies or front != Role.READ:
        return [front] * count
    if instruction.opcode == "scaled-dot":
        return list(_SCALED[:count])
    return [Role(min(k, Role.RHS)) for k in range(count)]


def _share_read(instruction: HloInstructionProto, k: int, operands: list[ShapeProto], share: float) -> float:
    """Share of operand k that is needed for `share` of the result."""
    opcode = instruction.opcode
    if opcode == "ragged-dot" and k == _GROUP_SIZES:
        return 0.0
    if opcode in MATMULS or opcode in REDUCING or opcode in ("tuple", "concatenate"):
        return share
    if opcode in _SLICING or opcode in ("pad", "broadcast"):
        if k > 0:
            return 1.0
        return min(1.0, share * _ratio(instruction.shape, operands[0]))
    if opcode == "dynamic-update-slice":
        return max(0.0, share - _ratio(operands[1], instruction.shape)) if k == 0 else 1.0
    return share


def _ratio(part: ShapeProto, whole: ShapeProto) -> float:
    count = shapes.element_count(whole)
    return shapes.element_count(part) / count if count else 0.0


def padded_elements(shape: ShapeProto) -> int:
    """Elements of an array with the padding that its tiled layout adds to the minor dimensions."""
    dimensions = shape.dimensions
    tiles = shape.layout.tiles
    if not tiles:
        return prod(dimensions)
    tile = tiles[0].dimensions
    physical = [dimensions[d] for d in reversed(shape.layout.minor_to_major)]
    missing = len(tile) - len(physical)
    if missing > 0:
        physical = [1] * missing + physical
    for back in range(1, len(tile) + 1):
        size = tile[-back]
        if size > 0:
            physical[-back] = -(-physical[-back] // size) * size
    return prod(physical)


def _compute(work: Work, instruction: HloInstructionProto, operands: list[ShapeProto], share: float) -> None:
    """Count the operations of a share of an instruction that is not a fusion."""
    opcode = instruction.opcode
    if opcode in MATMULS:
        work.matmuls.append(matmul_of(instruction, operands[0], operands[1]))
    elif opcode == "custom-call" and (gemm := library_matmul(instruction)) is not None:
        work.matmuls.append(matmul_of(gemm, operands[0], operands[1]))
    elif opcode in REDUCING:
        work.vector += share * sum(prod(o.dimensions) for o in operands)
    elif opcode in SORTING:
        work.vector += share * sum(prod(o.dimensions) * log2(max(2, prod(o.dimensions))) for o in operands)
    elif opcode in TRANSCENDENTAL:
        work.transcendental += share * prod(instruction.shape.dimensions)
    elif opcode not in MOVES:
        work.vector += share * shapes.element_count(instruction.shape)
