"""A fusion reads and writes what it touches, once; arrays on chip are not HBM traffic."""

from __future__ import annotations

import pytest

from engine.cost.work import Reader, Role, Work, padded_elements
from engine.hlo.reading import read_here
from engine.ir import shapes


def work(fused: str, entry: str) -> Work:
    """Of the root of the entry; `fused` is the body of computation ``f``."""
    body = f"f {{\n{fused}\n}}\n\n" if fused else ""
    module = read_here(f"HloModule m\n\n{body}ENTRY main {{\n{entry}\n}}\n".encode())
    return Reader(module).work(module.instructions[module.entry.root_id])


KB = 1024 * 4
"""Bytes of f32[1024]."""


def test_an_element_wise_fusion_reads_each_operand_once() -> None:
    found = work(
        """
  p = f32[1024]{0} parameter(0)
  q = f32[1024]{0} parameter(1)
  a = f32[1024]{0} add(p, q)
  b = f32[1024]{0} multiply(a, p)
  e = f32[1024]{0} exponential(p)
  ROOT r = f32[1024]{0} add(b, e)
""",
        """
  x = f32[1024]{0} parameter(0)
  y = f32[1024]{0} parameter(1)
  ROOT z = f32[1024]{0} fusion(x, y), kind=kLoop, calls=f
""",
    )
    assert found.hbm == 3 * KB
    assert (found.vector, found.transcendental) == (3 * 1024, 1024)
    assert (found.narrow, found.ports) == (0, 3 * 1024)


def test_a_slice_inside_a_fusion_reads_the_slice() -> None:
    found = work(
        """
  p = f32[64,1024]{1,0} parameter(0)
  i = s32[] parameter(1)
  zero = s32[] constant(0)
  s = f32[1,1024]{1,0} dynamic-slice(p, i, zero), dynamic_slice_sizes={1,1024}
  ROOT r = f32[1024]{0} reshape(s)
""",
        """
  x = f32[64,1024]{1,0} parameter(0)
  n = s32[] parameter(1)
  ROOT z = f32[1024]{0} fusion(x, n), kind=kLoop, calls=f
""",
    )
    assert found.hbm == pytest.approx(2 * KB + 4)


def test_two_slices_of_one_parameter_add_up() -> None:
    found = work(
        """
  p = f32[4,1024]{1,0} parameter(0)
  a = f32[1,1024]{1,0} slice(p), slice={[0:1], [0:1024]}
  b = f32[1,1024]{1,0} slice(p), slice={[2:3], [0:1024]}
  ROOT r = f32[1,1024]{1,0} add(a, b)
""",
        """
  x = f32[4,1024]{1,0} parameter(0)
  ROOT z = f32[1,1024]{1,0} fusion(x), kind=kLoop, calls=f
""",
    )
    assert found.hbm == pytest.approx(3 * KB)


UPDATE = """
  p = f32[64,1024]{1,0} parameter(0)
  u = f32[1,1024]{1,0} parameter(1)
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  n = f32[1,1024]{1,0} negate(u)
  ROOT r = f32[64,1024]{1,0} dynamic-update-slice(p, n, i, zero)
"""


def test_a_gather_that_travels_inside_a_fusion_is_no_work_of_it() -> None:
    """An asynchronous collective fusion of v5e: what is sent, what arrives and its flags only pass through."""
    module = read_here(b"""HloModule m, num_partitions=4

carrying {
  a = f32[1024]{0} parameter(0)
  shard = f32[2048]{0} parameter(1)
  flag = u32[] parameter(2)
  sum = f32[1024]{0} add(a, a)
  whole = f32[8192]{0} all-gather(shard), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0},
    use_global_device_ids=true
  ROOT r = (f32[1024]{0}, f32[2048]{0}, f32[8192]{0}, u32[]) tuple(sum, shard, whole, flag)
}

ENTRY main {
  a = f32[1024]{0} parameter(0)
  shard = f32[2048]{0} parameter(1)
  flag = u32[] parameter(2)
  ROOT f = (f32[1024]{0}, f32[2048]{0}, f32[8192]{0}, u32[]) fusion(a, shard, flag), kind=kLoop, calls=carrying
}
""")
    work = Reader(module).work(module.by_name["f"])
    assert (work.hbm, work.vector) == (2 * KB, 1024)


def test_an_update_in_place_moves_the_update() -> None:
    found = work(
        UPDATE,
        """
  x = f32[64,1024]{1,0} parameter(0)
  y = f32[1,1024]{1,0} parameter(1)
  k = s32[] parameter(2)
  ROOT z = f32[64,1024]{1,0} fusion(x, y, k), kind=kLoop, calls=f
""",
    )
    assert found.hbm == pytest.approx(2 * KB + 4)
    assert found.vector == 1024


