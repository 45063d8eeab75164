"""A module so small that production compilers take little time for it: one gather, and the einsum that reads it."""

from __future__ import annotations

SMALL = """
HloModule small, num_partitions=8

ENTRY main {
  x = bf16[128,512] parameter(0)
  w = bf16[512,256] parameter(1)
  g = bf16[1024,512] all-gather(x), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true
  ROOT d = bf16[1024,256] dot(g, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
