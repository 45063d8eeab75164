"""Each pattern around a gather that is found, and each reason of a refusal, on a text of a few lines."""

from __future__ import annotations

import re

import pytest

from engine.errors import InputError
from engine.ir.groups import Mode
from engine.passes.decompose.site import Case, EinsumUse
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


def test_groups_that_name_what_is_not_there_are_not_even_read() -> None:
    attributes = "channel_id=1, replica_groups={{0,1,2,9}}, use_global_device_ids=true"
    with pytest.raises(InputError, match="full in main: its groups name device 9, but the module has 4 devices"):
        module(GATHER.replace(ALL, attributes) + EINSUM)


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


def test_a_collective_that_is_wrapped_with_other_work_is_out_of_reach() -> None:
    """The operand of the start is not what is gathered."""
    wrapped = f"""
wrapped {{
  p = bf16[3,10] parameter(0)
  c = f32[3,10] convert(p)
  ROOT g = f32[12,10] all-gather(c), dimensions={{0}}, {ALL}
}}"""
    body = f"""
  x = f32[8,12] parameter(0)
  w = bf16[3,10] parameter(1)
  start = ((bf16[3,10]), f32[12,10], s32[]) async-start(w), calls=wrapped
  full = f32[12,10] async-done(start)
{EINSUM}"""
    found = examined(module(body, before=wrapped))
    assert found.gather is None
    assert found.reason == "inside wrapped: decompose before fusion"


def test_starts_that_nobody_awaits() -> None:
    body = f"""
  w = f32[3,10] parameter(0)
  start = (f32[3,10], f32[12,10]) all-gather-start(w), dimensions={{0}}, {ALL}
  a = f32[12,10] all-gather-done(start)
  b = f32[12,10] all-gather-done(start)
  ROOT out = (f32[12,10], f32[12,10]) tuple(a, b)"""
    found = examined(module(body))
    assert found.reason == "its result is not one array, or it is started and never awaited"


def test_other_collectives_say_so() -> None:
    body = """
  x = f32[8,12] parameter(0)
  ROOT p = f32[8,12] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,0}}"""
    found = examined(module(body))
    assert found.kind == "other"
    assert "permute already" in found.reason


def test_long_ways_are_not_followed_for_ever() -> None:
    lines = ["  n0 = f32[12,10] negate(full)"] + [f"  n{k} = f32[12,10] negate(n{k - 1})" for k in range(1, 2000)]
    body = GATHER + "\n".join(lines) + "\n" + EINSUM.replace("full", "n1999")
    found = examined(module(body))
    assert "more than 100 instructions lie between it and an einsum" in found.reason
