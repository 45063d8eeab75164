"""What is decided: gate, rivals, merged and repeated gathers, chains, overrides, rows, and what verdicts say."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

from engine.cost.compiler_schedule import read_schedule
from engine.errors import UsageError
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.ir.opcodes import COLLECTIVES
from engine.passes.decompose.decide.planning import Planned
from engine.passes.decompose.decide.proposals import collectives_of_site, einsums_of_site
from engine.passes.decompose.decompose import Decompose
from engine.passes.decompose.site import AllReduceSite, ChainSite, GatherSite, ScatterSite
from engine.passes.passes import Context
from tests.engine.passes.decompose.texts import ALL, machine, module, planned, verdicts
from tests.places import COMPILED, PARTITIONED, SAMPLES

PARTITIONED_FILES = sorted(PARTITIONED.glob("*.hlo*"))
SAMPLE_FILES = sorted(SAMPLES.glob("*.hlo"))


@cache
def load(path: Path) -> Module:
    data = path.read_bytes()
    return read_here(gzip.decompress(data) if path.suffix == ".gz" else data, path.name)


def executed_collectives(of: Module) -> Iterator[str]:
    """Names of collectives outside of asynchronous wrappers."""
    wrapped = {k for i in of.instructions.values() if i.opcode == "async-start" for k in i.called_computation_ids}
    for instruction in of.instructions.values():
        base = instruction.opcode.removesuffix("-start")
        if base in COLLECTIVES and of.computation_of[instruction.id] not in wrapped:
            yield instruction.name


def check(of: Module, found: Planned, *, gate: bool) -> None:
    """What holds for every module."""
    single = [c for c in found.candidates if c.kind != "chain"]
    starts = {i.operand_ids[0]: i.name for i in of.instructions.values() if i.opcode.endswith("-done")}
    named = {starts.get(of.by_name[name].id, name) for name in executed_collectives(of)}
    assert {c.id for c in single} == named
    assert len({c.id for c in found.candidates}) == len(found.candidates)
    einsums = [e for part in found.parts for e in einsums_of_site(part.site)]
    assert len(einsums) == len(set(einsums)), "an einsum in two loops"
    for candidate in found.candidates:
        assert candidate.reason
        assert bool(candidate.variant) == candidate.chosen
        if candidate.chosen:
            assert candidate.gate is not None
            assert candidate.einsums
    taken = {c for part in found.parts for c in collectives_of_site(part.site)}
    assert taken == {c.collective for c in single if c.chosen}
    if gate:
        for candidate in found.candidates:
            if candidate.chosen and not candidate.variant.startswith("chain") and candidate.gate is not None:
                assert candidate.gate.gain >= 0, candidate


@pytest.mark.parametrize("path", [*PARTITIONED_FILES, *SAMPLE_FILES], ids=lambda p: p.name)
@pytest.mark.parametrize("gate", [True, False])
def test_every_collective_has_a_verdict(path: Path, gate: bool) -> None:  # a parameter of the test
    of = load(path)
    check(of, planned(of, gate=gate), gate=gate)


@pytest.mark.parametrize("path", sorted(COMPILED.glob("*.hlo.gz")), ids=lambda p: p.name)
def test_what_a_compiler_has_already_fused_is_explained(path: Path) -> None:
    of = load(path)
    found = planned(of)
    check(of, found, gate=True)
    assert not any(c.chosen for c in found.candidates)


@pytest.mark.parametrize(
    ("name", "gathers", "scatters"),
    [
        ("mlp_fig2.hlo", 2, 0),
        ("mlp_fig3.hlo", 3, 1),
        ("mlp_mega.hlo", 1, 1),
        ("a_v4-2x2x2_1d_1x8_d4096_L2_scan.hlo.gz", 17, 6),
        ("we_v4-4x4x4_2d_8x8_d8192_L2_scan.hlo.gz", 33, 13),
    ],
)
def test_all_sites_of_real_modules_are_found(name: str, gathers: int, scatters: int) -> None:
    kinds = [c.kind for c in planned(load(PARTITIONED / name)).candidates if c.einsums]
    assert (kinds.count("all-gather-einsum"), kinds.count("einsum-reduce-scatter")) == (gathers, scatters)


PRODUCTION = {
    # Einsums that the TPU compiler's own output for the same program (`tpu-compiler/*_default`) runs with permutes,
    # by op_name up to the last two parts, and how many of them.
    "we_v4-4x4x4_2d_8x8_d8192_L2_scan.hlo.gz": {
        "jvp()/while/body/closed_call/bshd,hdf->bsf/dot_general": 1,
        "jvp()/while/body/closed_call/bsh,hf->bsf/dot_general": 1,
        "jvp()/while/body/closed_call/bsf,fh->bsh/dot_general": 1,
        "checkpoint/rematted_computation/bshd,hdf->bsf/dot_general": 1,
        "checkpoint/rematted_computation/bsf,fh->bsh/dot_general": 1,
        "checkpoint/bsf,fhd->bshd/dot_general": 6,
        "checkpoint/bsf,fh->bsh/dot_general": 2,
        "checkpoint/bshd,hdf->bsf/dot_general": 2,
        "checkpoint/bsh,hf->bsf/dot_general": 2,
    },
}


@pytest.mark.parametrize("name", PRODUCTION)
def test_what_the_production_compiler_decomposes_is_decomposed(name: str) -> None:
    """Or would be at its price: it takes a scatter that it leaves whole for twice as long as we do. Two of the sites
    pay by that alone, the projections that attention ends with, beside which there is nothing to do."""
    of = load(PARTITIONED / name)
    found = planned(of)
    done = [of.instructions[e].metadata.op_name for p in found.parts for e in einsums_of_site(p.site)]
    at_its_price = [
        of.instructions[e].metadata.op_name
        for c in found.candidates
        if not c.chosen and c.kind == "einsum-reduce-scatter" and c.gate is not None
        for e in c.einsums
        if c.gate.gain + c.gate.comm >= 0 and of.instructions[e].metadata.op_name not in done
    ]
    for ending, count in PRODUCTION[name].items():
        assert sum(op_name.endswith(ending) for op_name in (*done, *at_its_price)) >= count, ending
    assert {op_name.rsplit("/", 2)[1] for op_name in at_its_price} == {"bshd,hdf->bsf"}
    assert len(at_its_price) == 2


def test_the_production_compiler_takes_a_whole_scatter_for_twice_as_long_as_a_gather() -> None:
    name = "we_v4-4x4x4_2d_8x8_d8192_L2_scan_offasync"
    text = gzip.decompress((COMPILED / f"{name}.schedule.txt.gz").read_bytes()).decode()
    forward = read_schedule(text, name).computations[0]
    at = {n: (start, end) for n, start, end in zip(forward.names, forward.start, forward.end, strict=True)}
    # The fusion is an `all-reduce-scatter` of bf16[8,2048,8192] over 8 chips; the gather gives an array of that size.
    scatter = at["fusion.296"][1] - at["fusion.296"][0]
    gather = at["all-gather-done"][0] - at["all-gather-start"][0]
    assert scatter == pytest.approx(2 * gather, rel=1e-3)


# --- gathers ---------------------------------------------------------------------------------------------------------

MATMUL = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
SECOND = ALL.replace("channel_id=1", "channel_id=2")

TWO_EQUAL = f"""
  w = f32[256,1024] parameter(0)
  x = f32[1024,1024] parameter(1)
  u = f32[1024,1024] parameter(2)
  g = f32[1024,1024] all-gather(w), dimensions={{0}}, {ALL}
  k = f32[256,1024] copy(w)
  h = f32[1024,1024] all-gather(k), dimensions={{0}}, {SECOND}
  y = f32[1024,1024] dot(x, g), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  z = f32[1024,1024] dot(OTHER, h), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT out = (f32[1024,1024], f32[1024,1024]) tuple(y, z)
