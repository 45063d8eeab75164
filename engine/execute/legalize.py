"""Rewrites any HLO module, TPU- and GPU-compiled ones included, into one that XLA's CPU pipeline runs.

Asynchronous operations become synchronous, fusions calls, replica groups explicit lists; layouts, memory spaces,
schedules, control dependencies, shardings and aliases, which do not change numbers, are dropped. What cannot run is
refused by name.
"""

from __future__ import annotations

from collections import Counter

from engine.errors import UnsupportedError
from engine.execute.rewriting import HANDLERS, IDENTITIES, UNDONE, rewritten
from engine.hlo.hlo_pb2 import HloInstructionProto, HloModuleProto
from engine.ir import shapes
from engine.ir.module import Module

_REFUSED = frozenset(
    {"send", "send-done", "recv", "recv-done", "infeed", "outfeed", "rng", "rng-get-and-update-state", "domain"}
)
_RUNNABLE = frozenset({"AllocateBuffer", "ConcatBitcast", "TopK"}) | IDENTITIES

_MADE_BY_COMPILERS = frozenset(HANDLERS) - {"constant", "copy", "custom-call", "dot"}


def legalize(module: Module) -> HloModuleProto:
    """A runnable proto with the same parameters, results and numbers; instruction names are kept.

    Raises UnsupportedError that names everything that cannot run.
    """
    refuse(module)
    proto = rewritten(module, HANDLERS)
    proto.ClearField("input_output_alias")
    proto.ClearField("buffer_donor")
    return proto


def is_compiled(module: Module) -> bool:
    """Whether a compiler has been at the module: it has fusions, bitcasts, or asynchronous operations."""
    return any(i.opcode in _MADE_BY_COMPILERS for i in module.instructions.values())


def is_portable(module: Module) -> bool:
    """Whether StableHLO has forms for all of it, as it has not for what compilers make and all-to-alls of tuples."""
    return not is_compiled(module) and not any(
        i.opcode == "all-to-all" and len(i.operand_ids) > 1 for i in module.instructions.values()
    )


def undo_compilation(module: Module) -> HloModuleProto:
    """The module as another compiler may begin with it: fusions, bitcasts, layouts and asynchronous operations undone,
    everything in a form that StableHLO has.

    What is donated stays, and so does what only a compiler can judge. Raises UnsupportedError for a bitcast that is no
    reshape and transpose.
    """
    return rewritten(module, UNDONE)


def refuse(module: Module) -> None:
    """Raises UnsupportedError that names what in the module CPU devices cannot run."""
    found: Counter[str] = Counter()
    for instruction in module.instructions.values():
        name = _unrunnable(instruction)
        if name is not None:
            found[name] += 1
    if not found:
        return
    listed = ", ".join(name if count == 1 else f"{name} (×{count})" for name, count in found.items())
    raise UnsupportedError(f"{module.name} cannot run on CPU devices: it uses {listed}")


def _unrunnable(instruction: HloInstructionProto) -> str | None:
    opcode = instruction.opcode
    if opcode == "custom-call" and instruction.custom_call_target not in _RUNNABLE:
        return f'custom-call "{instruction.custom_call_target}"'
    if opcode in _REFUSED:
        return opcode
    if opcode == "collective-permute-start" and len(instruction.operand_ids) > 1 and not _pairs_up(instruction):
        return "collective-permute-start that updates a buffer in place"
    if any(any(leaf.is_dynamic_dimension) for _, leaf in shapes.leaves(instruction.shape)):
        return f"dynamic shapes ({shapes.text(instruction.shape)})"
    return None


def _pairs_up(start: HloInstructionProto) -> bool:
    """Whether a start with several operands moves each of them, with a result of its shape."""
    parts = start.shape.tuple_shapes
    return len(parts) >= 2 and len(parts[1].tuple_shapes) == len(start.operand_ids)
