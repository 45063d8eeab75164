"""The gate's terms are those of Wang et al. §5.5: link loads by form, and only what nothing hides as extra."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from engine.chips.chip import Rate
from engine.chips.machine import Machine
from engine.chips.topology import Torus
from engine.cost.collectives import collective_time, ring_time
from engine.cost.costs import Origin
from engine.cost.given import GivenTime
from engine.ir.edit import Editor
from engine.ir.flow import Flow
from engine.passes.candidate import GateTerms
from engine.passes.decompose.decide.proposals import Blocks
from engine.passes.decompose.find.collectives import collectives_of
from engine.passes.decompose.find.examining import examine
from engine.passes.decompose.find.finder import Finder
from engine.passes.decompose.gate.pricing import Pricing, as_they_come
from engine.passes.decompose.rings.variants import Variant
from engine.passes.decompose.site import GatherSite, ScatterSite, Site
from engine.passes.decompose.verdicts import lost, saved, weighed
from tests.engine.passes.decompose.texts import ALL, machine, module


def body(size: int) -> str:
    how = ALL.replace("[1,4]<=[4]", f"[1,{size}]<=[{size}]")
    return f"""
  x = f32[512,1024] parameter(0)
  v = f32[1024,512] parameter(1)
  w = f32[512,1024] parameter(2)
  g = f32[{512 * size},1024] all-gather(x), dimensions={{0}}, {how}
  y = f32[{512 * size},512] dot(g, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  u = f32[{512 * size},512] parameter(3)
  z = f32[{512 * size},1024] dot(u, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  r = f32[512,1024] reduce-scatter(z), dimensions={{0}}, to_apply=add, {how.replace("channel_id=1", "channel_id=2")}
  ROOT out = (f32[{512 * size},512], f32[512,1024]) tuple(y, r)
"""


def sites(
    size: int, chip: str = "tpu-v4", slower: int = 1, given: Mapping[str, GivenTime] | None = None
) -> tuple[Pricing, Machine, GatherSite, ScatterSite]:
    """`given` are times by name."""
    of = module(body(size), partitions=size)
    flow = Flow(of)
    finder = Finder(flow)
    collectives = tuple(collectives_of(flow))
    gather, scatter = (examine(finder, c) for c in collectives)
    assert gather.gather is not None
    assert scatter.scatter is not None
    found = gather.gather
    site = GatherSite(
        found.collective.computation, (found.collective.id,), flow.operands[found.collective.id][0], found.dim,
        found.groups, found.readers.uses, rebuild=False,
    )  # fmt: skip
    where = machine(of, chip)
    if slower > 1:
        torus = where.topology
        assert isinstance(torus, Torus)
        link = Rate(torus.link.usable / slower, torus.link.nominal / slower)
        where = replace(where, topology=replace(torus, link=link))
    times = {of.by_name[name].id: time for name, time in (given or {}).items()}
    return Pricing(flow, where, collectives, Editor(flow.module), times), where, site, scatter.scatter


SHARD = 512 * 1024 * 4
BLOCKS: tuple[Blocks, ...] = ("joined", "stacked", "separate")


@pytest.mark.parametrize("size", [4, 5, 8])
@pytest.mark.parametrize("ring", ["one", "both"])
def test_rings_are_priced_by_link_load(size: int, ring: str) -> None:
    pricing, where, gather, scatter = sites(size)
    variant = Variant(ring=ring)  # type: ignore[arg-type]  # one of the two
    steps = size - 1 if ring == "one" else size // 2
    for site in (gather, scatter):
        groups = site.groups
        assert pricing.terms(site, variant).ring == ring_time(where, groups, SHARD, steps, both=ring == "both").time


def test_two_hop_chains_load_links_twice_and_halves_do_not() -> None:
    pricing, where, _, scatter = sites(8)
    stride = pricing.terms(scatter, Variant(unroll=2))
    assert stride.ring == ring_time(where, scatter.groups, SHARD, 2 * 8 - 3, both=False).time
    halves = pricing.terms(scatter, Variant(unroll=2, chains="halves"))
    assert halves.ring == ring_time(where, scatter.groups, SHARD // 2, 2 * 7, both=False).time
    assert halves.ring < stride.ring


def test_einsums_on_halves_are_priced_as_such() -> None:
    """Twice as many of half the size: what they take longer, by as many launches at least, is extra."""
    pricing, where, _, scatter = sites(8)
    whole = pricing.terms(scatter, Variant())
    halves = pricing.terms(scatter, Variant(unroll=2, chains="halves"))
    assert halves.comp == whole.comp
    assert halves.extra >= whole.extra + 8 * where.chip.units.launch // 2


def test_one_permute_per_pair_of_devices_makes_both_directions_take_turns() -> None:
    pricing, where, gather, _ = sites(8, "h100")
    both = pricing.terms(gather, Variant(ring="both"))
    assert both.ring == ring_time(where, gather.groups, SHARD, 8 - 1, both=False).time


def test_whole_collectives_and_einsums_are_what_they_cost() -> None:
    pricing, where, gather, scatter = sites(8)
    terms = pricing.terms(gather, Variant())
    assert terms.comm == collective_time(where, "all-gather", gather.groups, 8 * SHARD).time
    assert terms.comp == pricing.comp((gather.uses[0].instruction,))
    assert (
        pricing.terms(scatter, Variant()).comm
        == collective_time(where, "reduce-scatter", scatter.groups, 8 * SHARD).time
    )
    assert pricing.shard_bytes(gather) == pricing.shard_bytes(scatter) == SHARD


def test_times_that_are_given_replace_the_whole_and_are_shared_out_over_its_parts() -> None:
    plain, _, gather, scatter = sites(8)
    wholes = {"y": plain.comp((gather.uses[0].instruction,)), "z": plain.comp((scatter.use.instruction,))}
    given = {name: GivenTime(3 * time, Origin.MEASURED) for name, time in wholes.items()}
    dear, _, _, _ = sites(8, given={**given, "g": GivenTime(11, Origin.TABLE)})
    kinds: tuple[tuple[Site, tuple[Origin, ...]], ...] = (
        (gather, (Origin.TABLE,)),
        (scatter, (Origin.MODEL,)),
    )
    for site, comm_from in kinds:
        for variant in (Variant(), Variant(unroll=2), Variant(form="unrolled", ring="both")):
            before, after = plain.terms(site, variant), dear.terms(site, variant)
            assert after.comp == 3 * before.comp
            assert after.ring == before.ring  # the simulator's permutes are the model's too
            assert after.comm == (11 if site is gather else before.comm)
            assert (after.comp_from, after.comm_from) == ((Origin.MEASURED,), comm_from)
            longer = after.extra - before.extra
            assert longer > 0  # what parts take longer than the whole is thrice as much
            assert longer <= 2 * before.extra
    assert plain.terms(gather, Variant()).comp_from == (Origin.MODEL,)


def test_the_same_times_given_are_the_same_terms() -> None:
    plain, _, gather, scatter = sites(8)
    times = {
        "y": plain.comp((gather.uses[0].instruction,)),
        "z": plain.comp((scatter.use.instruction,)),
        "g": plain.comm(gather.collectives),
        "r": plain.comm((scatter.collective,)),
    }
    same, _, _, _ = sites(8, given={name: GivenTime(time, Origin.TABLE) for name, time in times.items()})
    kinds: tuple[Site, ...] = (gather, scatter)
    for site in kinds:
        for variant in (Variant(), Variant(unroll=2), Variant(form="unrolled", ring="both")):
            modelled = replace(same.terms(site, variant), comp_from=(Origin.MODEL,), comm_from=(Origin.MODEL,))
            assert modelled == plain.terms(site, variant)


def test_prologues_and_epilogues_are_extra() -> None:
    """On slow links, beside which it is little what partial einsums take longer than whole ones."""
    pricing, where, gather, scatter = sites(8, slower=10)
    hop = ring_time(where, gather.groups, SHARD, 1, both=False).time
    kinds: tuple[Site, ...] = (gather, scatter)
    for site in kinds:
        assert pricing.terms(site, Variant(ring="both")).extra >= hop
        assert pricing.terms(site, Variant(ring="one")).extra < hop


def test_rebuilding_costs() -> None:
    pricing, _, gather, _ = sites(8)
    rebuilt = GatherSite(
        gather.computation, gather.collectives, gather.operand, gather.dim, gather.groups, gather.uses, rebuild=True
    )
    assert pricing.terms(rebuilt, Variant()).extra > pricing.terms(gather, Variant()).extra


def test_loops_one_after_the_other_hide_their_own_transfers_only() -> None:
    a, b = GateTerms(10, 8, 4, 1), GateTerms(2, 8, 6, 1)
    total = a.then(b)
    assert total.comp + total.comm - total.gain == max(10, 4) + max(2, 6) + 2
    assert total.gain == a.gain + b.gain
    assert replace(a, beside=3).then(replace(b, beside=-1)).gain == total.gain + 2


def test_words() -> None:
    hidden = GateTerms(comp=10_000_000, comm=5_000_000, ring=4_000_000, extra=1_000_000)
    assert saved(hidden) == "saves 4.00 µs of 5.00 µs: the transfer (4.00 µs) fits under 10.0 µs of einsums"
    exposed = GateTerms(comp=10_000_000, comm=8_000_000, ring=12_000_000, extra=1_000_000)
    assert saved(exposed) == "saves 5.00 µs: 10.0 µs of einsums run under the transfer (12.0 µs)"
    worse = GateTerms(comp=1_000_000, comm=4_400_000, ring=4_100_000, extra=2_000_000)
    assert lost(worse) == "exposed transfer 3.10 µs + extra 2.00 µs > 4.40 µs saved"
    assert weighed(worse) == f"decomposed although {lost(worse)}"
    assert lost(GateTerms(comp=9, comm=1_000, ring=2, extra=5_000)) == "extra 5.00 ns > 1.00 ns saved"
    measured = GateTerms(comp=9, comm=1_000, ring=2, extra=5_000, comm_from=(Origin.MODEL, Origin.MEASURED))
    assert lost(measured).endswith("saved (collective by the model and a measurement, the rest by the model)")
    assert saved(replace(hidden, beside=500_000)).endswith(
        ", and other work hides 500 ns more of the ring than of the collective"
    )
    assert saved(replace(hidden, beside=-500_000)).endswith(
        ", and other work hides 500 ns more of the collective than of the ring"
    )
    assert lost(replace(worse, beside=500_000)).endswith("> 4.40 µs saved + 500 ns that other work hides of the ring")
    assert lost(replace(worse, beside=-500_000)).endswith(
        " + 500 ns that other work hides of the collective > 4.40 µs saved"
    )


def test_blocks_that_one_einsum_takes_are_in_memory_and_so_is_what_comes_of_them() -> None:
    """A sum or an update for each block, and for a scatter a slice: what an einsum for each would do by the way."""
    pricing, where, gather, scatter = sites(8)
    ways = tuple(Variant(ring="both", blocks=blocks) for blocks in BLOCKS)
    extras = []
    for site in (gather, scatter):
        terms = [pricing.terms(site, variant) for variant in ways]
        assert terms[0] == terms[1]
        assert terms[0].ring == terms[2].ring
        extras.append(terms[0].extra - terms[2].extra)
    # Six or eight of the eight blocks are taken in pairs; einsums over one block each cost at most a launch more.
    assert extras[0] > 0
    assert extras[1] > extras[0] + 6 * where.chip.units.launch


def test_what_is_added_to_the_only_chain_waits_for_it_or_is_added_apart() -> None:
    """Links a hundred times as slow: then it is added apart, which costs the same at any speed."""
    pricing, _, _, scatter = sites(8)
    slow, slower = (sites(8, slower=times) for times in (100, 200))
    ways = Variant(), Variant(unroll=2, chains="halves")
    waits = [at.terms(site, ways[0]).extra for at, site in ((pricing, scatter), (slow[0], slow[3]))]
    assert waits[0] <= waits[1]
    hop = slow[0].terms(slow[3], ways[0]).ring // 7
    assert waits[1] < hop
    assert slower[0].terms(slower[3], ways[0]).extra == waits[1]


@pytest.mark.parametrize(
    ("together", "expected"),
    # Shards come at 0, 10, 10, 20, 20, 30, 30, 40; each takes 8.
    [(1, 10 + 7 * 8), (2, 10 + 8 * 8), (4, 20 + 8 * 8), (8, 40 + 8 * 8)],
)
def test_parts_of_a_chain_wait_for_their_last_shard(together: int, expected: int) -> None:
    assert as_they_come(64, 10, 8, together) == expected
