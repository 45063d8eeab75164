"""Programs for runs on four devices."""

from __future__ import annotations

LEFT = "{{0,3},{1,0},{2,1},{3,2}}"
ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"


def program(body: str, computations: str = "", header: str = "num_partitions=4") -> str:
    """A module whose entry holds `body`."""
    return f"HloModule m{', ' if header else ''}{header}\n{ADD}{computations}ENTRY main {{\n{body}\n}}\n"


GATHERED = program(
    "  x = f32[4,8] parameter(0)\n"
    "  w = f32[8,6] parameter(1)\n"
    "  g = f32[16,8] all-gather(x), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, "
    "use_global_device_ids=true\n"
    "  ROOT y = f32[16,6] dot(g, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
)

SUMMED = program(
    "  x = f32[4,8] parameter(0)\n"
    "  ROOT y = f32[4,8] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, "
    "use_global_device_ids=true, to_apply=add"
)


def spinning(condition: str, moved: str) -> str:
    """A loop with state (i, limit, v): partition 0 has another limit than the others."""
    return program(
        "  p = f32[8] parameter(0)\n"
        "  zero = s32[] constant(0)\n"
        "  id = u32[] partition-id()\n"
        "  who = s32[] convert(id)\n"
        "  one = s32[] constant(1)\n"
        "  limit = s32[] add(who, one)\n"
        "  start = (s32[], s32[], f32[8]) tuple(zero, limit, p)\n"
        "  loop = (s32[], s32[], f32[8]) while(start), condition=condition, body=body\n"
        "  ROOT r = f32[8] get-tuple-element(loop), index=2",
        "body {\n"
        "  s = (s32[], s32[], f32[8]) parameter(0)\n"
        "  i = s32[] get-tuple-element(s), index=0\n"
        "  n = s32[] get-tuple-element(s), index=1\n"
        "  v = f32[8] get-tuple-element(s), index=2\n"
        "  one = s32[] constant(1)\n"
        "  next = s32[] add(i, one)\n"
        f"  w = f32[8] {moved}\n"
        "  ROOT t = (s32[], s32[], f32[8]) tuple(next, n, w)\n"
        "}\n"
        "condition {\n"
        "  s = (s32[], s32[], f32[8]) parameter(0)\n"
        "  i = s32[] get-tuple-element(s), index=0\n"
        "  n = s32[] get-tuple-element(s), index=1\n"
        f"  ROOT c = pred[] {condition}\n"
        "}\n",
    )


DEADLOCK = spinning("compare(i, n), direction=LT", f"collective-permute(v), channel_id=1, source_target_pairs={LEFT}")
ENDLESS = spinning("constant(true)", "negate(v)")


def sorting(size: int) -> str:
    """A program that holds `size` floats: a sort needs its operand whole."""
    return program(
        f"  p = f32[] parameter(0)\n  i = f32[{size}] iota(), iota_dimension=0\n  b = f32[{size}] broadcast(p), "
        f"dimensions={{}}\n  m = f32[{size}] multiply(i, b)\n"
        f"  s = f32[{size}] sort(m), dimensions={{0}}, to_apply=less\n"
        "  c = f32[1] slice(s), slice={[7:8]}\n  ROOT r = f32[] reshape(c)",
        "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  "
        "ROOT l = pred[] compare(a, b), direction=LT\n}\n",
    )
