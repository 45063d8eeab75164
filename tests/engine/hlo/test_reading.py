"""Every form of input becomes the same module; every bad one an error that says where and what."""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
from pathlib import Path

import pytest

from engine import worker
from engine.control import Cancelled, Control
from engine.errors import InputError
from engine.export.captured import captured_file
from engine.hlo import xla
from engine.hlo.complaints import explain, explain_death
from engine.hlo.hlo_pb2 import HloModuleProto, HloProto
from engine.hlo.printing import print_here
from engine.hlo.reading import read, read_bytes, read_here
from tests.engine.hlo.texts import BIG_CONSTANT, GATHER, LOOP, SCHEDULED


def test_text_keeps_what_the_proto_loses() -> None:
    module = read_here(GATHER.encode(), "gather.hlo")
    assert module.name == "gather"
    assert module.header.num_partitions == 4
    assert module.header.rest == (("allow_spmd_sharding_propagation_to_parameters", "{false,false}"),)
    assert [i.opcode for i in module.entry.instructions] == ["parameter", "all-gather", "parameter", "dot"]
    assert module.notes == ()
    assert module.source is not None
    assert module.source.path == "gather.hlo"
    assert module.source.sha256 == hashlib.sha256(GATHER.encode()).hexdigest()


@pytest.mark.parametrize("text", [GATHER, LOOP, SCHEDULED, BIG_CONSTANT])
def test_print_and_read_give_the_same_text(text: str) -> None:
    printed = print_here(read_here(text.encode()))
    assert print_here(read_here(printed.encode())) == printed


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: text.encode("utf-16"),
        lambda text: gzip.compress(text.encode()),
    ],
    ids=["plain", "windows", "marked", "utf-16", "gzip"],
)
def test_encodings_of_text(encode: object) -> None:
    assert callable(encode)
    assert print_here(read_here(encode(GATHER))) == print_here(read_here(GATHER.encode()))


@pytest.mark.parametrize("wrap", [False, True], ids=["HloModuleProto", "HloProto"])
@pytest.mark.parametrize("zip_", [False, True], ids=["plain", "gzip"])
def test_protos_infer_their_partitions_and_say_so(wrap: bool, zip_: bool) -> None:
    original = read_here(GATHER.encode())
    proto = HloProto(hlo_module=original.proto) if wrap else original.proto
    data = proto.SerializeToString()
    module = read_here(gzip.compress(data) if zip_ else data)
    assert [i.name for i in module.entry.instructions] == [i.name for i in original.entry.instructions]
    assert module.header.num_partitions == 4
    assert module.notes == ("num_partitions=4 was inferred from all-gather gathered: the header does not say it.",)


def test_stablehlo_text_and_bytecode() -> None:
    code = xla.to_stablehlo(read_here(GATHER.encode()).proto.SerializeToString())
    module = read_here(code, "gather.mlirbc")
    assert sorted(i.opcode for i in module.entry.instructions) == ["all-gather", "dot", "parameter", "parameter"]
    assert module.header.num_partitions == 4

    text = """
module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 2 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.negate %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
    module = read_here(text.encode(), "f.mlir")
    assert (module.name, module.header.num_partitions, module.header.replica_count) == ("jit_f", 8, 2)


def test_a_module_that_is_not_partitioned_says_so() -> None:
    text = (
        "HloModule whole, num_partitions=4\nENTRY main {\n"
        "  ROOT p = f32[8] parameter(0), sharding={devices=[4]<=[4]}\n}\n"
    )
    assert "not partitioned yet" in read_here(text.encode()).notes[0]


MANUAL = """HloModule whole, num_partitions=4
body {
  a = f32[16,64] parameter(0)
  ROOT g = f32[64,64] all-gather(a), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0},
    use_global_device_ids=true
}

