"""What compilers are told of a module's donation. What needs libtpu is part of `make test-all`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from jaxlib.mlir import ir

from engine.execute.compiling import compile_module
from engine.execute.legalize import undo_compilation
from engine.execute.portable import DONOR, UNDONE, context, portable, refused_alias
from engine.execute.targets import Target
from engine.execute.verifying import verify
from engine.hlo.reading import read_here
from engine.ir.module import Module
from tests.extras import needs_libtpu

V4 = Target.parse("tpu:v4:2x2x2")
SIZES = "Expected aliased input 0 at index {} and output at index {0} to have the same size."


def step(donation: str = "input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }") -> Module:
    """A step as JAX leaves it behind the partitioner: one device's shapes, shardings of the whole."""
    return read_here(
        f"""
HloModule step, num_partitions=8, {donation}

ENTRY main {{
  w = f32[8,64] parameter(0), sharding={{devices=[8,1]<=[8]}}
  v = f32[64,64] parameter(1), sharding={{replicated}}
  x = f32[64,64] parameter(2), sharding={{devices=[1,8]<=[8]}}
  g = f32[64,64] all-gather(w), channel_id=1, replica_groups=[1,8]<=[8], dimensions={{0}}, use_global_device_ids=true
  y = f32[64,64] dot(x, g), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  s = f32[8,64] slice(y), slice={{[0:8], [0:64]}}
  wn = f32[8,64] subtract(w, s)
  vn = f32[64,64] add(v, y)
  ROOT t = (f32[8,64], f32[64,64]) tuple(wn, vn)
}}
""".encode()
    )


def text(code: bytes) -> str:
    with context():
        return str(ir.Module.parse(code))


def test_aliases_stay_and_shardings_that_were_applied_go() -> None:
    """With them, an argument of 8×64 is laid out as if each device had one row of it, other than its result."""
    code, notes = portable(step())
    assert text(code).count("alias = {kind") == 2
    assert "sharding" not in text(code)
    assert notes == ()


def test_an_alias_that_was_refused_goes_and_a_note_says_so() -> None:
    code, notes = portable(step(), [0])
    assert text(code).count("alias = {kind") == 1
    assert "parameter_number = 1" in text(code)
    assert len(notes) == 1
    assert "result {0} over parameter 0" in notes[0]


def test_donors_stay() -> None:
    """Steps whose results have no sharding given; XLA's conversion to StableHLO forgets them."""
    code, notes = portable(step("buffer_donor={ (0, {}), (2, {}) }"))
    signature = next(line for line in text(code).splitlines() if "func.func" in line and "@main" in line)
    donated = [DONOR in argument for argument in signature.partition("->")[0].split("%arg")[1:]]
    assert donated == [True, False, True]
    assert notes == ()


def test_donated_elements_of_tuples_are_noted() -> None:
    module = read_here(
        b"""
HloModule tupled, buffer_donor={ (0, {1}) }

ENTRY main {
  p = (f32[4], f32[4]) parameter(0)
  a = f32[4] get-tuple-element(p), index=0
  b = f32[4] get-tuple-element(p), index=1
  ROOT c = f32[4] add(a, b)
}
"""
    )
    code, notes = portable(module)
    assert DONOR not in text(code)
    assert "elements of tuples" in notes[0]


def compiled() -> Module:
    """What XLA's CPU compiler leaves, but for the start and done, which are a GPU compiler's."""
    return read_here(
        b"""
HloModule compiled, is_scheduled=true, num_partitions=8, input_output_alias={ {}: (1, {}, may-alias) }

fused {
  p = f32[64,8]{1,0} parameter(0)
  q = f32[64,64]{1,0} parameter(1)
  b = f32[8,64]{0,1} bitcast(p)
  n = f32[8,64]{0,1} negate(b)
  t = f32[64,8]{1,0} bitcast(n)
  d = f32[64,64]{1,0} dot(t, t), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT s = f32[64,64]{1,0} add(d, q)
}

ENTRY main {
  w = f32[8,8]{1,0} parameter(0)
  v = f32[64,64]{1,0} parameter(1)
  g = (f32[8,8], f32[64,8]) all-gather-start(w), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, \
use_global_device_ids=true
  e = f32[64,8]{1,0} all-gather-done(g)
  ROOT f = f32[64,64]{1,0} fusion(e, v), kind=kOutput, calls=fused
}
"""
    )


