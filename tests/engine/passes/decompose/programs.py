"""Programs written as text: where their sites are, and whether they compute the same after decomposition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from engine.hlo.reading import read_here
from engine.ir import shapes
from engine.ir.edit import Editor
from engine.ir.flow import Flow
from engine.ir.module import Module
from engine.passes.decompose.emit.emit import emit, why_not
from engine.passes.decompose.find.collectives import collectives_of
from engine.passes.decompose.find.examining import examine
from engine.passes.decompose.find.finder import Finder
from engine.passes.decompose.find.gathers import Gather
from engine.passes.decompose.rings.variants import Variant
from engine.passes.decompose.site import GatherSite, Site
from tests.engine.passes.decompose.cases import Array
from tests.engine.passes.decompose.running import reloaded, run

EVERYBODY = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true"
PAIRS = "replica_groups={{0,2},{1,3}}, use_global_device_ids=true"
ADD = """
add {
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}
"""
DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def module(entry: str, rest: str = ADD, devices: str = "num_partitions=4") -> Module:
    return read_here(f"HloModule m, {devices}\n{rest}\nENTRY main {{\n{entry}\n}}\n".encode())


def sites(module: Module) -> Iterator[Site]:
    """All sites, one after the other, as if every gate said yes; gathers of the same shard are one."""
    flow = Flow(module)
    finder = Finder(flow)
    gathers: dict[int, list[Gather]] = {}
    for collective in collectives_of(flow):
        examined = examine(finder, collective)
        if examined.gather is not None:
            gathers.setdefault(flow.operands[collective.start][0], []).append(examined.gather)
        found = examined.scatter or examined.whole
        if found is not None:
            yield found
    for shard, same in gathers.items():
        first = same[0]
        yield GatherSite(
            first.collective.computation,
            tuple(g.collective.id for g in same),
            shard,
            first.dim,
            first.groups,
            tuple(u for g in same for u in g.readers.uses),
            rebuild=any(g.readers.others for g in same),
        )


def inputs_of(module: Module, seed: int = 0) -> list[list[Array]]:
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(module.header.devices):
        parameters = sorted(
            (i for i in module.entry.instructions if i.opcode == "parameter"), key=lambda i: i.parameter_number
        )
        made.append(
            [
                rng.standard_normal(tuple(p.shape.dimensions)).astype(shapes.numpy_dtype(p.shape.element_type))
                for p in parameters
            ]
        )
    return made


def same_results(module: Module, chosen: Sequence[Variant], *, expect: int, tolerance: float = 2e-6) -> list[Module]:
    """Decompose every site in every form that applies; results stay. `expect` is the number of sites."""
    inputs = inputs_of(module)
    before = run(module, inputs)
    found = list(sites(module))
    assert len(found) == expect
    made = []
    for variant in chosen:
        editor = Editor(module)
        done = [emit(editor, site, variant) for site in found if why_not(editor, site, variant) is None]
        if not done:
            continue
        after = editor.finish()
        made.append(after)
        results = run(reloaded(after), inputs)
        for was, now in zip(before, results, strict=True):
            for a, b in zip(was, now, strict=True):
                error = np.abs(a.astype(np.float64) - b.astype(np.float64)).max()
                allowed = tolerance * max(1.0, float(np.abs(a).astype(np.float64).max()))
                assert error <= allowed, f"{variant}: {error}"
    assert made
    return made


def opcodes(module: Module) -> list[str]:
    return [i.opcode for i in module.instructions.values()]