def test_a_single_update_in_place() -> None:
    found = work(
        "",
        """
  x = f32[64,1024]{1,0} parameter(0)
  y = f32[1,1024]{1,0} parameter(1)
  k = s32[] parameter(2)
  ROOT z = f32[64,1024]{1,0} dynamic-update-slice(x, y, k, k)
""",
    )
    assert found.hbm == pytest.approx(2 * KB + 8)


def test_padding_is_neither_computed_nor_read() -> None:
    """What a slice leaves out of a padded array is not asked for."""
    found = work(
        """
  p = f32[1024]{0} parameter(0)
  e = f32[1024]{0} exponential(p)
  zero = f32[] constant(0)
  w = f32[4096]{0} pad(e, zero), padding=0_3072
  ROOT r = f32[512]{0} slice(w), slice={[0:512]}
""",
        """
  x = f32[1024]{0} parameter(0)
  ROOT z = f32[512]{0} fusion(x), kind=kLoop, calls=f
""",
    )
    assert found.hbm == pytest.approx(KB)
    assert found.transcendental == 512


def test_on_chip_arrays_are_not_hbm_traffic() -> None:
    found = work(
        "",
        """
  x = f32[1024]{0:S(1)} parameter(0)
  y = f32[1024]{0} parameter(1)
  ROOT z = f32[1024]{0:S(3)} add(x, y)
""",
    )
    assert (found.hbm, found.onchip) == (KB, 2 * KB)


def test_nested_fusions_pass_on_what_they_read() -> None:
    module = read_here(
        b"""HloModule m

inner {
  p = bf16[64,128,128]{2,1,0} parameter(0)
  i = s32[] parameter(1)
  z = s32[] constant(0)
  s = bf16[1,128,128]{2,1,0} dynamic-slice(p, i, z, z), dynamic_slice_sizes={1,128,128}
  ROOT b = bf16[128,128]{1,0} bitcast(s)
}

outer {
  p = bf16[64,128,128]{2,1,0} parameter(0)
  i = s32[] parameter(1)
  q = bf16[128,256]{1,0} parameter(2)
  w = bf16[128,128]{1,0} fusion(p, i), kind=kLoop, calls=inner
  ROOT d = bf16[128,256]{1,0} dot(w, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY main {
  x = bf16[64,128,128]{2,1,0} parameter(0)
  n = s32[] parameter(1)
  y = bf16[128,256]{1,0} parameter(2)
  ROOT r = bf16[128,256]{1,0} fusion(x, n, y), kind=kOutput, calls=outer
}
"""
    )
    found = Reader(module).work(module.instructions[module.entry.root_id])
    assert found.hbm == pytest.approx(2 * (128 * 128 + 2 * 128 * 256) + 4)
    assert [(m.m, m.n, m.k) for m in found.matmuls] == [(128, 256, 128)]
    assert found.narrow == 128 * 256
    assert found.ports == 128 * 256 / 2


def test_a_reshape_that_only_renames_is_free() -> None:
    text = "  x = f32[8,128]{1,0} parameter(0)\n  ROOT z = f32[1024]{0} reshape(x)"
    assert work("", text) == Work()
    tiled = "  x = f32[8,128]{1,0:T(8,128)} parameter(0)\n  ROOT z = f32[1024]{0:T(1024)} reshape(x)"
    assert work("", tiled).hbm > 0


def test_single_elements_are_scalar_work() -> None:
    assert work("", "  x = s32[] parameter(0)\n  ROOT z = s32[] add(x, x)").scalar
    assert not work("", "  x = s32[2]{0} parameter(0)\n  ROOT z = s32[2]{0} add(x, x)").scalar


def test_reductions_pass_their_operand() -> None:
    module = read_here(
        b"""HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[64,1024]{1,0} parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[64]{0} reduce(x, zero), dimensions={1}, to_apply=sum
}
"""
    )
    found = Reader(module).work(module.instructions[module.entry.root_id])
    assert found.ports == 64 * 1024 + 1 + 64
    assert found.vector == 64 * 1024 + 1


