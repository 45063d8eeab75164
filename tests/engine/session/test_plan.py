"""What variant 0 is."""

from __future__ import annotations

from engine.hlo.reading import read_here
from engine.session.evaluation import Evaluator, default_plans
from engine.session.plan import AS_LOADED, PLAIN_PASSES, MachineSpec, plain_plan, whole_plan

UNFUSED = """HloModule m, num_partitions=2SCHEDULED

ENTRY e {
  p = bf16[1024,1024]{1,0} parameter(0)
  start = (bf16[1024,1024]{1,0}, bf16[1024,1024]{1,0}) collective-permute-start(p), channel_id=1,
    source_target_pairs={{0,1},{1,0}}
  y = bf16[1024,1024]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = bf16[1024,1024]{1,0} add(y, y)
  done = bf16[1024,1024]{1,0} collective-permute-done(start)
  ROOT out = (bf16[1024,1024]{1,0}, bf16[1024,1024]{1,0}) tuple(z, done)
}
"""

GATHERING = """HloModule m, num_partitions=2

ENTRY e {
  p = bf16[1024,1024]{1,0} parameter(0)
  whole = bf16[2048,1024]{1,0} all-gather(p), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true,
    dimensions={0}
  y = bf16[1024,1024]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT out = (bf16[1024,1024]{1,0}, bf16[2048,1024]{1,0}) tuple(y, whole)
}
"""


def test_a_module_before_fusion_is_compared_fused() -> None:
    assert plain_plan(read_here(UNFUSED.replace("SCHEDULED", "").encode())).passes == PLAIN_PASSES


def test_an_order_that_a_module_carries_is_kept() -> None:
    module = read_here(UNFUSED.replace("SCHEDULED", ", is_scheduled=true").encode())
    assert plain_plan(module) == AS_LOADED
    variant = Evaluator(module, MachineSpec("tpu-v4", None, None), ()).evaluate(plain_plan(module))
    assert variant.metrics.exposed < variant.metrics.comm


def test_a_report_also_says_what_a_compiler_gets_without_decomposition() -> None:
    module = read_here(UNFUSED.replace("SCHEDULED", "").encode())
    names = [name for name, _ in default_plans(module, None)]
    assert names == ["as loaded", "decomposed, memory", "decomposed, bottom-up", "decomposed, top-down"]
    gathering = read_here(GATHERING.encode())
    *_, (name, plan) = default_plans(gathering, None, memory_cap=1 << 30)
    assert name == "whole, asynchronous"
    assert plan == whole_plan(gathering, memory_cap=1 << 30)
    variant = Evaluator(gathering, MachineSpec("tpu-v4")).evaluate(plan)
    assert variant.metrics.exposed < variant.metrics.comm
