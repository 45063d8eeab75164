"""Every case in every form computes what it did, on CPU devices, and keeps the counts of einsums and permutes."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product
from typing import Literal

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from engine.ir.edit import Editor
from engine.ir.module import Module
from engine.passes.decompose.emit.emit import emit, why_not
from engine.passes.decompose.rings.variants import Variant
from tests.engine.passes.decompose.cases import (
    EINSUMS,
    Program,
    check,
    decomposed,
    module_of,
    rings,
    sized,
    variants,
)

KINDS = ("one", "consecutive", "strided", "irregular")
QUICK = [(2, "strided"), (3, "irregular"), (5, "one"), (6, "one"), (8, "one")]
FULL = [pair for pair in product(range(2, 9), KINDS) if pair not in QUICK]
STACKED = [variant for variant in variants(blocks="stacked") if variant.both]
SEPARATE = [variant for variant in variants(blocks="separate") if variant.both]


def check_matrix(
    count: int, kind: str, dtype: str = "f32", accumulate: Literal["same", "f32"] = "same", every: int = 1
) -> None:
    """All cases in every `every`-th form."""
    groups, devices = rings(count, kind)
    pairs = [
        (sized(program, groups, devices, dtype=dtype, side=side), variant)
        for program, variant in product(EINSUMS.values(), variants(accumulate=accumulate)[::every])
        for side in ((0,) if program.scatter else (0, 1))
        if side == 0 or program.blocked in program.rhs
    ]
    programs, chosen = [p for p, _ in pairs], [v for _, v in pairs]
    _, after, done = decomposed(programs, chosen)
    assert len(done) > len(pairs) // 4
    check(after, programs)


@pytest.mark.parametrize(("count", "kind"), QUICK)
def test_every_case_in_every_form(count: int, kind: str) -> None:
    check_matrix(count, kind)


@pytest.mark.full
@pytest.mark.parametrize(("count", "kind"), FULL)
def test_every_case_in_every_form_for_all_groups(count: int, kind: str) -> None:
    check_matrix(count, kind)


@pytest.mark.parametrize("dtype", ["bf16", "f16", "s32", "s8", "c64", "f8e4m3fn", "f8e5m2"])
def test_every_type(dtype: str) -> None:
    check_matrix(4, "one", dtype, every=3)


@pytest.mark.full
@pytest.mark.parametrize(("count", "dtype"), list(product((2, 3, 5, 8), ("bf16", "f16", "s32", "c64"))))
def test_every_type_for_all_sizes(count: int, dtype: str) -> None:
    check_matrix(count, "one", dtype)


@pytest.mark.parametrize("dtype", ["bf16", "f8e4m3fn"])
def test_accumulation_in_f32(dtype: str) -> None:
    check_matrix(5, "one", dtype, "f32", every=3)


def test_f32_accumulators_of_narrow_sums() -> None:
    groups, devices = rings(4, "one")
    program = sized(EINSUMS["contracting"], groups, devices, dtype="bf16")
    _, after, _ = decomposed([program], [Variant(accumulate="f32")])
    entry = after.entry.instructions
    assert {i.opcode for i in entry if i.shape.element_type == 11} >= {"add", "dot"}
    assert not [i for i in entry if i.opcode == "add" and i.shape.element_type == 16]


@pytest.mark.parametrize(("case", "dims"), [("non-contracting", 3), ("scatter", 3), ("contracting", 2), ("batch", 3)])
@pytest.mark.parametrize("count", [4, 5])
def test_blocks_are_stacked_where_they_are_of_a_free_dimension(case: str, dims: int, count: int) -> None:
    groups, devices = rings(count, "one")
    program = sized(EINSUMS[case], groups, devices)
    for variant in STACKED[::3]:
        _, after, done = decomposed([program], [variant])
        if done:
            dots = [i for c in after.proto.computations for i in c.instructions if i.opcode == "dot"]
            assert max(len(dot.shape.dimensions) for dot in dots) == dims
            check(after, [program])


@pytest.mark.parametrize("case", EINSUMS)
@pytest.mark.parametrize("count", [4, 5])
def test_separate_blocks_have_an_einsum_each(case: str, count: int) -> None:
    groups, devices = rings(count, "one")
    program = sized(EINSUMS[case], groups, devices)
    for variant in SEPARATE:
        _, after, done = decomposed([program], [variant])
        if done:
            opcodes = [i.opcode for c in after.proto.computations for i in c.instructions]
            assert "concatenate" not in opcodes
            assert variant.form == "rolled" or opcodes.count("dot") == count
            check(after, [program])


@st.composite
def programs_on(draw: st.DrawFn, count: int, kind: str) -> Program:
    """An einsum with shuffled dimensions, in one of the cases, on either side."""
    groups, devices = rings(count, kind)
    lhs, rhs = draw(st.sampled_from([("mk", "kn"), ("bmk", "bkn"), ("bcmk", "bckn"), ("mhk", "kn"), ("mkj", "jkn")]))
    lhs, rhs = "".join(draw(st.permutations(lhs))), "".join(draw(st.permutations(rhs)))
    scatter = draw(st.booleans())
    side = draw(st.sampled_from((0, 1)))
    base = Program(lhs, rhs, lhs[0], scatter=scatter)
    blocked = draw(st.sampled_from(base.out if scatter else (lhs, rhs)[side]))
    sizes = {index: draw(st.integers(1, 4)) for index in set(lhs + rhs)}
    positions = tuple(draw(st.permutations(range(count)))) if scatter and draw(st.booleans()) else ()
    rebuild = not scatter and draw(st.booleans())
    ring = tuple(draw(st.permutations(range(count)))) if draw(st.booleans()) else ()
    dtype = draw(st.sampled_from(("f32", "f32", "bf16", "s32")))
    program = replace(base, blocked=blocked, side=side, groups=groups, devices=devices, dtype=dtype, ring=ring)
    return replace(program, sizes=sizes, positions=positions, rebuild=rebuild)


@given(st.data())
@settings(max_examples=6)
def test_random_programs(data: st.DataObject) -> None:
    check_random(data)


@pytest.mark.full
@pytest.mark.parametrize("part", range(10))
def test_many_random_programs(part: int) -> None:
    @seed(part)
    @settings(max_examples=12, derandomize=False)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        check_random(data)

    run()


def check_random(data: st.DataObject) -> None:
    count, kind = data.draw(st.sampled_from(range(2, 9))), data.draw(st.sampled_from(KINDS))
    programs = data.draw(st.lists(programs_on(count, kind), min_size=6, max_size=12))
    chosen = [data.draw(st.sampled_from(variants() + STACKED)) for _ in programs]
    _, after, _ = decomposed(programs, chosen)
    check(after, programs, seed=data.draw(st.integers(0, 1000)))


# --- counts ----------------------------------------------------------------------------------------------------------


def executed(module: Module, opcode: str) -> list[tuple[int, int]]:
    """(instruction id, how often it runs) of every instruction with this opcode."""
    trips = {module.entry.id: 1}
    for computation in reversed(module.proto.computations):
        for instruction in computation.instructions:
            if instruction.opcode == "while":
                count = int(instruction.backend_config.split(b'"n":"')[1].split(b'"')[0])
                trips[instruction.called_computation_ids[0]] = trips[computation.id] * count
    found = []
    for computation in module.proto.computations:
        found += [(i.id, trips[computation.id]) for i in computation.instructions if i.opcode == opcode]
    return found


@pytest.mark.parametrize(("case", "variant", "count"), list(product(EINSUMS, variants(), (2, 3, 4, 5, 7, 8))))
def test_counts(case: str, variant: Variant, count: int) -> None:
    groups, devices = rings(count, "one")
    program = sized(EINSUMS[case], groups, devices)
    module = module_of([program])
    site = program.site(module, 0)
    editor = Editor(module)
    reason = why_not(editor, site, variant)
    if reason is not None:
        assert count < 8
        assert reason.startswith(("both directions of a ring of 2 ", f"a ring of {count} leaves no two equal rounds "))
        return
    added = emit(editor, site, variant).added
    assert all(editor.users(i) or editor.is_root(i) for i in added)
    after = editor.finish()
    halved = program.scatter and variant.halved
    einsums = (count + 1) // 2 if variant.both else count
    assert sum(n for _, n in executed(after, "dot")) == einsums * (2 if halved else 1)
    plan = variant.scatter_plan(count) if program.scatter else variant.gather_plan(count)
    hops: dict[int, int] = {}
    for id_, times in executed(after, "collective-permute"):
        pair = after.instructions[id_].source_target_pairs[0]
        shift = (pair.source - pair.target) % count
        shift -= count if variant.both and shift > count // 2 else 0
        hops[shift] = hops.get(shift, 0) + times
    assert sum(hops.values()) == (count - 1) * (2 if halved else 1)
    if count > 4:
        expected: dict[int, int] = {}
        for shift, times in plan.shifts():
            if times:
                expected[shift] = expected.get(shift, 0) + times
        assert hops == expected
    assert not executed(after, "all-gather")
    assert not executed(after, "reduce-scatter")
    channels = [after.instructions[i].channel_id for i, _ in executed(after, "collective-permute")]
    assert len(set(channels)) == len(channels)
    assert (len(executed(after, "while")) == 1) == (variant.form == "rolled")


def test_two_positions_are_refused_both_ways() -> None:
    groups, devices = rings(2, "one")
    program = sized(EINSUMS["scatter"], groups, devices)
    reason = Variant(ring="both").why_not(program.site(module_of([program]), 0))
    assert reason is not None
    assert "ring of 2" in reason


def test_many_sites_take_time_in_what_they_add() -> None:
    """250 gathers and scatters over 16 positions."""
    groups, devices = rings(16, "one")
    plain = [sized(program, groups, devices) for program in EINSUMS.values()]
    module = module_of(plain * 50)
    sites = [program.site(module, c) for c, program in enumerate(plain * 50)]
    began = time.process_time()
    editor = Editor(module)
    for site in sites:
        emit(editor, site, Variant())
    after = editor.finish()
    took = time.process_time() - began
    assert len(after.instructions) > 15_000
    assert took < 6.0, f"{took:.2f} s"