def exchanging() -> Module:
    parts = ", ".join(f"p{k}" for k in range(4))
    given = "\n".join(f"  p{k} = f32[3,{5}] slice(x), slice={{[{3 * k}:{3 * k + 3}], [0:5]}}" for k in range(4))
    shape = ", ".join(["f32[3,5]"] * 4)
    taken = "\n".join(f"  r{k} = f32[3,5] get-tuple-element(e), index={k}" for k in range(4))
    return read_here(
        f"""
HloModule exchanging, num_partitions=4

ENTRY main {{
  x = f32[12,5] parameter(0)
{given}
  e = ({shape}) all-to-all({parts}), channel_id=1, replica_groups={{{{0,1,2,3}}}}
{taken}
  ROOT c = f32[12,5] concatenate(r0, r1, r2, r3), dimensions={{0}}
}}
""".encode()
    )


def test_what_a_compiler_did_is_undone_and_a_note_says_so() -> None:
    code, notes = portable(compiled())
    assert '"mhlo.' not in text(code)
    assert text(code).count("alias = {kind") == 1
    assert notes == (UNDONE,)


def test_an_all_to_all_of_tuples_gets_a_form_that_stablehlo_has() -> None:
    code, notes = portable(exchanging())
    assert '"mhlo.' not in text(code)
    assert notes == ()


@pytest.mark.parametrize("module", [compiled(), exchanging()], ids=["compiled", "all-to-all"])
def test_undoing_keeps_the_numbers(module: Module) -> None:
    found = verify(module, replace(module, proto=undo_compilation(module)), deadline=60.0)
    assert found.equal, str(found)
    assert found.worst is not None


@needs_libtpu
@pytest.mark.full
def test_the_compiler_takes_what_another_compiled() -> None:
    made = compile_module(compiled(), V4)
    assert made.notes == (UNDONE,)
    assert "all-gather" in made.text


def test_which_alias_a_compiler_refuses() -> None:
    assert refused_alias(f"INTERNAL: {SIZES}") == 0
    assert refused_alias("INTERNAL: out of memory") is None


@needs_libtpu
@pytest.mark.full
@pytest.mark.parametrize(
    "donation", ["input_output_alias={ {0}: (0, {}), {1}: (1, {}) }", "buffer_donor={ (0, {}), (1, {}) }"]
)
def test_the_compiler_takes_donated_arguments(donation: str) -> None:
    made = compile_module(step(donation), V4)
    assert "{0}: (0, {}, may-alias), {1}: (1, {}, may-alias)" in made.text.partition("\n")[0]
    assert made.notes == ()


@needs_libtpu
@pytest.mark.full
def test_the_compiler_compiles_without_an_alias_that_it_refuses() -> None:
    """As many elements on both sides: padded to tiles of 8×128, one takes twice as much as the other."""
    module = read_here(
        b"""
HloModule reshaped, num_partitions=8, input_output_alias={ {0}: (0, {}), {1}: (1, {}) }

ENTRY main {
  x = f32[512,8] parameter(0)
  w = f32[8,512] parameter(1)
  y = f32[64,64] reshape(x)
  v = f32[8,512] add(w, w)
  ROOT t = (f32[64,64], f32[8,512]) tuple(y, v)
}
"""
    )
    made = compile_module(module, V4)
    header = made.text.partition("\n")[0]
    assert "{1}: (1, {}, may-alias)" in header
    assert "(0, {}" not in header
    assert any("result {0} over parameter 0" in note for note in made.notes)
