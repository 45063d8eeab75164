"""What lies beside a captured module says what its job's mesh is called."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.cli.main import main
from app.work import load
from engine.control import QUIET
from engine.errors import InputError
from engine.export.captured import read_capture, with_mesh
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.session.evaluation import Evaluator
from engine.session.plan import MachineSpec
from tests.places import SAMPLES

SAMPLE = SAMPLES / "mlp_fig3_train_2x4_bf16.hlo"


def captured(folder: Path, content: object, name: str = "capture.json") -> Module:
    (folder / "partitioned.hlo").write_bytes(SAMPLE.read_bytes())
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    path = str(folder / "partitioned.hlo")
    return with_mesh(read_here((folder / "partitioned.hlo").read_bytes(), path))


def mesh(*axes: tuple[str, int]) -> dict[str, object]:
    return {"signature": {"mesh": {"names": [n for n, _ in axes], "sizes": [s for _, s in axes], "devices": None}}}


@pytest.mark.parametrize("name", ["capture.json", "manifest.json"])
def test_the_job_s_axes_are_taken(tmp_path: Path, name: str) -> None:
    module = captured(tmp_path, mesh(("data", 2), ("stage", 1), ("model", 4)), name)
    machine = Evaluator(module).machine
    assert machine.mesh == (("data", 2), ("model", 4))
    assert f"The mesh data=2,model=4 is the job's, from {tmp_path / name}." in machine.notes
    assert not any("inferred from the replica groups" in note for note in machine.notes)


def test_so_does_the_window_and_what_is_typed_wins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    captured(tmp_path, mesh(("data", 2), ("model", 4)))
    path = tmp_path / "partitioned.hlo"
    module, facts = load(path.read_bytes(), str(path), control=QUIET)
    assert module.job_mesh is not None
    assert Evaluator(module).machine.mesh == (("data", 2), ("model", 4))
    assert facts.partitions == 8
    assert main(["report", str(tmp_path), "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["machine"]["mesh"] == {"data": 2, "model": 4}
    assert main(["report", str(tmp_path), "--json", "--quiet", "--mesh", "a=4,b=2"]) == 0
    assert json.loads(capsys.readouterr().out)["machine"]["mesh"] == {"a": 4, "b": 2}


@pytest.mark.parametrize(("typed", "differs"), [("model=2,data=4", True), ("data=2,model=4", False)])
def test_a_mesh_that_overrules_the_job_s_is_told(tmp_path: Path, typed: str, differs: bool) -> None:
    module = captured(tmp_path, mesh(("data", 2), ("model", 4)))
    notes = " ".join(Evaluator(module, MachineSpec(mesh=typed)).machine.notes)
    said = (
        f"The mesh {typed} was given and is taken; the job's own, from {tmp_path / 'capture.json'}, is data=2,model=4."
    )
    assert (said in notes) is differs


@pytest.mark.parametrize("content", ["{", "[]", {}, {"signature": None}, mesh(("x", 2)), mesh(("x", 2), ("y", 8))])
def test_a_mesh_that_does_not_fit_is_inferred(tmp_path: Path, content: object) -> None:
    assert any("inferred from the replica groups" in n for n in Evaluator(captured(tmp_path, content)).machine.notes)


@pytest.mark.parametrize(
    ("content", "said"),
    [("{", "it is no JSON:"), ("[]", "it is no JSON object:"), ({"signature": {}}, "it has no 'fingerprint'")],
)
def test_a_damaged_capture_is_told_without_python(tmp_path: Path, content: object, said: str) -> None:
    captured(tmp_path, content)
    with pytest.raises(InputError) as refused:
        read_capture(str(tmp_path / "partitioned.hlo"))
    assert said in str(refused.value)
    assert "capture the script again" in str(refused.value)
    assert not any(name in str(refused.value) for name in ("Error", "Expecting", "indices"))


def test_a_script_s_folder_is_its_only_function_s(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        captured(tmp_path / name, mesh(("data", 2), ("model", 4)))
        status = main(["report", str(tmp_path), "--json", "--quiet"])
        assert status == (0 if name == "first" else 2)
    assert f"found a folder of several: {tmp_path / 'first'}, {tmp_path / 'second'}" in capsys.readouterr().err
    assert main(["tune", str(tmp_path), "-o", str(tmp_path / "b")]) == 2


def test_standard_input_is_called_that(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=BytesIO(b"HloModule x")))
    assert main(["report", "-"]) == 2
    assert capsys.readouterr().err.startswith("lapstrake: standard input:1:11: ")
