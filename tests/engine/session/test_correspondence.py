from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.session.correspondence import Correspondence, Side, correspond, stem
from tests.places import COMPILED, PARTITIONED, SAMPLES


def module(text: str) -> Module:
    return read_here(text.encode(), "m.hlo")


def sample(name: str) -> Module:
    return read_here((SAMPLES / name).read_bytes(), name)


def named(found: Correspondence, one: Module, two: Module, name: str) -> set[str]:
    """Names in `two` of what stands for `name` of `one`."""
    rows = found.one.rows_of(one.by_name[name].id)
    return {two.instructions[i].name for row in rows for i in found.two.members[row]}


BEFORE = """
HloModule before
ENTRY e {
  x = f32[8,8] parameter(0), metadata={op_name="x"}
  w = f32[8,8] parameter(1), metadata={op_name="w"}
  up = f32[8,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/up/dot"}
  act = f32[8,8] tanh(up), metadata={op_name="jit(f)/up/tanh"}
  one = f32[8,8] dot(act, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot"}
  two = f32[8,8] dot(one, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot"}
  ROOT old = f32[8,8] negate(two), metadata={op_name="jit(f)/neg"}
}
"""

FUSED = """
HloModule fused
inside {
  p = f32[8,8] parameter(0)
  q = f32[8,8] parameter(1)
  i = f32[8,8] convolution(p, q), dim_labels=bf_io->bf, metadata={op_name="jit(f)/up/dot"}
  ROOT j = f32[8,8] tanh(i), metadata={op_name="jit(f)/up/tanh"}
}
ENTRY e {
  x = f32[8,8] parameter(0), metadata={op_name="x"}
  w = f32[8,8] parameter(1), metadata={op_name="w"}
  both = f32[8,8] fusion(x, w), kind=kOutput, calls=inside, metadata={op_name="jit(f)/up/tanh"}
  a = f32[8,8] dot(both, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot"}
  b = f32[8,8] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot"}
  ROOT new = f32[8,8] abs(b), metadata={op_name="jit(f)/abs"}
}
"""


def test_the_same_op_name_matches_one_to_one_where_there_are_as_many() -> None:
    one, two = module(BEFORE), module(FUSED)
    found = correspond(one, two)
    assert found.by == "op_name"
    assert named(found, one, two, "one") == {"a"}
    assert named(found, one, two, "two") == {"b"}
    assert named(found, one, two, "old") == set()
    assert (str(found.one.count), str(found.two.count)) == ("4 of 5", "3 of 4")


def test_a_fusion_stands_for_the_einsum_in_it() -> None:
    one, two = module(BEFORE), module(FUSED)
    found = correspond(one, two)
    assert named(found, one, two, "up") == {"i"}
    fusion = two.by_name["both"].id
    assert found.two.holder[two.by_name["j"].id] == fusion
    assert found.two.rows_of(fusion) == found.one.rows_of(one.by_name["up"].id)
    assert named(found.turned(), two, one, "both") == {"up"}


def test_unlike_numbers_of_one_op_name_match_all_against_all_unless_shapes_tell() -> None:
    more = BEFORE.replace(
        "ROOT old",
        "three = f32[8,8] dot(two, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
        'metadata={op_name="jit(f)/dot"}\n  ROOT old',
    )
    one, two = module(BEFORE), module(more)
    assert named(correspond(one, two), one, two, "two") == {"one", "two", "three"}
    cast = BEFORE.replace(
        "ROOT old",
        "cast = bf16[8,8] dot(two, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
        'metadata={op_name="jit(f)/dot"}\n  ROOT old',
    )
    wider = module(cast)
    assert named(correspond(one, wider), one, wider, "two") == {"two"}


def test_without_op_names_the_names_are_matched() -> None:
    bare = [re.sub(r", metadata=\{[^}]*\}", "", text) for text in (BEFORE, BEFORE.replace("one", "other"))]
    one, two = module(bare[0]), module(bare[1])
    found = correspond(one, two)
    assert found.by == "name"
    assert named(found, one, two, "up") == {"up"}
    assert named(found, one, two, "one") == set()


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("jit(train)/jvp(layer)/jit(relu)/max", "jit(forward)/layer/jit(relu)/max"),
        ("jit(f)/jit(main)/dot", "jit(f)/dot"),
        ("jit(f)/jvp()/mul", "jit(g)/mul"),
        ("pjit(f)/while/body/dot", "jit(f)/while/body/dot"),
    ],
)
def test_stems_do_not_tell_how_a_program_was_wrapped(one: str, two: str) -> None:
    assert stem(one) == stem(two)


