"""Each pattern that the finder knows, and each reason it refuses with, on a text of a few lines."""

from __future__ import annotations

import re

import pytest

from engine.ir.groups import Mode
from engine.passes.decompose.site import Case, EinsumUse, Step
from tests.engine.passes.decompose.texts import ALL, examined, module

MATMUL = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
BATCHED = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"

GATHER = """
  x = f32[8,12] parameter(0)
  w = f32[3,10] parameter(1)
  full = f32[12,10] all-gather(w), dimensions={0}, ALL
""".replace("ALL", ALL)
EINSUM = "  ROOT y = f32[8,10] dot(x, full), lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def uses(body: str) -> tuple[EinsumUse, ...]:
    found = examined(module(body))
    assert found.gather is not None, found.reason
    return found.gather.readers.uses


@pytest.mark.parametrize(
    ("shard", "full", "dim", "other", "line", "case", "side", "output", "other_dim"),
    [
        ("f32[3,10]", "f32[12,10]", 0, "f32[8,12]", f"f32[8,10] dot(o, g), {MATMUL}",
         Case.CONTRACTING, 1, None, 1),
        ("f32[12,3]", "f32[12,12]", 1, "f32[8,12]", f"f32[8,12] dot(o, g), {MATMUL}",
         Case.NON_CONTRACTING, 1, 1, None),
        ("f32[2,5,4]", "f32[8,5,4]", 0, "f32[8,4,6]",
         f"f32[8,5,6] dot(g, o), {BATCHED}",
         Case.BATCH, 0, 0, 0),
        ("f32[2,5]", "f32[8,5]", 0, "f32[5,6]", "f32[8,6] convolution(g, o), dim_labels=bf_io->bf",
         Case.NON_CONTRACTING, 0, 0, None),
    ],
)  # fmt: skip
def test_cases(
    shard: str, full: str, dim: int, other: str, line: str, case: Case, side: int, output: int | None,
    other_dim: int | None,
) -> None:  # fmt: skip
    body = f"""
  s = {shard} parameter(0)
  o = {other} parameter(1)
  g = {full} all-gather(s), dimensions={{{dim}}}, {ALL}
  ROOT y = {line}"""
    (use,) = uses(body)
    assert (use.case, use.side, use.dim, use.output_dim, use.other_dim) == (case, side, dim, output, other_dim)


def test_through_everything_that_keeps_blocks() -> None:
    body = f"""
  w = f32[3,10] parameter(0)
  x = bf16[8,12] parameter(1)
  two = f32[] constant(2)
  g = f32[12,10] all-gather(w), dimensions={{0}}, {ALL}
  b = f32[12,10] broadcast(two), dimensions={{}}
  m = f32[12,10] multiply(g, b)
  c = bf16[12,10] convert(m)
  t = bf16[10,12] transpose(c), dimensions={{1,0}}
  k = bf16[10,12] copy(t)
  s = bf16[10,12] custom-call(k), custom_call_target="Sharding"
  o = bf16[10,12] opt-barrier(s)
  r = bf16[2,5,12] reshape(o)
  q = bf16[7,2,5,12] broadcast(r), dimensions={{1,2,3}}
  ROOT y = bf16[7,2,5,8] dot(q, x), lhs_contracting_dims={{3}}, rhs_contracting_dims={{1}}"""
    of = module(body)
    (use,) = uses(body)
    assert (use.case, use.side, use.dim, use.other_dim) == (Case.CONTRACTING, 0, 3, 1)
    names = [next(i.name for i in of.instructions.values() if i.id == s.instruction) for s in use.steps]
    assert [(n, s.operand, s.dim, s.block) for n, s in zip(names, use.steps, strict=True)] == [
        ("m", 0, 0, 3), ("c", 0, 0, 3), ("t", 0, 1, 3), ("k", 0, 1, 3), ("s", 0, 1, 3), ("o", 0, 1, 3),
        ("r", 0, 2, 3), ("q", 0, 3, 3),
    ]  # fmt: skip


def test_padded_gathers() -> None:
    body = f"""
  w = f32[3,10] parameter(0)
  x = f32[8,11] parameter(1)
  g = f32[12,10] all-gather(w), dimensions={{0}}, {ALL}
  c = f32[11,10] slice(g), slice={{[0:11], [0:10]}}
  ROOT y = f32[8,10] dot(x, c), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"""
    (use,) = uses(body)
    assert use.valid == 11
    assert [(s.dim, s.block) for s in use.steps] == [(0, 3)]


