"""Equal modules are found equal, wrong ones wrong with the place, and nothing that goes wrong takes us along."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.control import Cancelled, Control
from engine.errors import InputError, UnsupportedError, UsageError, WorkerError
from engine.execute.environment import environment
from engine.execute.inputs import load_inputs
from engine.execute.memory import available_bytes, check_fits
from engine.execute.verifying import Output, Verification, verify
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.hlo.reading import read_here
from engine.ir.module import Module
from tests.engine.execute.texts import DEADLOCK, ENDLESS, GATHERED, LEFT, SUMMED, program
from tests.places import DATA

HANDMADE = DATA / "handmade"

RIGHT = "{{0,1},{1,2},{2,3},{3,0}}"


def module(text: str) -> Module:
    return read_here(text.encode())


def handmade(name: str) -> Module:
    return read_here((HANDMADE / f"{name}.hlo").read_bytes(), name)


def permuted(pairs: str) -> str:
    return program(
        "  x = f32[4,8] parameter(0)\n"
        f"  ROOT r = f32[4,8] collective-permute(x), channel_id=1, source_target_pairs={pairs}"
    )


@pytest.mark.parametrize(
    ("original", "transformed"),
    [
        ("ag1_orig_R4_P4_f32", "ag1_rolled_R4_P4_f32"),
        ("ag1_orig_R4_P4_f32", "ag1_unroll2_R4_P4_f32"),
        ("ag1_orig_R4_P4_f32", "ag1_bidir_R4_P4_f32"),
        ("ag2_orig_R4_P8_bf16", "ag2_bidir_R4_P8_bf16"),
        ("ag3_orig_R4_P8_f32", "ag3_unroll2_R4_P8_f32"),
        ("rs_orig_R4_P4_f32", "rs_rolled_R4_P4_f32"),
        ("rs_orig_R4_P4_f32", "rs_bidir_R4_P4_f32"),
        ("rs_orig_R8_P8_bf16", "rs_unroll2_R8_P8_bf16"),
    ],
)
def test_decompositions_equal_their_originals(original: str, transformed: str) -> None:
    found = verify(handmade(original), handmade(transformed), deadline=60.0)
    assert found.equal
    assert found.reference == "float64"
    assert found.notes == ()
    worst = found.worst
    assert worst is not None
    assert 0 < worst.error <= worst.tolerance
    assert worst.tolerance == {"2": 1e-5, "6": int(original.split("_")[2][1]) * 2.0**-8}[original[-1]]


def test_a_wrong_permute_is_found_with_its_place() -> None:
    found = verify(module(permuted(LEFT)), module(permuted(RIGHT)), deadline=60.0)
    assert not found.equal
    worst = found.worst
    assert worst is not None
    assert worst.tolerance == 0.0  # data are only moved: exact
    assert worst.error > 0.1
    assert worst.place.startswith("result 0 f32[4,8], device ")
    assert str(found).startswith("NOT EQUAL on 4 cpu devices, seed 0: worst error ")
    assert json.loads(json.dumps(found.as_json()))["equal"] is False


@pytest.mark.parametrize(("factor", "equal"), [("1.000001", True), ("1.0001", False)])
def test_the_tolerance_is_that_of_rounding(factor: str, equal: bool) -> None:
    scaled = GATHERED.replace("ROOT y =", "y =").replace(
        "rhs_contracting_dims={0}\n}",
        f"rhs_contracting_dims={{0}}\n  f = f32[] constant({factor})\n  b = f32[16,6] broadcast(f), dimensions={{}}\n"
        "  ROOT z = f32[16,6] multiply(y, b)\n}",
    )
    found = verify(module(GATHERED), module(scaled), deadline=60.0)
    assert [output.equal for output in found.outputs if output.precision == "own"] == [equal]
    assert not found.equal  # float64 sees both


def test_a_result_is_held_to_the_precision_of_what_it_is_made_of() -> None:
    """The f32 loss of bf16 layers."""
    loss = program(
        "  x = bf16[4,8] parameter(0)\n"
        f"  g = bf16[4,8] collective-permute(x), channel_id=1, source_target_pairs={LEFT}\n"
        "  s = bf16[4,8] multiply(g, g)\n  w = f32[4,8] convert(s)\n  zero = f32[] constant(0)\n"
        "  ROOT r = f32[] reduce(w, zero), dimensions={0,1}, to_apply=add"
    )
    found = verify(module(loss), module(loss), deadline=60.0)
    assert found.equal
    assert {o.tolerance for o in found.outputs if o.precision == "own"} == {2 / 256}


def test_what_rounding_would_hide_is_found_in_float64() -> None:
    """A step of training adds a small gradient to a large weight."""
    step = program(
        "  x = bf16[4,8] parameter(0)\n  w = bf16[4,8] parameter(1)\n"
        f"  g = bf16[4,8] collective-permute(x), channel_id=1, source_target_pairs={LEFT}\n"
        "  rate = bf16[] constant(0.0001)\n  b = bf16[4,8] broadcast(rate), dimensions={}\n"
        "  d = bf16[4,8] multiply(g, b)\n  ROOT r = bf16[4,8] subtract(w, d)"
    )
    found = verify(module(step), module(step.replace(LEFT, RIGHT)), deadline=60.0)
    own, wide = sorted(found.outputs, key=lambda output: output.precision, reverse=True)
    assert (own.precision, wide.precision) == ("own", "float64")
    assert own.equal
    assert not wide.equal
    assert not found.equal
    assert found.worst == wide
    assert "computed in float64" in str(found)
    assert verify(module(step), module(step), deadline=60.0).equal


def test_one_wrong_device_is_enough() -> None:
    wrong = SUMMED.replace("replica_groups={{0,1,2,3}}", "replica_groups={{0,1,2},{3}}")
    found = verify(module(SUMMED), module(wrong), deadline=60.0)
    assert not found.equal


def test_several_seeds_keep_the_worst() -> None:
    found = verify(module(GATHERED), module(GATHERED), seed=3, seeds=4, deadline=60.0)
    assert found.seeds == (3, 4, 5, 6)
    assert found.equal
    single = [verify(module(GATHERED), module(GATHERED), seed=s, deadline=60.0).worst for s in found.seeds]
    assert found.worst is not None
    assert found.worst.error == max(w.error for w in single if w is not None)
    assert "seeds 3 to 6" in str(found)


def test_the_same_seed_gives_the_same_answer() -> None:
    first, second = (verify(module(GATHERED), module(GATHERED), seed=9, deadline=60.0) for _ in range(2))
    assert first == second


def test_bits_of_floats_cannot_be_compared_with_float64() -> None:
    bits = program("  x = f32[8] parameter(0)\n  i = s32[8] bitcast-convert(x)\n  ROOT r = f32[8] bitcast-convert(i)\n")
    found = verify(module(bits), module(bits), deadline=60.0)
    assert found.equal
    assert found.reference == "original"
    assert found.notes == (
        "Compared with the original instead of float64, which cannot be computed: i reads the bits of a "
        "floating-point number.",
    )


def test_integers_must_be_equal() -> None:
    text = program("  x = s32[8] parameter(0)\n  c = s32[8] iota(), iota_dimension=0\n  ROOT r = s32[8] add(x, c)")
    assert verify(module(text), module(text), deadline=60.0).equal
    found = verify(module(text), module(text.replace("add(x, c)", "subtract(x, c)")), deadline=60.0)
    assert not found.equal
    assert found.worst is not None
    assert found.worst.error == 1.0


def test_integers_that_rounding_chooses_are_compared_in_float64() -> None:
    """Adding 1000 and rounding to 8 bits loses small numbers' signs, but not in float64, where nothing is rounded."""
    text = program(
        "  x = f32[8] parameter(0)\n  k = f32[] constant(1000)\n  b = f32[8] broadcast(k), dimensions={}\n"
        "  a = f32[8] add(x, b)\n  n = f32[8] reduce-precision(a), exponent_bits=8, mantissa_bits=23\n"
        "  s = f32[8] subtract(n, b)\n  z = f32[8] subtract(b, b)\n"
        "  ROOT r = pred[8] compare(s, z), direction=LT"
    )
    rounded = module(text.replace("mantissa_bits=23", "mantissa_bits=7"))
    found = verify(module(text), rounded, deadline=60.0)
    assert found.equal
    assert found.reference == "float64"
    (note,) = found.notes
    assert "differ in the module's own types, where rounding decides" in note
    wrong = verify(module(text), module(text.replace("direction=LT", "direction=GT")), deadline=60.0)
    assert not wrong.equal
    assert wrong.worst is not None
    assert wrong.worst.precision == "float64"