def test_the_backward_pass_keeps_a_stem_of_its_own() -> None:
    assert stem("jit(f)/transpose(jvp(layer))/dot") != stem("jit(f)/jvp(layer)/dot")


def test_a_forward_pass_is_found_in_its_training_step() -> None:
    forward, train = sample("mlp_fig2_forward_4_f32.hlo"), sample("mlp_fig2_train_4_f32.hlo")
    found = correspond(forward, train)
    assert found.one.count.matched == found.one.count.all
    assert found.two.count.matched == found.one.count.all


def test_what_a_compiler_made_of_a_module_is_found_again() -> None:
    name = "a_v4-2x2x2_1d_1x8_d4096_L2_scan"
    loaded = read_here((PARTITIONED / f"{name}.hlo.gz").read_bytes(), name)
    compiled = read_here((COMPILED / f"{name}_off.hlo.gz").read_bytes(), name)
    found = correspond(loaded, compiled)
    lost = [
        i.name
        for c in loaded.proto.computations
        for i in c.instructions
        if i.opcode in ("dot", "all-gather", "reduce-scatter") and not found.one.rows_of(i.id)
    ]
    assert lost == []


@given(
    st.lists(
        st.tuples(st.sampled_from(["f/a", "f/b", ""]), st.sampled_from(["negate", "abs", "exponential"])), max_size=8
    ),
    st.lists(
        st.tuples(st.sampled_from(["f/a", "f/b", "g/c"]), st.sampled_from(["negate", "abs", "exponential"])), max_size=8
    ),
)
def test_rows_hold_both_sides_and_turning_changes_nothing(
    left: list[tuple[str, str]], right: list[tuple[str, str]]
) -> None:
    found = correspond(chain(left), chain(right))
    for side, other in ((found.one, found.two), (found.two, found.one)):
        assert side.members.keys() == other.members.keys()
        for row, ids in side.members.items():
            assert ids
            assert {side.rows[i] for i in ids} == {row}
        assert side.count.matched <= side.count.all
    back = correspond(chain(right), chain(left))
    assert pairs(back.turned().one, back.turned().two) == pairs(found.one, found.two)


def chain(operations: list[tuple[str, str]]) -> Module:
    """One operation after the other, each with its op_name."""
    lines = [
        f'  {"ROOT " if n == len(operations) else ""}i{n} = f32[4] {opcode}(i{n - 1}), metadata={{op_name="{op_name}"}}'
        for n, (op_name, opcode) in enumerate(operations, 1)
    ]
    first = f'  {"" if operations else "ROOT "}i0 = f32[4] parameter(0), metadata={{op_name="x"}}'
    return module("\n".join(("HloModule m", "ENTRY e {", first, *lines, "}")))


def pairs(one: Side, two: Side) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    return {(one.members[row], two.members[row]) for row in one.members}


def test_names_tell_apart_what_has_one_op_name_and_another_order() -> None:
    """As copies in fusions have it, which a file lists in the order of their computations."""
    said = 'metadata={op_name="jit(f)/tanh"}'
    head = "HloModule m\nENTRY e {\n  x = f32[8] parameter(0)\n"
    one = module(f"{head}  t.1 = f32[8] tanh(x), {said}\n  ROOT t.2 = f32[8] tanh(t.1), {said}\n}}")
    two = module(f"{head}  t.2.1 = f32[8] tanh(x), {said}\n  ROOT t.1.1 = f32[8] tanh(t.2.1), {said}\n}}")
    for found, first, second in ((correspond(one, two), one, two), (correspond(two, one), two, one)):
        pairs = {i.name: named(found, first, second, i.name) for i in first.instructions.values() if i.opcode == "tanh"}
        assert all(len(names) == 1 for names in pairs.values())
        assert {(name[:3], next(iter(names))[:3]) for name, names in pairs.items()} == {("t.1", "t.1"), ("t.2", "t.2")}