"""


def test_equal_gathers_share_one_loop() -> None:
    of = module(TWO_EQUAL.replace("OTHER", "u"))
    found = planned(of, gate=False)
    (part,) = found.parts
    assert isinstance(part.site, GatherSite)
    assert [of.instructions[c].name for c in part.site.collectives] == ["g", "h"]
    assert [of.instructions[u.instruction].name for u in part.site.uses] == ["y", "z"]
    assert "one loop with the equal h" in verdicts(found)["g"].reason


def test_an_einsum_that_depends_on_another_has_a_loop_of_its_own_gather() -> None:
    of = module(TWO_EQUAL.replace("OTHER", "y"))
    found = planned(of, gate=False)
    assert [[of.instructions[c].name for c in collectives_of_site(p.site)] for p in found.parts] == [["g"], ["h"]]


ONE_TWICE = f"""
  w = f32[256,1024] parameter(0)
  x = f32[1024,1024] parameter(1)
  g = f32[1024,1024] all-gather(w), dimensions={{0}}, {ALL}
  y = f32[1024,1024] dot(x, g), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT z = f32[1024,1024] dot(y, g), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
"""


@pytest.mark.parametrize("rows", [1024, 65536])
def test_a_dependent_einsum_is_rebuilt_for_or_gathers_again(rows: int) -> None:
    of = module(ONE_TWICE.replace("f32[1024,1024] parameter", f"f32[{rows},1024] parameter").replace(
        "y = f32[1024,", f"y = f32[{rows},").replace("z = f32[1024,", f"z = f32[{rows},"))  # fmt: skip
    found = planned(of, gate=False)
    reason = verdicts(found)["g"].reason
    first = found.parts[0].site
    assert isinstance(first, GatherSite)
    if len(found.parts) == 1:
        assert first.rebuild
        assert "z depends on it and reads the array put together again" in reason
    else:
        assert not first.rebuild
        assert "z depends on it and gathers once more" in reason


def test_a_loop_that_would_wait_for_itself_is_a_straight_line() -> None:
    body = f"""
  w = f32[256,1024] parameter(0)
  zero = f32[] constant(0)
  g = f32[1024,1024] all-gather(w), dimensions={{0}}, {ALL}
  r = f32[1024] reduce(g, zero), dimensions={{0}}, to_apply=add
  x = f32[1024,1024] broadcast(r), dimensions={{1}}
  ROOT y = f32[1024,1024] dot(x, g), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