def test_several_einsums_and_other_readers() -> None:
    body = f"""{GATHER}
  y = f32[8,10] dot(x, full), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  z = f32[8,10] dot(x, full), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  zero = f32[] constant(0)
  r = f32[12] reduce(full, zero), dimensions={{1}}, to_apply=add
  ROOT out = (f32[8,10], f32[8,10], f32[12]) tuple(y, z, r)"""
    found = examined(module(body))
    assert found.gather is not None
    assert len(found.gather.readers.uses) == 2
    assert found.gather.readers.others == ("r",)


def test_gathered_result_of_the_computation_is_read_by_its_caller() -> None:
    body = GATHER.replace("  full =", "  ROOT full =") + EINSUM.replace("ROOT ", "")
    found = examined(module(body))
    assert found.gather is not None
    assert found.gather.readers.others == ("the result of main",)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (GATHER + "  ROOT n = f32[12,10] negate(full)", "read by no einsum: only by the result of main"),
        (
            GATHER + "  zero = f32[] constant(0)\n  ROOT r = f32[10] reduce(full, zero), dimensions={0}, to_apply=add",
            "read by no einsum: only by r",
        ),
        (
            GATHER + "  q = f32[2,3,2,10] reshape(full)\n  ROOT y = f32[2,3,2,2,3,2] dot(q, q),"
            " lhs_contracting_dims={3}, rhs_contracting_dims={3}",
            "read by no einsum that can work on shards: q takes the blocks apart",
        ),
        (
            GATHER + "  ROOT y = f32[12,12] dot(full, full), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
            "read by no einsum that can work on shards: both operands of y come from it",
        ),
        (
            GATHER + "  u = f32[12,10] parameter(2)\n  ROOT y = f32[12,10] add(full, u)",
            r"read by no einsum that can work on shards: y \(add\) takes several arrays",
        ),
        (
            f"""
  i = f32[2,9,4] parameter(0)
  k = f32[3,4,5] parameter(1)
  g = f32[8,9,4] all-gather(i), dimensions={{0}}, {ALL}
  ROOT y = f32[8,7,5] convolution(g, k), window={{size=3}}, dim_labels=b0f_0io->b0f""",
            "y is a true convolution",
        ),
        (
            f"""
  a = f32[2,4] parameter(0)
  c = f32[2,4] parameter(1)
  ROOT g = (f32[8,4], f32[8,4]) all-gather(a, c), dimensions={{0}}, {ALL}""",
            "2 arrays are combined in one",
        ),
        (
            f"""
  x = f32[0,4] parameter(0)
  w = f32[4,6] parameter(1)
  g = f32[0,4] all-gather(x), {ALL}, dimensions={{0}}
  ROOT y = f32[0,6] dot(g, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
""",
            "^its shards have no elements$",
        ),
    ],
)
def test_gathers_that_nothing_can_overlap(body: str, reason: str) -> None:
    found = examined(module(body))
    assert found.gather is None
    assert found.einsums == ()
    assert found.kind == "other"
    assert re.search(reason, found.reason), found.reason


@pytest.mark.parametrize(
    ("attributes", "counts", "reason"),
    [
        ("channel_id=1, replica_groups={{0},{1},{2},{3}}, use_global_device_ids=true", (4, 1), "group of 1"),
        (
            "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true",
            (2, 2),
            "groups span replicas and partitions",
        ),
        (
            "channel_id=1, replica_groups={{0,1,2,9}}, use_global_device_ids=true",
            (4, 1),
            "full: its groups name device 9, but the module has 4 devices",
        ),
    ],
)
def test_groups_without_a_ring(attributes: str, counts: tuple[int, int], reason: str) -> None:
    size = 3 if "{{0}" in attributes else 12
    body = GATHER.replace(ALL, attributes).replace("f32[12,10] all", f"f32[{size},10] all")
    body = body.replace("f32[8,12]", f"f32[8,{size}]") + EINSUM
    found = examined(module(body, partitions=counts[0], replicas=counts[1]))
    assert found.gather is None
    assert len(found.einsums) == 1
    assert found.kind == "all-gather-einsum"
    assert found.reason.startswith(reason)


