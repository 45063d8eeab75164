"""The float64 reference computes the same program."""

from __future__ import annotations

import numpy as np

from engine.execute.legalize import legalize
from engine.execute.widening import obstacle, widen
from engine.hlo.reading import read_here
from tests.engine.execute.jobs import by_device, run_text
from tests.engine.execute.texts import program


def test_narrow_types_are_left_behind() -> None:
    text = program(
        "  x = bf16[8] parameter(0)\n  z = c64[8] parameter(1)\n  c = bf16[8] constant({1,2,3,4,5,6,7,8})\n"
        "  a = bf16[8] add(x, c)\n  n = bf16[8] reduce-precision(a), exponent_bits=5, mantissa_bits=2\n"
        "  f = f32[8] convert(n)\n  i = f32[8] imag(z)\n  s = f32[8] add(f, i)\n  k = s32[8] iota(), iota_dimension=0\n"
        "  ROOT r = (f32[8], s32[8]) tuple(s, k)"
    )
    inputs, results = run_text(text, wide=True)
    assert [pieces[0].dtype for pieces in inputs] == [np.float64, np.complex128]
    assert [pieces[0].dtype for pieces in results] == [np.float64, np.int32]
    for (x, z), (found, _) in zip(by_device(inputs), by_device(results), strict=True):
        assert np.array_equal(found, x + np.arange(1.0, 9.0) + z.imag)


def test_constants_keep_their_values() -> None:
    text = program(
        "  a = f8e4m3fn[3] constant({0.5, -2, 448})\n  b = f16[2,2]{0,1} constant({{1, 2}, {3, 4}})\n"
        "  c = c64[2] constant({(1, 2), (3, 4)})\n  ROOT r = (f8e4m3fn[3], f16[2,2], c64[2]) tuple(a, b, c)"
    )
    _, results = run_text(text, wide=True)
    first = [pieces[0].tolist() for pieces in results]
    assert first == [[0.5, -2.0, 448.0], [[1.0, 2.0], [3.0, 4.0]], [1 + 2j, 3 + 4j]]


def test_bits_of_floating_point_numbers_are_an_obstacle() -> None:
    body = "  x = {0}[8] parameter(0)\n  ROOT r = {1}[8] bitcast-convert(x)"
    for narrow, wide, hinders in (("f32", "s32", True), ("u32", "f32", False), ("u32", "s32", False)):
        proto = legalize(read_here(program(body.format(narrow, wide)).encode()))
        assert (obstacle(proto) is not None) is hinders


def test_numbers_made_of_bits_are_those_of_their_own_type() -> None:
    text = program(
        "  u = u32[3] constant({1065353216, 1069547520, 3221225472})\n  f = f32[3] bitcast-convert(u)\n"
        "  b = f32[3] broadcast(f), dimensions={0}\n  ROOT r = (f32[3], f32[3]) tuple(f, b)"
    )
    _, results = run_text(text, wide=True)
    assert [pieces[0].dtype for pieces in results] == [np.float64, np.float64]
    assert [pieces[0].tolist() for pieces in results] == [[1.0, 1.5, -2.0]] * 2


def test_the_original_is_left_alone() -> None:
    proto = legalize(read_here(program("  ROOT x = f32[8] parameter(0)").encode()))
    before = proto.SerializeToString()
    widen(proto)
    assert proto.SerializeToString() == before