ENTRY main {
  p = f32[64,64] parameter(0), sharding={devices=[4,1]<=[4]}
  one = (f32[16,64]) custom-call(p), custom_call_target="xla.sdy.GlobalToLocalShape"
  a = f32[16,64] get-tuple-element(one), index=0
  b = f32[64,64] call(a), to_apply=body
  ROOT r = f32[64,256] custom-call(b), custom_call_target="xla.sdy.LocalToGlobalShape"
}
"""


def test_collectives_written_by_hand_do_not_make_a_module_partitioned() -> None:
    (said,) = read_here(MANUAL.encode()).notes
    assert "not partitioned yet" in said
    assert "collectives only in what is written for one device" in said
    done = MANUAL.replace("xla.sdy.GlobalToLocalShape", "mine").replace("xla.sdy.LocalToGlobalShape", "mine")
    assert not read_here(done.encode()).notes


def test_elided_constants_are_remembered_and_said() -> None:
    text = BIG_CONSTANT.replace("{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}", "{...}")
    module = read_here(text.encode())
    assert module.elided == {module.by_name["c"].id}
    assert "1 constant is elided" in module.notes[0]
    assert "print_large_constants" in module.notes[0]


def test_unknown_attributes_are_left_out_on_every_line_and_said() -> None:
    newer = GATHER.replace("dimensions={0}, ", 'dimensions={0}, surprise={a={1,2}, b="},{"}, ').replace(
        "rhs_contracting_dims={0}", "rhs_contracting_dims={0}, later=3"
    )
    module = read_here(newer.encode())
    assert print_here(module) == print_here(read_here(GATHER.encode()))
    assert module.notes == (
        f"Left out attributes that the installed jaxlib {xla.version()} does not know: surprise, later.",
    )


def test_a_misspelt_attribute_is_reported_as_such() -> None:
    with pytest.raises(InputError, match='unexpected attribute "dimension"') as caught:
        read_here(GATHER.replace("dimensions={0}", "dimension={0}").encode(), "g.hlo")
    assert caught.value.place is not None
    assert caught.value.place.line == 6


def test_a_syntax_error_has_its_place() -> None:
    with pytest.raises(InputError) as caught:
        read_here(GATHER.replace(" dot(", " dott(").encode(), "g.hlo")
    place = caught.value.place
    assert place is not None
    assert (place.path, place.line) == ("g.hlo", 7)
    assert place.text[place.column - 1 :].startswith("dott(")
    assert "dott" in caught.value.message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "found an empty file"),
        (b" \n\n", "found nothing but white space"),
        (b"\x00\x01\x02\xff\xfe\x80" * 20, "bytes of something else"),
        (b"HloModule caf\xe9\nENTRY e {\n", "line 1 holds a byte that is not UTF-8"),
        (b"import jax\nprint(jax)\n", "found other text"),
        (b"\x1f\x8b\x08\x00\x00\x00", "end too early"),
        (gzip.compress(GATHER.encode(), mtime=0)[:-20], "end too early"),
        (b"\x1f\x8b\x08" + b"\xff" * 40, "damaged"),
        (b"a\xaa\x03\x91" * 40, "bytes of something else"),
        (b"HloModule m\n", "the text ends too early"),
        (b"HloModule m\nENTRY e {\n", "the text ends too early"),
        (b"HloModule m\nENTRY e {\n}\n", "a computation without instructions"),
        (b"ML\xefR\x0dStableHLO_v1.0.0\x00junk", "StableHLO"),
        (b"module { func.func @main( }", "expected"),
        (HloModuleProto(name="m").SerializeToString(), "it has no computations"),
        (b"{}", "found other text"),
    ],
)
def test_bad_inputs(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_here(data, "bad")
    assert str(caught.value).startswith("bad:")


def test_a_second_module_is_called_one() -> None:
    with pytest.raises(InputError, match="a second module begins here") as caught:
        read_here((GATHER + LOOP).encode(), "two.hlo")
    assert caught.value.place is not None
    assert caught.value.place.text.startswith("HloModule loop")


def test_a_constant_that_would_fill_the_memory_is_refused() -> None:
    with pytest.raises(InputError, match=r"t:4:15: a constant of 4,294,967,296 elements"):
        read_here(BIG_CONSTANT.replace("[12]", "[4294967296]").encode(), "t")


def test_places_are_counted_as_editors_count_them() -> None:
    """Whatever else Python ends a line at stands within names."""
    text = 'HloModule t\n\nENTRY m {\n  x = f32[2] parameter(0), metadata={op_name="a\u2028b\fc"}\n  ROOT y = LINE\n}\n'
    for line, column in (("f32[4294967296] constant({...})", 15), ("f32[2] negat(x)", 19)):
        with pytest.raises(InputError, match=rf"t:5:{column}: "):
            read_here(text.replace("LINE", line).encode(), "t")


@pytest.mark.parametrize("end", ['op_name="a/b', "op_na", "op_name=", 'op_name="a"'])
def test_a_file_that_was_cut_off_is_said_to_be(end: str) -> None:
    text = f"HloModule t\n\nENTRY m {{\n  x = f32[2] parameter(0), metadata={{{end}"
    with pytest.raises(InputError, match="the text ends too early"):
        read_here(text.encode(), "t")


def test_what_xla_says_of_a_part_of_a_proto_has_no_place() -> None:
    assert str(explain("was parsing 1:2: error: odd", "", "m.pb")) == (
        "m.pb: XLA cannot read it: was parsing 1:2: error: odd"
    )


@pytest.mark.parametrize("size", ["9" * 5000, ",".join(["9" * 18] * 500)])
def test_a_constant_of_more_elements_than_python_counts_is_refused(size: str) -> None:
    text = f"HloModule t\n\nENTRY m {{\n  ROOT c = f32[{size}] constant({{...}})\n}}\n"
    with pytest.raises(InputError, match="a constant of 4,611,686,018,427,387,904 or more elements was given"):
        read_here(text.encode(), "t")


def test_a_folder_lists_its_modules(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found a folder without modules"):
        read(tmp_path)
    (tmp_path / "module_0003.jit_step.before_optimizations.txt").write_text(GATHER)
    with pytest.raises(InputError, match=r"XLA dump of 1 module; give one of its files:\n.*before_optimizations\.txt"):
        read(tmp_path)


def test_a_missing_file() -> None:
    with pytest.raises(InputError, match=r"no-such\.hlo: there is no such file"):
        read("no-such.hlo")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows calls such a file missing")
def test_a_name_that_is_too_long() -> None:
    path = captured_file("a" * 300)
    with pytest.raises(InputError, match="a: File name too long"):
        read_bytes(path)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GATHER.encode())))
    module = read("-")
    assert module.name == "gather"
    assert module.source is not None
    assert module.source.path == "-"


def test_reading_in_a_worker_reports_progress(tmp_path: Path) -> None:
    file = tmp_path / "g.hlo"
    file.write_text(GATHER)
    messages = []
    module = read(file, control=Control(lambda fraction, message: messages.append(message)))
    assert module.header.num_partitions == 4
    assert any(str(file) in message for message in messages)


def test_reading_can_be_cancelled(tmp_path: Path) -> None:
    file = tmp_path / "g.hlo"
    file.write_text(GATHER)
    with pytest.raises(Cancelled):
        read(file, control=Control(stop=lambda: True))


def test_an_abort_is_an_error_that_names_its_cause_and_quotes_xla() -> None:
    with pytest.raises(InputError) as caught:
        read(GATHER.replace("parameter(1)", "parameter(3)").encode(), name="g.hlo")
    assert "no parameter(1) (XLA's parser aborted on it: Check failed: " in caught.value.message
    assert caught.value.place is not None
    assert caught.value.place.line == 5
    assert read(GATHER.encode()).name == "gather"


@pytest.mark.parametrize(
    ("old", "new", "message", "shown"),
    [
        ("parameter(1)", "parameter(3)", "no parameter(1)", "parameter(3)"),
        ("[1,4]<=[4]", "mesh['x'=4] {'z'}", "the mesh has no axis 'z'", "mesh['x'=4]"),
        ("f32[16,16]{1,0} dot", "f32[16,16]{1,0:T(-1)} dot", "negative dimension", ":T(-1)"),
        ("w = f32[8,16]{1,0} parameter(1)", "w = s32[] partition-id()", "partition-id has the shape u32[]", "= s32"),
    ],
)
def test_causes_of_aborts(old: str, new: str, message: str, shown: str) -> None:
    error = explain_death("SIGABRT", GATHER.replace(old, new), "g.hlo")
    assert message in error.message
    assert error.message.endswith("(XLA's parser aborted on it: SIGABRT)")
    assert error.place is not None
    assert error.place.text[error.place.column - 1 :].startswith(shown)


def test_an_abort_for_an_unknown_cause_quotes_xla() -> None:
    error = explain_death("Check failed: a == b", GATHER, "g.hlo")
    assert str(error) == "g.hlo: XLA's parser aborted on it: Check failed: a == b"


def test_a_parser_that_hangs_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*args: object, **kwargs: object) -> None:
        raise worker.TimedOut("no answer")

    monkeypatch.setattr(worker, "call", hang)
    with pytest.raises(InputError, match="did not finish reading it within 3 s"):
        read(GATHER.encode(), name="g.hlo", deadline=3.0)


def test_another_jaxlib_is_refused_with_a_sentence() -> None:
    for version in ("0.9.0", "0.13.0", "1.0"):
        with pytest.raises(Exception, match=rf"jaxlib {version} is installed.*pip install"):
            xla.check_version(version)
    for version in ("0.10.2", "0.12.0", "0.12.0.1", "0.11.0.dev2"):
        xla.check_version(version)
