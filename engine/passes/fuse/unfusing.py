"""Take fusions of a loaded module apart: their instructions run one by one again."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import UsageError
from engine.hlo.hlo_pb2 import HloInstructionProto
from engine.ir.edit import Editor
from engine.ir.module import Module


def unfuse(module: Module, names: Sequence[str]) -> Module:
    """The module with the named fusions inlined. UsageError for a name that is no fusion's."""
    editor = Editor(module)
    for name in names:
        fusion = module.by_name.get(name)
        if fusion is None or fusion.opcode != "fusion":
            came = f"'{name}' names no instruction" if fusion is None else f"the opcode of '{name}' is {fusion.opcode}"
            raise UsageError(f"fuse{{unfuse}}: the name of a fusion was expected, but {came}")
        _inline(editor, editor.instruction(fusion.id))
    return editor.finish()


def _inline(editor: Editor, fusion: HloInstructionProto) -> None:
    (called,) = fusion.called_computation_ids
    inside = editor.module.computations[called]
    computation = editor.computation_of(fusion.id)
    made: dict[int, int] = {}
    for source in inside.instructions:
        if source.opcode == "parameter":
            made[source.id] = fusion.operand_ids[source.parameter_number]
            continue
        copy = HloInstructionProto()
        copy.CopyFrom(source)
        copy.operand_ids[:] = [made[o] for o in source.operand_ids]
        added = editor.add(computation, copy, name=source.name, origins=(source.id, fusion.id), before=fusion.id)
        made[source.id] = added.id
    for before in fusion.control_predecessor_ids:
        editor.add_control(before, made[inside.root_id])
    editor.replace_uses(fusion.id, made[inside.root_id])
    editor.remove_dead([fusion.id])
    _drop_elements(editor, made[inside.root_id])


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
