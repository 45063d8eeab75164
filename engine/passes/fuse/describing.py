"""What was decided, as `Fusion` values for people: members, waits, traffic saved, and the alternatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.ir.edit import Editor
from engine.passes.fuse.body import Body
from engine.passes.fuse.clusters import Cluster
from engine.passes.fuse.deciding import Contest, Decided
from engine.passes.fuse.emitting import Emitted
from engine.passes.fuse.roles import Role
from engine.passes.fusion import Alternative, Fusion


def describe(editor: Editor, body: Body, decided: Decided, emitted: Iterable[Emitted]) -> Iterator[Fusion]:
    """Fusions in the body's order, then einsums that were left apart because of a transfer."""
    contests = {c.einsum: c for c in decided.contests}
    for made in emitted:
        yield _fusion(editor, body, decided, made, contests)
    for contest in decided.contests:
        if not contest.joined:
            yield _apart(body, contest)


def _fusion(editor: Editor, body: Body, decided: Decided, made: Emitted, contests: dict[int, Contest]) -> Fusion:
    cluster = made.cluster
    instruction = editor.instruction(made.fusion)
    contest = contests.get(cluster.einsum)
    waits: dict[int, None] = {}
    for operand in decided.clusters.operands(cluster):
        waits.update(dict.fromkeys(body.arrivals_at(operand)))
    return Fusion(
        name=instruction.name,
        instruction=made.fusion,
        members=_names(body, sorted({*cluster.members, *cluster.copies})),
        kind=instruction.fusion_kind,
        einsum=body.instructions[cluster.einsum].name if cluster.einsum >= 0 else "",
        waits_for=_names(body, waits),
        foreign=_names(body, contest.dones) if contest and contest.joined else (),
        saved_bytes=_saved(body, cluster),
        alternatives=tuple(_alternatives(body, cluster)),
    )


def _apart(body: Body, contest: Contest) -> Fusion:
    einsum, reader = body.instructions[contest.einsum], body.instructions[contest.reader]
    return Fusion(
        name=einsum.name,
        instruction=einsum.id,
        members=(einsum.name,),
        kind="",
        einsum=einsum.name,
        waits_for=(),
        foreign=(),
        saved_bytes=0,
        alternatives=(_together(reader.name, einsum.name),),
    )


def _alternatives(body: Body, cluster: Cluster) -> Iterator[Alternative]:
    """Split off the einsum; give a reader of two einsums the other one."""
    if cluster.einsum < 0 or cluster.einsum in cluster.results:
        return
    name = body.instructions[cluster.einsum].name
    yield Alternative(f"leave {name} apart", "apart", name)
    for member in cluster.members:
        for operand in body.operands[member]:
            if body.roles[operand] is Role.EINSUM and operand != cluster.einsum:
                yield _together(body.instructions[member].name, body.instructions[operand].name)


def _together(reader: str, einsum: str) -> Alternative:
    return Alternative(f"fuse {reader} with {einsum}", "with", f"{reader}:{einsum}")


def _saved(body: Body, cluster: Cluster) -> int:
    inner = (m for m in cluster.members if m not in cluster.results)
    return sum(2 * body.size(m) for m in inner)


def _names(body: Body, nodes: Iterable[int]) -> tuple[str, ...]:
    return tuple(body.instructions[n].name for n in nodes)
