"""Partitioned modules in the form that compilers' plugins take: StableHLO that says which arguments are donated."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from importlib import import_module
from io import BytesIO
from typing import Any

from jaxlib.mlir import ir

from engine.errors import WorkerError
from engine.execute.legalize import is_compiled, is_portable, undo_compilation
from engine.execute.rewriting import list_groups
from engine.hlo import xla
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.ir.module import Module

DONOR = "jax.buffer_donor"
"""The attribute of an argument that any result may be written over."""
UNDONE = (
    "A compiler has been at the module: its fusions, layouts and asynchronous operations were undone before it was "
    "compiled anew. What else it changed, such as types, stays: a dump from before optimisation shows a compiler more."
)
_REFUSED_ALIAS = re.compile(r"Expected aliased input (\d+) at index .*? to have the same size")


def portable(module: Module, apart: Collection[int] = ()) -> tuple[bytes, tuple[str, ...]]:
    """StableHLO bytecode, and what of the module's donation it does not say, in sentences.

    Results are not written over the parameters `apart`. What another compiler did to the module is undone, and a note
    says so. Raises WorkerError where XLA cannot convert the module, UnsupportedError where that cannot be undone.

    Groups are listed: jaxlib 0.10.2 reads mesh-form groups back as others when there are two meshes. StableHLO has no
    copies, which plugins refuse; a reshape to the same shape is one in all but name, and compilers make their own.
    Shardings go: the module is partitioned, and a plugin that finds them on arguments lays these out as if their
    shapes were still to be divided, other than the results that are written over them.
    """
    proto = HloModuleProto()
    proto.CopyFrom(module.proto if is_portable(module) else undo_compilation(module))
    for computation in proto.computations:
        for instruction in computation.instructions:
            list_groups(instruction)
            instruction.ClearField("sharding")
            if instruction.opcode == "copy":
                instruction.opcode = "reshape"
    notes = [*([UNDONE] if is_compiled(module) else []), *_keep_apart(proto, apart)]
    whole = [entry.parameter_number for entry in proto.buffer_donor.entries if not entry.parameter_shape_index]
    if len(whole) < len(proto.buffer_donor.entries):
        notes.append("The compiler was not told of donated elements of tuples: it takes whole arguments alone.")
    try:
        code = xla.to_stablehlo(proto.SerializeToString())
    except xla.XlaError as error:
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise WorkerError(f"XLA cannot convert {module.name}: {first}") from None
    return (_with_donors(code, whole) if whole else code), tuple(notes)


def refused_alias(said: str) -> int | None:
    """The parameter that a compiler, by what it `said`, cannot write a result over: their sizes differ on its chip."""
    found = _REFUSED_ALIAS.search(said)
    return None if found is None else int(found[1])


def context() -> Any:
    """An MLIR context that knows the dialects of JAX's programs."""
    return import_module("jax._src.interpreters.mlir").make_ir_context()


def _keep_apart(proto: HloModuleProto, apart: Collection[int]) -> list[str]:
    """Takes aliases of the parameters away."""
    dropped = [entry for entry in proto.input_output_alias.entries if entry.parameter_number in apart]
    for entry in dropped:
        proto.input_output_alias.entries.remove(entry)
    return [
        f"The compiler cannot write result {{{','.join(map(str, entry.output_shape_index))}}} over parameter "
        f"{entry.parameter_number}, which takes another size on its chip: compiled without that."
        for entry in dropped
    ]


def _with_donors(code: bytes, parameters: Sequence[int]) -> bytes:
    """`code` with the arguments marked as donated, which XLA's conversion of HLO forgets."""
    written = BytesIO()
    with context():
        module = ir.Module.parse(code)
        main = next(o for o in module.body.operations if ir.StringAttr(o.attributes["sym_name"]).value == "main")
        said: list[dict[str, ir.Attribute]] = [{} for _ in main.regions[0].blocks[0].arguments]
        if "arg_attrs" in main.attributes:
            for known, each in zip(said, ir.ArrayAttr(main.attributes["arg_attrs"]), strict=True):
                attributes = ir.DictAttr(each)
                known.update({named.name: named.attr for named in (attributes[n] for n in range(len(attributes)))})
        for number in parameters:
            said[number][DONOR] = ir.BoolAttr.get(True)
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in said])
        module.operation.write_bytecode(written)
    return written.getvalue()
