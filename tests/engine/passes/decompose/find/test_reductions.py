"""Each pattern around a reduction that is found, and each reason of a refusal, on a text of a few lines."""

from __future__ import annotations

import re

import pytest

from engine.passes.decompose.site import Case, Step
from tests.engine.passes.decompose.texts import ALL, examined, module

MATMUL = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
BATCHED = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"
SCATTER = """
  x = f32[8,12] parameter(0)
  w = f32[12,10] parameter(1)
  y = f32[8,10] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
"""
POSITION = """
  d = u32[] partition-id()
  i = s32[] convert(d)
  size = s32[] constant(2)
  at = s32[] multiply(i, size)
  zero = s32[] constant(0)
"""


def test_reduce_scatter() -> None:
    body = f"{SCATTER}\n  ROOT r = f32[2,10] reduce-scatter(y), dimensions={{0}}, to_apply=add, {ALL}"
    found = examined(module(body))
    assert found.scatter is not None
    assert found.scatter.positions == (0, 1, 2, 3)
    assert (found.scatter.use.case, found.scatter.use.side, found.scatter.use.dim) == (Case.SCATTER, 0, 0)
    assert found.scatter.result == found.scatter.collective


def test_all_reduce_and_slice_through_what_lies_between() -> None:
    body = f"""{SCATTER}{POSITION}
  c = bf16[8,10] convert(y)
  t = bf16[10,8] transpose(c), dimensions={{1,0}}
  r = bf16[10,8] all-reduce(t), to_apply=add, {ALL}
  q = bf16[2,5,8] reshape(r)
  k = f32[2,5,8] convert(q)
  ROOT cut = f32[2,5,2] dynamic-slice(k, zero, zero, at), dynamic_slice_sizes={{2,5,2}}"""
    of = module(body, before=ADD_BF16)
    found = examined(of)
    site = found.scatter
    assert site is not None, found.reason
    assert (site.dim, site.use.side, site.use.dim, site.use.output_dim) == (1, 0, 0, 0)
    assert of.instructions[site.result].name == "cut"
    assert [(s.dim, s.block) for s in site.use.steps] == [(0, 2), (1, 2)]
    assert [(s.dim, s.block) for s in site.tail] == [(2, 2), (2, 2)]


ADD_BF16 = "add {\n  a = bf16[] parameter(0)\n  b = bf16[] parameter(1)\n  ROOT sum = bf16[] add(a, b)\n}"


def test_scatter_over_a_batch_dimension_slices_both_operands() -> None:
    body = f"""
  x = f32[8,3,12] parameter(0)
  w = f32[8,12,5] parameter(1)
  y = f32[8,3,5] dot(x, w), {BATCHED}
  ROOT r = f32[2,3,5] reduce-scatter(y), dimensions={{0}}, to_apply=add, {ALL}"""
    found = examined(module(body))
    assert found.scatter is not None
    assert (found.scatter.use.dim, found.scatter.use.other_dim) == (0, 0)


def test_padding_before_a_scatter() -> None:
    body = f"""
  x = f32[7,12] parameter(0)
  w = f32[12,10] parameter(1)
  y = f32[7,10] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  zero = f32[] constant(0)
  p = f32[8,10] pad(y, zero), padding=0_1x0_0
  ROOT r = f32[2,10] reduce-scatter(p), dimensions={{0}}, to_apply=add, {ALL}"""
    found = examined(module(body))
    assert found.scatter is not None, found.reason
    assert found.scatter.use.valid == 7
    assert found.scatter.use.steps[0] == Step(found.scatter.use.steps[0].instruction, 0, 0, 2)


MAXIMUM = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT m = f32[] maximum(a, b)\n}"
TWICE = """add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  two = f32[] constant(2)
  c = f32[] multiply(b, two)
  ROOT s = f32[] add(a, c)
}"""
"""No sum, although an addition comes last: partial results would be doubled once a hop."""
ONE = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, a)\n}"


