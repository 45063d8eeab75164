"""Files that a session rests on: known by content, told apart by their first bytes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from engine.errors import InputError
from engine.profile.xspace_pb2 import XSpace
from engine.session.given import GivenFile, content_of, take
from engine.session.kinds import FileKind, kind_of
from tests.places import COMPILED, DATA, SAMPLES

SCHEDULE = COMPILED / "we_v4-4x4x4_2d_8x8_d8192_L2_scan_default.schedule.txt.gz"


def test_a_file_is_known_by_its_content(tmp_path: Path) -> None:
    place = tmp_path / "costs.csv"
    place.write_text("dot.1,5\n", "utf-8")
    file, data = take(str(place))
    assert content_of(file) == data == b"dot.1,5\n"
    assert GivenFile("/elsewhere/costs.csv", file.sha256) == file
    place.write_text("dot.1,6\n", "utf-8")
    with pytest.raises(InputError, match="not what it was"):
        content_of(file)
    place.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        content_of(file)


def space(*planes: tuple[int, str]) -> bytes:
    made = XSpace()
    for number, name in planes:
        made.planes.add(id=number, name=name)
    return made.SerializeToString()


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("run.xplane.pb", b"", FileKind.PROFILE),
        ("run.pb", space((0, "/host:metadata")), FileKind.PROFILE),
        ("run.pb", space((300, "/device:TPU:0"), (2, "/host:CPU")), FileKind.PROFILE),
        ("run.pb.gz", gzip.compress(space((1, "/device:TPU:0")), mtime=0), FileKind.PROFILE),
        ("trace.json", b'{"displayTimeUnit": "ns", "traceEvents": [{"ph": "X"}]}', FileKind.PROFILE),
        ("trace.json.gz", gzip.compress(b'[{"name": "dot.1", "ph": "X"}]', mtime=0), FileKind.PROFILE),
        ("costs.csv", b"dot.1,5\n", FileKind.COSTS),
        ("costs.toml", b'"dot.1" = 5\n', FileKind.COSTS),
        ("feedback.txt", b'# of a run\ncosts { name: "dot.1" cost_us: 5 }\n', FileKind.COSTS),
        ("dump.txt", b'hlo_module {\n  name: "m"\n}\n', FileKind.SCHEDULE),
        ("step.hlo", b"HloModule m\n", FileKind.MODULE),
        ("session.json", b'{"lapstrake_session": 1}', FileKind.MODULE),
        ("step.hlo.gz", b"\x1f\x8bdamaged", FileKind.MODULE),
        ("empty", b"", FileKind.MODULE),
    ],
)
def test_files_are_told_apart_by_their_first_bytes(tmp_path: Path, name: str, content: bytes, kind: FileKind) -> None:
    place = tmp_path / name
    place.write_bytes(content)
    assert kind_of(str(place)) == kind


def test_what_ships_is_told_apart() -> None:
    assert kind_of(str(SCHEDULE)) == FileKind.SCHEDULE
    modules = [*SAMPLES.glob("*.hlo"), *DATA.glob("*/*.hlo.gz")]
    assert {kind_of(str(path)) for path in modules} == {FileKind.MODULE}
    assert kind_of("nowhere") == FileKind.MODULE
