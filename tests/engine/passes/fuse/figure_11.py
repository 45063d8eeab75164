"""Figure 11 of Wang et al. as HLO: an add reads an einsum that waits for a permute and one that does not."""

from __future__ import annotations

FIGURE_11 = """HloModule figure_11, num_partitions=4

ENTRY main {
  shard = bf16[1024,4096]{1,0} parameter(0)
  local = bf16[1024,8192]{1,0} parameter(1)
  weights_0 = bf16[8192,4096]{1,0} parameter(2)
  weights_1 = bf16[4096,4096]{1,0} parameter(3)
  start = (bf16[1024,4096]{1,0}, bf16[1024,4096]{1,0}) collective-permute-start(shard), channel_id=1, source_target_pairs={{0,3},{1,0},{2,1},{3,2}}
  done = bf16[1024,4096]{1,0} collective-permute-done(start)
  einsum_1 = bf16[1024,4096]{1,0} dot(done, weights_1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  einsum_0 = bf16[1024,4096]{1,0} dot(local, weights_0), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT sum = bf16[1024,4096]{1,0} add(einsum_1, einsum_0)
}
"""  # noqa: E501  # one instruction a line, as HLO is printed
