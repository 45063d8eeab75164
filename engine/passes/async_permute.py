"""Turns blocking collectives into start/done pairs, between which a scheduler may place other work.

Wang et al. §5.2; `engine.passes.decompose` names the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from engine.chips.budget import Kind
from engine.cost.kept_slices import kept_in_slices, run_as
from engine.cost.pricing import KINDS
from engine.hlo.hlo_pb2 import U32, ShapeProto
from engine.ir import shapes
from engine.ir.edit import Editor, Instruction
from engine.ir.flow import Flow
from engine.ir.graphs import sequences
from engine.ir.module import Module
from engine.ir.opcodes import COLLECTIVES
from engine.passes.passes import Context, Result

_LEGACY = frozenset({"all-gather", "all-reduce", "collective-permute"})
"""Those with start and done opcodes of their own; the others only come wrapped in a generic start."""

_REREAD = (
    "generic asynchronous permutes, gathers and all-reduces are kept apart from the legacy form in a proto and in MLIR "
    "only: XLA prints both alike and reads its own text back as the legacy form"
)


@dataclass(frozen=True)
class AsyncPermute:
    """Makes collectives asynchronous, permutes at least; each pair stands where the collective stood."""

    name: ClassVar[str] = "async-permute"

    form: Literal["legacy", "generic"] = "legacy"
    """`collective-permute-start`, or `async-start` around a computation that holds the collective."""
    kinds: Literal["permute", "supported", "all"] = "permute"
    """`supported`: those that the chip's compiler makes asynchronous."""

    def apply(self, module: Module, context: Context) -> Result:
        wanted = self._wanted(context.machine.chip.asynchronous)
        scattered = kept_in_slices(Flow(module)) if self.kinds == "supported" else frozenset[int]()
        found = [
            i.id
            for c in sequences(module)
            for i in c.instructions
            if i.opcode in COLLECTIVES and run_as(i, scattered) in wanted
        ]
        if not found:
            return Result(module)
        editor = Editor(module)
        wrapped = 0
        for collective in found:
            wrapped += _split(editor, editor.instruction(collective), generic=self.form == "generic")
        context.control.step(1.0, self.name)
        notes = (_REREAD,) if self.form == "generic" and wrapped else ()
        return Result(editor.finish(), notes=notes)

    def _wanted(self, supported: frozenset[Kind]) -> frozenset[str]:
        """Opcodes of what is made asynchronous, by what compilers run it as."""
        if self.kinds == "all":
            return COLLECTIVES
        kinds = {Kind.PERMUTE, *(supported if self.kinds == "supported" else ())}
        return frozenset(opcode for opcode in COLLECTIVES if KINDS.get(opcode) in kinds)


def _split(editor: Editor, collective: Instruction, *, generic: bool) -> bool:
    """Replace one collective by its pair; whether the start is a generic one."""
    legacy = not generic and collective.opcode in _LEGACY and not _in_place(collective)
    computation = editor.computation_of(collective.id)
    start = Instruction()
    start.CopyFrom(collective)
    if legacy:
        start.opcode = f"{collective.opcode}-start"
        start.shape.CopyFrom(_legacy_shape(editor, collective))
    else:
        start = _generic_start(editor, collective)
    origins = (collective.id,)
    start = editor.add(computation, start, name=f"{collective.name}.start", origins=origins, before=collective.id)
    done = Instruction(
        opcode=f"{collective.opcode}-done" if legacy else "async-done",
        shape=collective.shape,
        metadata=collective.metadata,
        operand_ids=[start.id],
    )
    done.frontend_attributes.CopyFrom(collective.frontend_attributes)
    if collective.HasField("sharding"):
        done.sharding.CopyFrom(collective.sharding)
    done = editor.add(computation, done, name=f"{collective.name}.done", origins=origins, before=collective.id)
    editor.replace_uses(collective.id, done.id)
    editor.remove_dead([collective.id])
    return not legacy


def _in_place(collective: Instruction) -> bool:
    """A permute that writes into arrays it is given, which only the generic form says without loss."""
    return collective.opcode == "collective-permute" and len(collective.operand_ids) > 1


def _legacy_shape(editor: Editor, collective: Instruction) -> ShapeProto:
    """What the start of an opcode of its own yields: operands and results, or the results alone (all-reduce).

    Of a permute the pair without the context scalars: they are the compiler's to add.
    """
    if collective.opcode == "all-reduce":
        return collective.shape
    operands = [o.shape for o in editor.operands(collective.id)]
    given = operands[0] if len(operands) == 1 else shapes.tuple_of(operands)
    return shapes.tuple_of((given, collective.shape))


def _generic_start(editor: Editor, collective: Instruction) -> Instruction:
    """An `async-start` of ``((operands), result, context)``, and the computation that it wraps."""
    inside = editor.add_computation(f"{collective.name}.wrapped")
    parameters = []
    for number, operand in enumerate(editor.operands(collective.id)):
        parameter = Instruction(opcode="parameter", parameter_number=number, shape=operand.shape)
        parameters.append(editor.add(inside, parameter, name=f"{collective.name}.operand", origins=(operand.id,)).id)
    wrapped = Instruction()
    wrapped.CopyFrom(collective)
    wrapped.operand_ids[:] = parameters
    wrapped.ClearField("control_predecessor_ids")
    wrapped = editor.add(inside, wrapped, name=f"{collective.name}.whole", origins=(collective.id,))
    editor.set_root(inside, wrapped.id)
    given = shapes.tuple_of(o.shape for o in editor.operands(collective.id))
    start = Instruction(
        opcode="async-start",
        shape=shapes.tuple_of((given, collective.shape, shapes.array(U32))),
        metadata=collective.metadata,
        operand_ids=list(collective.operand_ids),
        control_predecessor_ids=list(collective.control_predecessor_ids),
        called_computation_ids=[inside],
        backend_config=collective.backend_config,
    )
    start.frontend_attributes.CopyFrom(collective.frontend_attributes)
    return start
