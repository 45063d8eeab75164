"""Files in a .zip are read by the paths that they would have in a folder; a bundle that is one is its tuned module."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from app.cli.main import main
from engine.errors import InputError, UsageError
from engine.export.captured import captured_file, check_source, with_mesh
from engine.export.writing import check_apart
from engine.hlo.reading import read, read_bytes
from engine.hlo.zipped import archive_of, names_in, read_member
from tests.places import SAMPLES

SAMPLE = SAMPLES / "mlp_fig3_train_2x4_bf16.hlo"
MESH = {"signature": {"mesh": {"names": ["data", "model"], "sizes": [2, 4]}}}


def zipped(path: Path, **files: str | bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_", "."), content)
    return path


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return zipped(tmp_path / "b.zip", manifest_json=json.dumps(MESH), tuned_hlo=SAMPLE.read_bytes())


def test_a_bundle_is_its_tuned_module_with_its_job_s_mesh(bundle: Path) -> None:
    file = captured_file(str(bundle))
    assert file == f"{bundle}{os.sep}tuned.hlo"
    assert archive_of(file) == bundle
    module = with_mesh(read(file))
    assert module.name == read(SAMPLE).name
    assert module.job_mesh is not None
    assert dict(module.job_mesh.axes) == {"data": 2, "model": 4}


def test_every_command_that_takes_a_module_takes_it(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["report", "--json"],
        ["explain", "dot"],
        ["export", "--to", "hlo", "-o", "-"],
        ["compare", f"{bundle}/tuned.hlo", "--variant", "fuse"],
    ):
        assert main([words[0], str(bundle), *words[1:], "--quiet"]) == 0
        assert capsys.readouterr().out


def test_tune_says_why_it_does_not(bundle: Path) -> None:
    for path in (str(bundle), f"{bundle}/tuned.hlo"):
        with pytest.raises(UsageError, match="this is of a bundle"):
            check_source(path)
    check_source(f"{bundle}/other.hlo")


def test_nothing_is_written_over_the_archive(bundle: Path) -> None:
    with pytest.raises(UsageError, match="nothing is written over it"):
        check_apart(bundle, [captured_file(str(bundle))])


def test_what_is_wrong_is_said(tmp_path: Path, bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=r"no nope\.hlo is in it; found manifest\.json, tuned\.hlo"):
        read_bytes(bundle / "nope.hlo")
    with pytest.raises(InputError, match="there is no such file"):
        read_member(tmp_path / "nope.zip" / "tuned.hlo")
    other = zipped(tmp_path / "other.zip", step_hlo=SAMPLE.read_bytes())
    assert main(["report", str(other)]) == 2
    assert "a .zip that is no bundle: name a file in it" in capsys.readouterr().err
    assert read_bytes(other / "step.hlo") == SAMPLE.read_bytes()
    content = bytearray(bundle.read_bytes())
    content[200:400] = bytes(200)
    bundle.write_bytes(content)
    with pytest.raises(InputError, match=r"the \.zip is damaged"):
        read_bytes(bundle / "tuned.hlo")
    with zipfile.ZipFile(tmp_path / "lzma.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("tuned.hlo", SAMPLE.read_bytes())
    content = bytearray((tmp_path / "lzma.zip").read_bytes())
    content[100:1000] = bytes(900)
    (tmp_path / "lzma.zip").write_bytes(content)
    with pytest.raises(InputError, match=r"the \.zip is damaged"):
        read_bytes(tmp_path / "lzma.zip" / "tuned.hlo")
    assert names_in(SAMPLE) == names_in(tmp_path) == names_in(tmp_path / "none") == ()
    assert archive_of("x" * 5000 + "/a") is None