def test_all_groups_weights_are_read_for_a_ragged_dot() -> None:
    found = work(
        "",
        """
  x = bf16[120,64]{1,0} parameter(0)
  w = bf16[4,64,32]{2,1,0} parameter(1)
  groups = s32[4]{0} parameter(2)
  ROOT d = bf16[120,32]{1,0} ragged-dot(x, w, groups), lhs_contracting_dims={1}, rhs_contracting_dims={1},
    lhs_ragged_dims={0}, rhs_group_dims={0}
""",
    )
    assert found.flops == 2 * 120 * 64 * 32
    assert found.in_hbm[Role.LHS] == 2 * 120 * 64
    assert found.in_hbm[Role.RHS] == 2 * 4 * 64 * 32
    assert found.in_hbm[Role.WRITTEN] == 2 * 120 * 32


def test_the_scales_of_a_scaled_dot_come_with_its_operands() -> None:
    """Also through what computes them in a fusion."""
    found = work(
        """
  a = f8e4m3fn[128,64]{1,0} parameter(0)
  b = f8e4m3fn[64,32]{1,0} parameter(1)
  s = bf16[128,2]{1,0} parameter(2)
  t = f8e8m0fnu[2,32]{1,0} parameter(3)
  c = f8e8m0fnu[128,2]{1,0} convert(s)
  ROOT d = bf16[128,32]{1,0} scaled-dot(a, b, c, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
""",
        """
  x = f8e4m3fn[128,64]{1,0} parameter(0)
  w = f8e4m3fn[64,32]{1,0} parameter(1)
  p = bf16[128,2]{1,0} parameter(2)
  q = f8e8m0fnu[2,32]{1,0} parameter(3)
  ROOT z = bf16[128,32]{1,0} fusion(x, w, p, q), kind=kOutput, calls=f
""",
    )
    assert [m.flops for m in found.matmuls] == [2 * 128 * 64 * 32]
    assert found.in_hbm == [128 * 64 + 2 * 128 * 2, 64 * 32 + 2 * 32, 0.0, 2 * 128 * 32]


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("f32[3,100]{1,0:T(8,128)}", 8 * 128),
        ("f32[100]{0:T(256)}", 256),
        ("bf16[2,16,1]{2,1,0:T(8,128)(2,1)}", 2 * 16 * 128),
        ("bf16[16,2]{0,1:T(8,128)(2,1)}", 8 * 128),
        ("f32[]{:T(128)}", 128),
        ("f32[3,100]{1,0}", 300),
    ],
)
def test_tiles_pad_the_minor_dimensions(text: str, elements: int) -> None:
    module = read_here(f"HloModule m\n\nENTRY main {{\n  ROOT x = {text} parameter(0)\n}}\n".encode())
    shape = module.instructions[module.entry.root_id].shape
    assert padded_elements(shape) == elements
    assert shapes.is_array(shape)


ALIKE = """HloModule m

first {
  p = f32[16,8]{1,0} parameter(0)
  q = f32[8,16]{1,0} parameter(1)
  d = f32[16,16]{1,0} dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="one"}
  ROOT r = f32[16,16]{1,0} negate(d)
}

second {
  a = f32[16,8]{1,0} parameter(0)
  b = f32[8,16]{1,0} parameter(1)
  c = f32[16,16]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="two"}
  ROOT e = f32[16,16]{1,0} OPCODE(c)
}

ENTRY main {
  x = f32[16,8]{1,0} parameter(0)
  y = f32[8,16]{1,0} parameter(1)
  f = f32[16,16]{1,0} fusion(x, y), kind=kOutput, calls=first
  g = f32[16,16]{1,0} fusion(x, y), kind=kOutput, calls=second
  ROOT t = (f32[16,16]{1,0}, f32[16,16]{1,0}) tuple(f, g)
}
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("OPCODE", "negate", True),
        ("OPCODE", "exponential", False),
        ("OPCODE(c)", "negate(c), frontend_attributes={a=\"b\"}", True),
        ("OPCODE(c)", "add(c, c)", False),
        ("{0}, metadata={op_name=\"two\"}", "{0}, operand_precision={highest,highest}", False),
        ("b = f32[8,16]{1,0}", "b = f32[8,16]{0,1}", False),
    ],
)  # fmt: skip
def test_fusions_are_alike_whatever_their_instructions_are_called(old: str, new: str, same: bool) -> None:
    text = ALIKE.replace(old, new).replace("OPCODE", "negate")
    if "{0,1}" in new:
        text = text.replace("y = f32[8,16]{1,0}", "y = f32[8,16]{0,1}")
    module = read_here(text.encode())
    reader = Reader(module)
    first, second = (module.by_name[name].called_computation_ids[0] for name in "fg")
    assert (reader.first_alike(first), reader.first_alike(second)) == (first, first if same else second)