@pytest.mark.parametrize(
    ("body", "before", "kind", "reason"),
    [
        *(
            (
                f"{SCATTER}\n  ROOT r = f32[2,10] reduce-scatter(y), dimensions={{0}}, to_apply=add, {ALL}",
                reducer,
                "einsum-reduce-scatter",
                r"reduces by more than the sum of two values \(add\)",
            )
            for reducer in (TWICE, ONE)
        ),
        (
            f"{SCATTER}\n  ROOT r = f32[2,10] reduce-scatter(y), dimensions={{0}}, to_apply=add, {ALL}",
            MAXIMUM,
            "einsum-reduce-scatter",
            "reduces by maximum, not by a sum",
        ),
        (
            f"{SCATTER}\n  r = f32[2,10] reduce-scatter(y), dimensions={{0}}, to_apply=add, {ALL}\n"
            "  ROOT out = (f32[2,10], f32[8,10]) tuple(r, y)",
            None,
            "einsum-reduce-scatter",
            "y is read by r and out",
        ),
        (
            f"  z = f32[8,10] parameter(0)\n  n = f32[8,10] reverse(z), dimensions={{0}}\n"
            f"  ROOT r = f32[2,10] reduce-scatter(n), dimensions={{0}}, to_apply=add, {ALL}",
            None,
            "other",
            r"reduces n \(reverse\), not an einsum",
        ),
        (
            "  x = f32[7,12] parameter(0)\n  w = f32[12,9] parameter(1)\n"
            "  y = f32[7,9] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
            f"  ROOT r = f32[7,9] all-reduce(y), to_apply=add, {ALL}",
            None,
            "all-reduce",
            "its result is used whole; no dimension of it is divisible by 4",
        ),
        (
            f"{SCATTER}\n  r = f32[8,10] all-reduce(y), to_apply=add, {ALL}\n"
            "  ROOT out = (f32[8,10], f32[8,10]) tuple(r, y)",
            None,
            "all-reduce",
            "its result is used whole; y is read by r and out",
        ),
        (
            f"{SCATTER}{POSITION}\n  r = f32[8,10] all-reduce(y), to_apply=add, {ALL}\n"
            "  ROOT cut = f32[2,5] dynamic-slice(r, at, zero), dynamic_slice_sizes={2,5}",
            None,
            "einsum-reduce-scatter",
            "sliced along 2 dimensions at once",
        ),
        (
            f"{SCATTER}{POSITION}\n  r = f32[8,10] all-reduce(y), to_apply=add, {ALL}\n"
            "  ROOT cut = f32[2,10] dynamic-slice(r, zero, zero), dynamic_slice_sizes={2,10}",
            None,
            "einsum-reduce-scatter",
            "two positions of a group keep the same block",
        ),
    ],
)
def test_reductions_that_are_refused(body: str, before: str | None, kind: str, reason: str) -> None:
    found = examined(module(body) if before is None else module(body, before=before))
    assert found.scatter is None
    assert found.kind == kind
    assert re.search(reason, found.reason), found.reason


def test_a_whole_all_reduce_between_einsums() -> None:
    body = f"""{SCATTER}
  v = f32[10,6] parameter(2)
  r = f32[8,10] all-reduce(y), to_apply=add, {ALL}
  ROOT z = f32[8,6] dot(r, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"""
    found = examined(module(body))
    assert found.whole is not None
    assert found.kind == "all-reduce"
    assert len(found.einsums) == 2
    assert found.whole.scatter.dim == found.whole.gather.dim == 0
    assert found.whole.gather.operand == found.whole.scatter.collective


def test_combined_reductions() -> None:
    body = f"""{SCATTER}
  z = f32[8,10] dot(x, w), {MATMUL}
  ROOT r = (f32[8,10], f32[8,10]) all-reduce(y, z), to_apply=add, {ALL}"""
    found = examined(module(body))
    assert found.reason == "2 arrays are combined in one"


@pytest.mark.parametrize(
    "readers",
    [
        "",
        "  n = f32[8,10] negate(r)\n",
        f"{POSITION}  cut = f32[2,10] dynamic-slice(r, at, zero), dynamic_slice_sizes={{2,10}}\n",
    ],
)
def test_an_all_reduce_that_is_read_whole_is_a_scatter_and_an_all_gather(readers: str) -> None:
    body = f"{SCATTER}\n  r = f32[8,10] all-reduce(y), to_apply=add, {ALL}\n{readers}  ROOT out = (f32[8,10]) tuple(r)"
    found = examined(module(body))
    assert found.reason == ""
    assert (found.kind, found.case) == ("all-reduce", "scatter")
    (site,) = found.gathered_again  # 10 columns are not divisible by 4 positions
    assert (site.dim, site.result, site.gathered) == (0, site.collective, True)


def test_a_long_way_back_to_an_einsum_is_not_followed_for_ever() -> None:
    back = ["  n0 = f32[8,10] negate(y)"] + [f"  n{k} = f32[8,10] negate(n{k - 1})" for k in range(1, 2000)]
    reduced = f"  ROOT r = f32[2,10] reduce-scatter(n1999), dimensions={{0}}, to_apply=add, {ALL}"
    found = examined(module(SCATTER + "\n".join(back) + "\n" + reduced))
    assert found.reason == "more than 100 instructions lie between it and an einsum"
