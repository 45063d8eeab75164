"""What compilers do before they fuse: calls become what they call, copies that keep the layout what they copy.

The bodies of `shard_map` are calls in what JAX hands to compilers, with two copies at every array that goes in or comes
out, which the partitioner leaves. XLA's call inliner and its algebraic simplifier take both away before fusion.
"""

from __future__ import annotations

from collections import Counter

from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.edit import Editor
from engine.ir.graphs import executed
from engine.ir.module import Module

_GIVEN = frozenset({"constant", "get-tuple-element", "parameter"})
"""Arrays that stand for a place in memory: who holds one of these as its own needs a copy."""
_HOLDING = frozenset({"call", "conditional", "tuple", "while"})


def inline(module: Module) -> Module:
    """`module` without such calls and copies; itself where it has none, or carries an order: a compiler made that.

    What is called several times stays called, for the module would grow.
    """
    if module.is_scheduled:
        return module
    opened = module
    if calls := _executed(module, "call"):
        editor = Editor(module)
        callers = Counter(called for i in module.instructions.values() for called in i.called_computation_ids)
        for call in calls:
            if call.id in editor:
                _inline_call(editor, call, callers)
        opened = editor.finish()
    copies = _executed(opened, "copy")
    if not copies:
        return opened
    editor = Editor(opened)
    for copy in copies:
        if _is_idle(editor, editor.instruction(copy.id)):
            editor.replace_uses(copy.id, editor.instruction(copy.id).operand_ids[0])
            editor.remove_dead([copy.id])
    return editor.finish()


def _executed(module: Module, opcode: str) -> list[HloInstructionProto]:
    """The instructions of an opcode in what runs as sequences."""
    if opcode not in module.by_opcode:
        return []
    return [
        i
        for computation in executed(module)
        for i in module.computations[computation].instructions
        if i.opcode == opcode
    ]


def inline_into(editor: Editor, caller: HloInstructionProto, *, moves: bool = False) -> tuple[HloInstructionProto, ...]:
    """Put what a fusion or a call calls in its place; what was added, parameters left out.

    With `moves` nobody else calls it, so that it goes, and its names are free.
    """
    (called,) = caller.called_computation_ids
    inside = editor.module.computations[called]
    computation = editor.computation_of(caller.id)
    made: dict[int, int] = {}
    added: list[HloInstructionProto] = []
    for source in inside.instructions:
        if source.opcode == "parameter":
            made[source.id] = caller.operand_ids[source.parameter_number]
            continue
        copy = HloInstructionProto()
        copy.CopyFrom(source)
        copy.operand_ids[:] = [made[o] for o in source.operand_ids]
        copy.control_predecessor_ids[:] = [made[o] for o in source.control_predecessor_ids]
        added.append(editor.add(computation, copy, name=source.name, origins=(source.id, caller.id), before=caller.id))
        made[source.id] = added[-1].id
        if moves:
            added[-1].name = source.name
    for before in caller.control_predecessor_ids:
        editor.add_control(before, made[inside.root_id])
    editor.replace_uses(caller.id, made[inside.root_id])
    editor.remove_dead([caller.id])
    _drop_elements(editor, made[inside.root_id])
    return tuple(added)


def _drop_elements(editor: Editor, root: int) -> None:
    """Where the root is a tuple whose elements are read one by one, let their readers have them directly."""
    whole = editor.instruction(root)
    if whole.opcode != "tuple":
        return
    for user in editor.users(root):
        part = editor.instruction(user)
        if part.opcode == "get-tuple-element":
            editor.replace_uses(user, whole.operand_ids[part.tuple_index])
            editor.remove_dead([user])


def _inline_call(editor: Editor, call: HloInstructionProto, callers: Counter[int]) -> None:
    """And the calls in it. What a call says of how it is to be run would be lost."""
    if callers[call.called_computation_ids[0]] > 1 or call.frontend_attributes.map:
        return
    for added in inline_into(editor, editor.instruction(call.id), moves=True):
        if added.opcode == "call" and added.id in editor:
            _inline_call(editor, added, callers)


def _is_idle(editor: Editor, copy: HloInstructionProto) -> bool:
    """Whether a copy keeps the layout, and is not the one that keeps a result or a loop's state apart from an input."""
    if copy.control_predecessor_ids:
        return False
    source = editor.instruction(copy.operand_ids[0])
    if source.shape.SerializeToString(deterministic=True) != copy.shape.SerializeToString(deterministic=True):
        return False
    readers = {editor.instruction(user).opcode for user in editor.users(copy.id)}
    return source.opcode not in _GIVEN or not (editor.is_root(copy.id) or readers & _HOLDING)
