"""What fusion does to the loops that decomposition makes: the add that is fused with its einsum waits for the shard."""

from __future__ import annotations

from functools import cache

import pytest

from engine.hlo.reading import read_here
from engine.session.evaluation import Evaluator
from engine.session.plan import MachineSpec, Plan
from engine.timeline.timeline import Metrics

SCATTER = """HloModule scatter, num_partitions=8
%add (a: bf16[], b: bf16[]) -> bf16[] {
  %a = bf16[] parameter(0)
  %b = bf16[] parameter(1)
  ROOT %s = bf16[] add(%a, %b)
}
ENTRY %main (x: bf16[16384,12288], w: bf16[12288,2048]) -> bf16[2048,2048] {
  %x = bf16[16384,12288]{1,0} parameter(0)
  %w = bf16[12288,2048]{1,0} parameter(1)
  %y = bf16[16384,2048]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %r = bf16[2048,2048]{1,0} reduce-scatter(%y), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true, to_apply=%add
}
"""  # noqa: E501  # one instruction a line, as HLO is printed


@cache
def evaluator() -> Evaluator:
    return Evaluator(read_here(SCATTER.encode()), MachineSpec(mesh="x=8;order=ring"))


def metrics(form: str, policy: str) -> Metrics:
    passes = f"decompose{{gate=off,{form}}},async-permute,fuse{{policy={policy}}}"
    return evaluator().evaluate(Plan(passes, "bottom-up")).metrics


@pytest.mark.parametrize("form", ["form=rolled,unroll=1,ring=one", "form=unrolled,unroll=1,ring=one"])
def test_default_exposes_every_permute_and_overlap_hides_them(form: str) -> None:
    default, overlap = metrics(form, "default"), metrics(form, "overlap")
    assert default.exposed > 0.99 * default.comm
    assert overlap.exposed == 0
    assert overlap.makespan < default.makespan


@pytest.mark.parametrize("policy", ["default", "overlap", "auto"])
def test_two_chains_hide_them_under_any_policy(policy: str) -> None:
    assert metrics("form=unrolled,unroll=2,ring=one", policy).exposed == 0


def test_with_an_einsum_for_each_direction_only_default_exposes_more_than_the_epilogue() -> None:
    form = "form=rolled,unroll=1,ring=both,blocks=separate"
    default, overlap = metrics(form, "default"), metrics(form, "overlap")
    epilogue = overlap.comm // 7  # N-1 shards are sent, the last one by itself
    assert default.exposed > overlap.exposed + 0.99 * 3 * epilogue
    assert overlap.exposed <= 1.01 * epilogue
    assert overlap.makespan < default.makespan


def test_an_add_stays_in_its_einsum_where_only_the_epilogue_waits_for_it() -> None:
    """By itself it would pass HBM once more, which takes longer than the shard that it would hide."""
    form = "form=unrolled,unroll=1,ring=both,blocks=separate"
    default, overlap = metrics(form, "default"), metrics(form, "overlap")
    assert overlap.exposed <= 1.01 * (overlap.comm // 7)
    assert overlap.makespan <= default.makespan


@pytest.mark.parametrize("form", ["form=rolled,unroll=1,ring=both", "form=unrolled,unroll=1,ring=both"])
@pytest.mark.parametrize("policy", ["default", "overlap", "auto"])
def test_sums_of_pieces_of_one_einsum_stand_apart_and_hide_transfers_under_any_policy(form: str, policy: str) -> None:
    found = metrics(f"{form},blocks=joined", policy)
    assert found.exposed <= 1.01 * (found.comm // 7)


@pytest.mark.parametrize("form", ["form=rolled,unroll=2,ring=one", "form=rolled,unroll=2,ring=both"])
def test_auto_is_never_slower_than_either(form: str) -> None:
    times = {policy: metrics(form, policy).makespan for policy in ("default", "overlap", "auto")}
    assert times["auto"] <= min(times.values())
