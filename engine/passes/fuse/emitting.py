"""Clusters become fusion instructions: a computation that holds the members, and one instruction that calls it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from engine.hlo.hlo_pb2 import PRED, S32, U32, HloInstructionProto
from engine.ir.edit import Editor
from engine.ir.fused_computation import FusedComputation
from engine.passes.fuse.body import Body
from engine.passes.fuse.clusters import Cluster, Clusters
from engine.passes.fuse.roles import Role

_INDICES = frozenset({PRED, S32, U32})
"""Element types of indices and of what compares them."""


@dataclass(frozen=True, slots=True)
class Emitted:
    """A fusion that was made."""

    fusion: int
    """Instruction id."""
    cluster: Cluster


def emit(editor: Editor, body: Body, clusters: Clusters) -> tuple[Emitted, ...]:
    """Make a fusion of every cluster that is worth one, in the body's order."""
    worth = [c for c in clusters.all.values() if _is_worth(body, c)]
    return tuple(_emit_cluster(editor, body, clusters, c) for c in sorted(worth, key=lambda c: c.root))


def _is_worth(body: Body, cluster: Cluster) -> bool:
    """Two instructions that do something; what only renames memory or fills it with a constant does not count."""
    work = [m for m in (*cluster.members, *cluster.copies) if body.instructions[m].opcode not in ("bitcast", "iota")]
    return len(work) > 1


def _emit_cluster(editor: Editor, body: Body, clusters: Clusters, cluster: Cluster) -> Emitted:
    computation = body.computation.id
    # Earlier fusions may have taken the place of what this cluster reads, so operands are asked of the editor.
    members = sorted({*cluster.members, *cluster.copies})
    inside = set(members)
    root = editor.instruction(body.instructions[cluster.root].id)
    fused = FusedComputation(editor, f"fused_{root.name}")
    built: dict[int, int] = {}
    operands: list[int] = []
    for member in members:
        source = editor.instruction(body.instructions[member].id)
        read = list(source.operand_ids)
        for position, operand in zip(body.operands[member], read, strict=True):
            if operand in built:
                continue
            if position in inside:
                built[operand] = built[body.instructions[position].id]
            elif body.constants[position]:
                built[operand] = fused.copy(editor.instruction(operand), ())
            else:
                built[operand] = fused.parameter(editor.instruction(operand))
                operands.append(operand)
        built[source.id] = fused.copy(source, [built[o] for o in read])
    results = [editor.instruction(body.instructions[r].id) for r in cluster.results]
    inner = [built[r.id] for r in results]
    fused.finish(inner[0] if len(inner) == 1 else fused.tuple(inner, root))
    fusion = HloInstructionProto(opcode="fusion", shape=fused.result, fusion_kind=_kind(body, cluster))
    fusion.operand_ids.extend(operands)
    fusion.called_computation_ids.append(fused.id)
    fusion.metadata.CopyFrom(root.metadata)
    fusion.frontend_attributes.CopyFrom(root.frontend_attributes)
    origins = _origins(editor, [body.instructions[m] for m in members])
    made = editor.add(computation, fusion, name=f"{root.name}.fusion", origins=origins, before=root.id)
    if len(results) == 1:
        editor.replace_uses(root.id, made.id)
    else:
        _take_apart(editor, computation, made, results)
    editor.remove_dead([r.id for r in results])
    return Emitted(made.id, cluster)


def _origins(editor: Editor, members: Sequence[HloInstructionProto]) -> list[int]:
    """Ids of the members that a fusion comes from. Where a slice begins is worked out once for all collectives and
    einsums of a module: a fusion that works it out again is not a piece of the one for which that was made first."""
    work = [m.id for m in members if not _is_index(editor, m)]
    return work or [m.id for m in members]


def _is_index(editor: Editor, member: HloInstructionProto) -> bool:
    """Whether it is index arithmetic that a pass made. What was inlined comes of its caller as well, and stays."""
    made = editor.module.origins.get(member.id, ())
    shape = member.shape
    return len(made) == 1 and shape.element_type in _INDICES and prod(shape.dimensions) == 1 and not shape.tuple_shapes


def _take_apart(
    editor: Editor, computation: int, fusion: HloInstructionProto, results: Sequence[HloInstructionProto]
) -> None:
    """Let what reads `results`, of which the first is the root, read the elements of the tuple that `fusion` gives."""
    for number, result in enumerate(results):
        element = HloInstructionProto(opcode="get-tuple-element", tuple_index=number, shape=result.shape)
        element.operand_ids.append(fusion.id)
        element.metadata.CopyFrom(result.metadata)
        name = f"{result.name}.result"
        taken = editor.add(computation, element, name=name, origins=(result.id,), before=results[0].id)
        editor.replace_uses(result.id, taken.id)


def _kind(body: Body, cluster: Cluster) -> str:
    """XLA's name of the fusion's kind: what its emitter is chosen by."""
    if cluster.einsum >= 0:
        return "kOutput"
    return "kInput" if any(body.roles[r] is Role.REDUCE for r in cluster.results) else "kLoop"