def test_roots_get_inputs_that_have_one() -> None:
    text = program("  x = f32[64] parameter(0)\n  r = f32[64] sqrt(x)\n  ROOT l = f32[64] log(r)")
    found = verify(module(text), module(text), deadline=60.0)
    assert found.equal
    assert found.worst is not None
    assert found.worst.expected != "nan"
    assert found.notes == ()


def test_programs_that_are_never_finite_are_compared_by_place() -> None:
    text = program("  x = f32[8] parameter(0)\n  z = f32[8] subtract(x, x)\n  ROOT r = f32[8] divide(x, z)")
    found = verify(module(text), module(text), deadline=60.0)
    assert found.equal
    assert "infinities and NaN were compared by their place" in found.notes[0]
    other = verify(module(text), module(text.replace("divide(x, z)", "subtract(x, z)")), deadline=60.0)
    assert not other.equal


def test_elided_constants_are_said() -> None:
    text = program("  ROOT c = s32[12] constant({...})")
    assert "1 constant was left out" in verify(module(text), module(text), deadline=60.0).notes[0]


def test_constants_elided_from_the_transformed_module_alone_are_said() -> None:
    whole = program("  ROOT c = s32[12] constant({1,2,3,4,5,6,7,8,9,10,11,12})")
    left = program("  ROOT c = s32[12] constant({...})")
    found = verify(module(whole), module(left), deadline=60.0)
    assert not found.equal
    assert "left out of the transformed module's text" in found.notes[0]


