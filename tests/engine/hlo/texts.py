"""Small HLO texts that several tests read."""

from __future__ import annotations

RING = "{{0,3},{1,0},{2,1},{3,2}}"

GATHER = """HloModule gather, entry_computation_layout={(f32[4,8]{1,0}, f32[8,16]{1,0})->f32[16,16]{1,0}}, \
allow_spmd_sharding_propagation_to_parameters={false,false}, num_partitions=4

ENTRY main {
  x = f32[4,8]{1,0} parameter(0)
  w = f32[8,16]{1,0} parameter(1)
  gathered = f32[16,8]{1,0} all-gather(x), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, \
use_global_device_ids=true, metadata={op_name="jit(f)/gather" source_file="f.py" source_line=3}
  ROOT y = f32[16,16]{1,0} dot(gathered, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""

LOOP = f"""HloModule loop, num_partitions=4

body {{
  state = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  v = f32[8] get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  moved = f32[8] collective-permute(v), channel_id=1, source_target_pairs={RING}
  ROOT out = (s32[], f32[8]) tuple(next, moved)
}}

condition {{
  state = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(5)
  ROOT less = pred[] compare(i, limit), direction=LT
}}

ENTRY main {{
  p = f32[8] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[8]) tuple(zero, p)
  again = (s32[], f32[8]) while(start), condition=condition, body=body
  ROOT result = f32[8] get-tuple-element(again), index=1
}}
"""

SCHEDULED = f"""HloModule scheduled, is_scheduled=true, num_partitions=4

ENTRY main {{
  p = f32[8]{{0}} parameter(0)
  start = (f32[8]{{0}}, f32[8]{{0}}, u32[], u32[]) collective-permute-start(p), channel_id=1, \
source_target_pairs={RING}
  busy = f32[8]{{0}} negate(p)
  done = f32[8]{{0}} collective-permute-done(start), control-predecessors={{busy}}
  ROOT sum = f32[8]{{0}} add(done, busy)
}}
"""

BIG_CONSTANT = """HloModule table

ENTRY main {
  ROOT c = s32[12] constant({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
}
"""