"""
    (part,) = planned(module(body), gate=False).parts
    assert part.variant.form == "unrolled"
    refused = verdicts(planned(module(body), gate=False, form="rolled"))["g"]
    assert not refused.chosen
    assert refused.reason == "the gathered array is needed before y"


CIRCLE = f"""
  v = f32[256,1024] parameter(0)
  w = f32[256,1024] parameter(1)
  x = f32[1024,1024] parameter(2)
  g = f32[1024,1024] all-gather(v), dimensions={{0}}, {ALL}
  h = f32[1024,1024] all-gather(w), dimensions={{0}}, {SECOND}
  a = f32[1024,1024] dot(x, g), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  b = f32[1024,1024] dot(x, h), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  c = f32[1024,1024] dot(b, g), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  d = f32[1024,1024] dot(a, h), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT out = (f32[1024,1024], f32[1024,1024]) tuple(c, d)
"""


def test_loops_do_not_wait_for_each_other_in_a_circle() -> None:
    of = module(CIRCLE)
    straight = planned(of, gate=False)
    assert [len(einsums_of_site(p.site)) for p in straight.parts] == [2, 2]
    rolled = planned(of, gate=False, form="rolled")
    assert len(rolled.parts) == 1
    assert any("wait for each other" in c.reason for c in rolled.candidates if not c.chosen)
    done = Decompose(gate=False, form="rolled").apply(of, Context(machine(of)))
    assert any(i.opcode == "while" for i in done.module.instructions.values())


# --- rivals ----------------------------------------------------------------------------------------------------------

FOURS = "replica_groups=[2,4]<=[8], use_global_device_ids=true"
RIVALS = f"""
  x = f32[4096,1024] parameter(0)
  w = f32[1024,2048] parameter(1)
  g = f32[4096,4096] all-gather(x), dimensions={{1}}, channel_id=1, {FOURS}
  h = f32[4096,2048] all-gather(w), dimensions={{0}}, channel_id=2, {FOURS}
  ROOT y = f32[4096,2048] dot(g, h), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