def test_inputs_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "inputs.npz"
    x = np.arange(4 * 4 * 8, dtype=np.float32).reshape(4, 4, 8)
    arrays = {"x": x, "1": np.ones((8, 6), np.float32)}
    np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy types its own option as any keyword
    found = verify(module(GATHERED), module(GATHERED), inputs=str(file), deadline=60.0)
    assert found.equal
    assert found.worst is not None
    assert float(found.worst.expected) in x.sum(axis=2)

    np.savez(file, x=x)
    with pytest.raises(InputError, match=r"no array for parameter 1 \(w, f32\[8,6\]\)"):
        verify(module(GATHERED), module(GATHERED), inputs=str(file), deadline=60.0)
    np.savez(file, x=x, w=np.ones(3))
    with pytest.raises(InputError, match=r"w: expected the shape \[8, 6\] or \[4, 8, 6\], found \[3\]"):
        verify(module(GATHERED), module(GATHERED), inputs=str(file), deadline=60.0)
    for wrong in (b"no arrays", b"", b"PK\x03\x04 a broken archive", file.read_bytes()[:-40], _npy()):
        file.write_bytes(wrong)
        with pytest.raises(InputError, match=r"expected an \.npz file"):
            load_inputs(str(file), module(GATHERED).proto, module(GATHERED).header)


def _npy() -> bytes:
    """One array, not an archive of them."""
    file = io.BytesIO()
    np.save(file, np.ones(3))
    return file.getvalue()


def test_a_deadlock_is_called_one() -> None:
    with pytest.raises(WorkerError, match="deadlock: devices wait for each other"):
        verify(module(DEADLOCK), module(DEADLOCK), rendezvous=2.0, deadline=60.0)


def test_an_endless_loop_ends_with_the_deadline() -> None:
    with pytest.raises(WorkerError, match="did not end within 3 s: an endless loop"):
        verify(module(ENDLESS), module(ENDLESS), deadline=3.0, rendezvous=1000.0)


def test_a_crash_quotes_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_no_such_flag=1")  # XLA ends the process
    with pytest.raises(WorkerError, match=r"the worker process ended with .*: Unknown flags? in XLA_FLAGS"):
        verify(module(SUMMED), module(SUMMED), deadline=60.0)


def test_a_module_that_no_pass_should_have_made_is_refused_before_xla_dies_of_it() -> None:
    good = module(program("  p = (f32[8], f32[8]) parameter(0)\n  ROOT r = f32[8] get-tuple-element(p), index=0"))
    proto = HloModuleProto()
    proto.CopyFrom(good.proto)
    proto.computations[-1].instructions[-1].tuple_index = 5
    with pytest.raises(InputError, match="the transformed module: the module is not valid HLO: r in main: index=5"):
        verify(good, replace(good, proto=proto), deadline=60.0)


def test_a_module_that_xla_refuses() -> None:
    wrong = GATHERED.replace("f32[16", "f32[28")
    with pytest.raises(WorkerError, match="XLA cannot"):
        verify(module(wrong), module(wrong), deadline=60.0)


