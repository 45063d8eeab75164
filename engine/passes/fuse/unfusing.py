"""Take fusions of a loaded module apart: their instructions run one by one again."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import UsageError
from engine.ir.edit import Editor
from engine.ir.module import Module
from engine.passes.fuse.inlining import inline_into


def unfuse(module: Module, names: Sequence[str]) -> Module:
    """The module with the named fusions inlined. UsageError for a name that is no fusion's."""
    editor = Editor(module)
    for name in names:
        fusion = module.by_name.get(name)
        if fusion is None or fusion.opcode != "fusion":
            came = f"'{name}' names no instruction" if fusion is None else f"the opcode of '{name}' is {fusion.opcode}"
            raise UsageError(f"fuse{{unfuse}}: the name of a fusion was expected, but {came}")
        inline_into(editor, editor.instruction(fusion.id))
    return editor.finish()