"""


@pytest.mark.parametrize(
    ("rows", "columns", "rule"),
    [
        (1024, 1280, "smaller shards"),
        (4096, 8192, "longer transfer"),
        (4096, 512, "smaller loss"),
        (4096, 16384, "larger gain"),
    ],
)
def test_an_einsum_with_two_gathers_overlaps_with_one_and_both_gains_are_shown(
    rows: int, columns: int, rule: str
) -> None:
    text = RIVALS.replace("[4096,1024]", f"[{rows},1024]").replace("[4096,4096]", f"[{rows},4096]")
    text = text.replace("y = f32[4096", f"y = f32[{rows}").replace(",2048]", f",{columns}]")
    found = planned(module(text, partitions=8), gate=False)
    assert len(found.parts) == 1
    by_id = verdicts(found)
    (loser,) = [c for c in by_id.values() if not c.chosen]
    (winner,) = [c for c in by_id.values() if c.chosen]
    assert f"y overlaps with {winner.id} instead (gain " in loser.reason
    assert loser.gate is not None
    assert winner.gate is not None
    won, lost = winner.gate, loser.gate
    # Shards are as large as transfers are long here: a fast einsum goes to the smaller, a slow one to the longer.
    fast = won.comp < min(won.comm, lost.comm)
    assert {
        "smaller shards": fast and won.comm < lost.comm and 2 * won.gain <= lost.gain < 0,
        "longer transfer": not fast and won.comm > lost.comm and won.gain / 2 <= lost.gain,
        "smaller loss": 0 > won.gain > lost.gain / 2,
        "larger gain": won.gain > 0 > lost.gain,
    }[rule]


@pytest.mark.parametrize("name", ["g", "h"])
def test_the_user_decides_between_rivals(name: str) -> None:
    by_id = verdicts(planned(module(RIVALS, partitions=8), force=(name,)))
    assert by_id[name].chosen
    assert "forced by the plan" in by_id[name].reason
    forbidden = verdicts(planned(module(RIVALS, partitions=8), gate=False, forbid=(name,)))
    assert not forbidden[name].chosen
    assert forbidden[name].reason == "left as it is by the plan (forbid)"
    assert forbidden["h" if name == "g" else "g"].chosen


# --- scatters, all-reduces, chains -----------------------------------------------------------------------------------


def test_of_two_losses_the_smaller_stands_where_all_is_decomposed() -> None:
    """The rule for gains that are hard to compare would give the einsums of three scatters to gathers that lose more
    than twice as much."""
    found = verdicts(planned(load(SAMPLES / "mlp_fig3_train_8x8_large.hlo"), gate=False, ring="both", blocks="stacked"))
    scatters = [c for c in found.values() if c.kind == "einsum-reduce-scatter"]
    assert len(scatters) == 4
    assert all(c.chosen and c.gate is not None and c.gate.gain < 0 for c in scatters)


def test_a_chain_is_one_site() -> None:
    of = load(PARTITIONED / "mlp_mega.hlo")
    found = planned(of, chain="on")
    (part,) = found.parts
    assert isinstance(part.site, ChainSite)
    names = [of.instructions[s.instruction].name for s in part.site.middle]
    assert names == ["max.6", "max.7"]
    assert [s.slices for s in part.site.middle] == [(None,), (0, 0)]
    by_id = verdicts(found)
    assert by_id["all-gather.1..all-reduce.1"].kind == "chain"
    assert all(c.chosen for c in found.candidates)
    assert "one chain with all-reduce.1" in by_id["all-gather.1"].reason


def test_without_chains_both_ends_are_sites() -> None:
    found = planned(load(PARTITIONED / "mlp_mega.hlo"), chain="off", gate=False)
    assert [type(p.site) for p in found.parts] == [GatherSite, ScatterSite]
    assert all(c.kind != "chain" for c in found.candidates)


CHAIN = f"""
  x = f32[256,1024] parameter(0)
  v = f32[1024,512] parameter(1)
  w = f32[512,1024] parameter(2)
  m = f32[1024,512] parameter(3)
  s = f32[512] parameter(4)
  g = f32[1024,1024] all-gather(x), dimensions={{0}}, {ALL}
  first = f32[1024,512] dot(g, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  bias = f32[1024,512] broadcast(s), dimensions={{1}}
  p = f32[1024,512] add(first, bias)
  q = f32[1024,512] multiply(p, m)
  y = f32[1024,1024] dot(q, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  r = f32[256,1024] reduce-scatter(y), dimensions={{0}}, to_apply=add, {SECOND}
"""


def test_other_operands_of_the_middle_are_sliced() -> None:
    of = module(CHAIN + "  ROOT out = f32[256,1024] copy(r)")
    (part,) = planned(of, chain="on", gate=False).parts
    assert isinstance(part.site, ChainSite)
    assert [(of.instructions[s.instruction].name, s.slices) for s in part.site.middle] == [
        ("p", (0, 0)),
        ("q", (0, 0)),
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("ROOT out", "  t = f32[1024,512] tanh(p)\n  ROOT out"), "p in the middle is also read by t"),
        (("ROOT out", "  t = f32[1024,1024] tanh(g)\n  ROOT out"), "also read by others than the einsums of the chain"),
        (
            ("ROOT out", f"  t = f32[1024,512] dot(g, v), {MATMUL}\n  ROOT out"),
            "t reads the gather but is not part of the chain",
        ),
        (("multiply(p, m)", "reverse(p), dimensions={0}"), None),
    ],
)  # fmt: skip
def test_what_breaks_a_chain(change: tuple[str, str], reason: str | None) -> None:
    before, after = change
    lines = f"{CHAIN}  ROOT out = f32[256,1024] copy(r)"
    changed = lines.replace(before, after)
    out = "ROOT out = f32[256,1024] copy(r)"
    if "t = " in after:
        shape = "f32[1024,512]" if "f32[1024,512]" in after else "f32[1024,1024]"
        changed = changed.replace(out, f"ROOT out = (f32[256,1024], {shape}) tuple(r, t)")
    found = planned(module(changed), chain="on", gate=False)
    assert not any(isinstance(p.site, ChainSite) for p in found.parts)
    if reason is not None:
        assert any(reason in c.reason for c in found.candidates), [c.reason for c in found.candidates]


def test_blocks_along_another_dimension_break_a_chain() -> None:
    along = "y = f32[1024,1024] dot(q, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    across = CHAIN.replace(along, "y = f32[512,512] dot(q, w), lhs_contracting_dims={0}, rhs_contracting_dims={1}")
    of = module(across.replace("r = f32[256,1024]", "r = f32[128,512]") + "  ROOT out = f32[128,512] copy(r)")
    found = planned(of, chain="on", gate=False)
    assert any("the blocks of first lie along another dimension" in c.reason for c in found.candidates)


WHOLE = f"""
  x = f32[4096,16384] parameter(0)
  w = f32[16384,4096] parameter(1)
  v = f32[4096,16384] parameter(2)
  y = f32[4096,4096] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  r = f32[4096,4096] all-reduce(y), to_apply=add, {ALL}
  ROOT z = f32[4096,16384] dot(r, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
"""


def test_an_all_reduce_is_taken_apart_when_forced_or_when_both_sides_gain() -> None:
    forced = planned(module(WHOLE), force=("r",))
    assert [type(p.site) for p in forced.parts] == [AllReduceSite]
    free = verdicts(planned(module(WHOLE)))["r"]
    assert free.gate is not None
    assert free.chosen == (free.gate.gain > 0)
    if not free.chosen:
        assert free.reason.startswith("its result is used whole; as a reduce-scatter and an all-gather: ")


def residual(contracted: int) -> Module:
    return module(f"""
  x = f32[4096,{contracted}] parameter(0)
  w = f32[{contracted},4096] parameter(1)
  before = f32[4096,4096] parameter(2)
  y = f32[4096,4096] dot(x, w), {MATMUL}
  r = f32[4096,4096] all-reduce(y), to_apply=add, {ALL}
  ROOT after = f32[4096,4096] add(before, r)
""")


@pytest.mark.parametrize("form", ["rolled", "unrolled"])
def test_an_all_reduce_that_is_added_to_something_ends_in_an_all_gather(form: Literal["rolled", "unrolled"]) -> None:
    verdict = verdicts(planned(residual(16384)))["r"]
    assert verdict.chosen
    assert verdict.reason.endswith("its result is used whole: an all-gather follows the loop")
    of = residual(16384)
    done = Decompose(form=form).apply(of, Context(machine(of))).module
    opcodes = Counter(i.opcode for i in done.instructions.values())
    assert (opcodes["all-reduce"], opcodes["all-gather"]) == (0, 1)


def test_taking_an_all_reduce_apart_must_pay_even_without_the_gate() -> None:
    verdict = verdicts(planned(residual(16), gate=False))["r"]
    assert not verdict.chosen
    assert verdict.reason.startswith("its result is used whole; as a reduce-scatter and an all-gather: ")
    assert verdicts(planned(residual(16), force=("r",)))["r"].chosen


def test_a_taken_apart_all_reduce_puts_the_array_together_for_what_comes_later() -> None:
    later = WHOLE.replace("ROOT z", "z") + (
        "  ROOT t = f32[16384,4096] dot(z, r), lhs_contracting_dims={0}, rhs_contracting_dims={0}"
    )
    of = module(later)
    (part,) = planned(of, force=("r",)).parts
    assert isinstance(part.site, AllReduceSite)
    assert [of.instructions[u.instruction].name for u in part.site.gather.uses] == ["z"]
    assert part.site.gather.rebuild
    done = Decompose(force=("r",), form="rolled").apply(of, Context(machine(of))).module
    assert all(i.opcode != "all-reduce" for i in done.instructions.values())


# --- overrides, rows, options ----------------------------------------------------------------------------------------


def test_names_that_are_not_there() -> None:
    of = load(PARTITIONED / "mlp_fig2.hlo")
    with pytest.raises(UsageError, match=r"force=all-gather\.9: .* did you mean all-gather\."):
        planned(of, force=("all-gather.9",))
    with pytest.raises(UsageError, match=r"forbid=nothing: the module has no collective or row of that name"):
        planned(of, forbid=("nothing",))


def test_alike_sites_are_one_row_and_overridden_together() -> None:
    of = load(PARTITIONED / "a_v4-2x2x2_1d_1x8_d4096_L2_scan.hlo.gz")
    rows: dict[str, list[str]] = {}
    for candidate in planned(of).candidates:
        rows.setdefault(candidate.row, []).append(candidate.id)
    row, members = max(rows.items(), key=lambda item: len(item[1]))
    assert len(members) > 1
    assert row == f"{members[0]}*"
    forced = planned(of, gate=True, force=(row,)).candidates
    assert all(c.chosen for c in forced if c.id in members)
    forbidden = planned(of, gate=False, forbid=(row,)).candidates
    assert not any(c.chosen for c in forbidden if c.id in members)


def test_collectives_in_loops_count_their_trips() -> None:
    of = load(PARTITIONED / "a_v4-2x2x2_1d_1x8_d4096_L2_scan.hlo.gz")
    assert {c.trips for c in planned(of).candidates if c.einsums} == {2}


def test_forms_that_are_asked_for() -> None:
    of = load(PARTITIONED / "mlp_fig2.hlo")
    for form in ("rolled", "unrolled"):
        for ring in ("one", "both"):
            for part in planned(of, gate=False, form=form, ring=ring).parts:
                assert (part.variant.form, part.variant.ring) == (form, ring)


def test_a_form_that_does_not_apply_says_why() -> None:
    body = RIVALS.replace(FOURS, FOURS.replace("[2,4]", "[4,2]"), 1).replace("x = f32[4096,1024]", "x = f32[4096,2048]")
    by_id = verdicts(planned(module(body, partitions=8), gate=False, ring="both", forbid=("h",)))
    assert not by_id["g"].chosen
    assert "ring of 2" in by_id["g"].reason


def test_gpus_keep_one_permute_per_pair_of_devices() -> None:
    of = load(PARTITIONED / "mlp_fig2.hlo")
    assert {p.variant.ring for p in planned(of, chip="h100", gate=False).parts} == {"one"}
    one, both = (
        verdicts(planned(of, chip="h100", gate=False, ring=ring))["all-gather.1"].gate for ring in ("one", "both")
    )
    assert one is not None
    assert both is not None
    assert both.ring >= one.ring


def test_long_rings_are_loops() -> None:
    ring = "channel_id=1, replica_groups=[1,32]<=[32], use_global_device_ids=true"
    body = TWO_EQUAL.replace(ALL, ring).replace(SECOND, ring.replace("=1,", "=2,", 1))
    body = body.replace("f32[256,1024]", "f32[32,1024]").replace("OTHER", "u")
    (part,) = planned(module(body, partitions=32), gate=False).parts
    assert part.variant.form == "rolled"


def test_the_pass_changes_what_it_planned_and_nothing_else() -> None:
    of = load(PARTITIONED / "mlp_fig2.hlo")
    done = Decompose(gate=False).apply(of, Context(machine(of)))
    opcodes = [i.opcode for i in done.module.instructions.values()]
    assert "all-gather" not in opcodes
    assert opcodes.count("collective-permute") == 2 * 7
    untouched = Decompose(forbid=("all-gather.1", "all-gather.3")).apply(of, Context(machine(of)))
    assert untouched.module is of