def test_too_large_is_refused_with_the_bytes_before_anything_starts() -> None:
    large = module(program("  p = f32[1099511627776] parameter(0)\n  ROOT r = f32[1099511627776] negate(p)"))
    with pytest.raises(UnsupportedError, match=r"m needs 32\.0 TiB on 4 CPU devices together"):
        verify(large, large)
    inside = module(
        program(
            "  p = f32[] parameter(0)\n  b = f32[1048576,1048576] broadcast(p), dimensions={}\n"
            "  i = f32[1048576,1048576] iota(), iota_dimension=0\n"
            "  d = f32[1048576,1048576] dot(b, i), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
            "  s = f32[1,1] slice(d), slice={[0:1], [7:8]}\n  ROOT r = f32[] reshape(s)"
        )
    )
    with pytest.raises(UnsupportedError, match=r"m needs .* TiB on 4 CPU devices together"):
        verify(inside, inside, deadline=60.0)


def test_memory_is_counted_with_a_reserve() -> None:
    check_fits("m", 900, 2, available=1000)
    with pytest.raises(UnsupportedError, match=r"needs 901 B on 2 CPU devices together, .* has 1000 B"):
        check_fits("m", 901, 2, available=1000)
    available = available_bytes()
    assert available is None or available > 2**20


def test_wrong_uses() -> None:
    gathered = module(GATHERED)
    with pytest.raises(UsageError, match="partitioned for 4 devices and runs on exactly as many; 2 were asked for"):
        verify(gathered, gathered, devices=2)
    with pytest.raises(UsageError, match="one of cpu, gpu, tpu, but 'abacus' came"):
        verify(gathered, gathered, platform="abacus")
    with pytest.raises(UsageError, match="at least one seed"):
        verify(gathered, gathered, seeds=0)
    with pytest.raises(UsageError, match=r"differ in their parameters: \(f32\[4,8\], f32\[8,6\]\) and \(f32\[4,8\]\)"):
        verify(gathered, module(SUMMED))
    halved = GATHERED.replace("num_partitions=4", "num_partitions=2").replace("[1,4]<=[4]", "[1,2]<=[2]")
    with pytest.raises(UsageError, match="run on 4 and 2 devices"):
        verify(gathered, module(halved.replace("f32[16,", "f32[8,")))
    unknown = module(
        program('  x = f32[8] parameter(0)\n  ROOT r = f32[8] custom-call(x), custom_call_target="mosaic"')
    )
    with pytest.raises(UnsupportedError, match='custom-call "mosaic"'):
        verify(unknown, unknown)


def test_a_verification_can_be_cancelled() -> None:
    with pytest.raises(Cancelled):
        verify(module(ENDLESS), module(ENDLESS), deadline=60.0, control=Control(stop=lambda: True))


def test_every_device_has_two_threads() -> None:
    assert int(environment(64, "cpu", 100.0)["NPROC"]) >= 128
    assert environment(64, "cpu", 100.0)["JAX_NUM_CPU_DEVICES"] == "64"


def test_devices_that_run_ahead_do_not_starve_each_other() -> None:
    """Sixteen devices on however few cores, in a loop of collectives: XLA aborts where threads are too few."""
    pairs = "{" + ",".join(f"{{{k},{(k + 1) % 16}}}" for k in range(16)) + "}"
    text = DEADLOCK.replace("num_partitions=4", "num_partitions=16").replace(LEFT, pairs)
    loop = module(text.replace("limit = s32[] add(who, one)", "limit = s32[] constant(50)"))
    assert verify(loop, loop, seeds=3, rendezvous=20.0, deadline=60.0).equal


def test_amplified_rounding_is_not_what_equality_is_said_by() -> None:
    """The original itself is as far from float64 as the largest value: what tells is float64 against float64."""
    own = Output("own", "0", "f32[4]", 1.0, 1.0, 2.0, 0, 0, (0,), "4", "8")
    wide = replace(own, precision="float64", error=0.0, original_error=None, tolerance=1e-9)
    said = str(Verification((own, wide), "float64", 4, "cpu", (0,)))
    assert "worst error 0 of the largest value against float64 (tolerance 1e-09)" in said
    assert "computed in float64: exactly as expected. In the program's own types 1 result cannot be compared" in said
    assert "the original itself is up to 1 of the largest value from float64" in said
    wrong = str(Verification((own, replace(wide, error=0.5)), "float64", 4, "cpu", (0,)))
    assert wrong.startswith("NOT EQUAL on 4 cpu devices, seed 0: worst error 0.5")
    fine = str(
        Verification((replace(own, error=1e-7, original_error=1e-7, tolerance=1e-5), wide), "float64", 4, "cpu", (0,))
    )
    assert "cannot be compared" not in fine