FORMS = {
    "list": ("channel_id=1, replica_groups={{0,2},{1,3}}, use_global_device_ids=true", ((0, 2), (1, 3))),
    "iota": ("channel_id=1, replica_groups=[2,2]<=[4], use_global_device_ids=true", ((0, 1), (2, 3))),
    "transposed": ("channel_id=1, replica_groups=[2,2]<=[2,2]T(1,0), use_global_device_ids=true", ((0, 2), (1, 3))),
    "mesh": ("channel_id=1, replica_groups=mesh['x'=2,'y'=2] {'x'}, use_global_device_ids=true", ((0, 2), (1, 3))),
    "all": ("channel_id=1, replica_groups={{0}}", ((0, 1, 2, 3),)),
}


@pytest.mark.parametrize("form", FORMS)
def test_groups_in_every_form(form: str) -> None:
    attributes, members = FORMS[form]
    shard = 12 // len(members[0])
    body = GATHER.replace(ALL, attributes).replace("f32[3,10]", f"f32[{shard},10]") + EINSUM
    found = examined(module(body))
    assert found.gather is not None, found.reason
    assert found.gather.groups.members == members
    assert found.gather.groups.mode is Mode.PARTITION


def test_replica_mode() -> None:
    body = GATHER.replace(ALL, "replica_groups={{0,1,2,3}}") + EINSUM
    found = examined(module(body, partitions=1, replicas=4))
    assert found.gather is not None
    assert found.gather.groups.mode is Mode.REPLICA


def test_asynchronous_forms_as_input() -> None:
    body = f"""
  x = f32[8,12] parameter(0)
  w = f32[3,10] parameter(1)
  start = (f32[3,10], f32[12,10]) all-gather-start(w), dimensions={{0}}, {ALL}
  full = f32[12,10] all-gather-done(start)
{EINSUM}"""
    found = examined(module(body))
    assert found.gather is not None
    assert found.collective.opcode == "all-gather"
    of = module(body)
    assert of.instructions[found.collective.id].name == "full"
    assert of.instructions[found.collective.start].name == "start"


def test_generic_asynchronous_form() -> None:
    wrapped = f"""
wrapped {{
  p = f32[3,10] parameter(0)
  ROOT g = f32[12,10] all-gather(p), dimensions={{0}}, {ALL}
}}
"""
    body = f"""
  x = f32[8,12] parameter(0)
  w = f32[3,10] parameter(1)
  start = ((f32[3,10]), f32[12,10], s32[]) async-start(w), calls=wrapped
  full = f32[12,10] async-done(start)
{EINSUM}"""
    found = examined(module(body, before=wrapped))
    assert found.gather is not None
    assert found.collective.opcode == "all-gather"
    assert len(found.einsums) == 1


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


@pytest.mark.parametrize(
    ("body", "before", "kind", "reason"),
    [
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


def test_other_collectives_say_so() -> None:
    body = """
  x = f32[8,12] parameter(0)
  ROOT p = f32[8,12] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,0}}"""
    found = examined(module(body))
    assert found.kind == "other"
    assert "permute already" in found.reason


def test_starts_that_nobody_awaits() -> None:
    body = f"""
  w = f32[3,10] parameter(0)
  start = (f32[3,10], f32[12,10]) all-gather-start(w), dimensions={{0}}, {ALL}
  a = f32[12,10] all-gather-done(start)
  b = f32[12,10] all-gather-done(start)
  ROOT out = (f32[12,10], f32[12,10]) tuple(a, b)"""
    found = examined(module(body))
    assert found.reason == "its result is not one array, or it is started and never awaited"


def test_combined_reductions() -> None:
    body = f"""{SCATTER}
  z = f32[8,10] dot(x, w), {MATMUL}
  ROOT r = (f32[8,10], f32[8,10]) all-reduce(y, z), to_apply=add, {ALL}"""
    found = examined(module(body))
    assert found.reason == "2 arrays are combined in one"


def test_long_ways_are_not_followed_for_ever() -> None:
    lines = ["  n0 = f32[12,10] negate(full)"] + [f"  n{k} = f32[12,10] negate(n{k - 1})" for k in range(1, 2000)]
    body = GATHER + "\n".join(lines) + "\n" + EINSUM.replace("full", "n1999")
    found = examined(module(body))
    assert "more than 100 instructions lie between it and an einsum" in found.reason
    back = ["  n0 = f32[8,10] negate(y)"] + [f"  n{k} = f32[8,10] negate(n{k - 1})" for k in range(1, 2000)]
    reduced = f"  ROOT r = f32[2,10] reduce-scatter(n1999), dimensions={{0}}, to_apply=add, {ALL}"
    found = examined(module(SCATTER + "\n".join(back) + "\n" + reduced))
    assert found.reason == "more than 100 instructions lie between it and an einsum"


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
