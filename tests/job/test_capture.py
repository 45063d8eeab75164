"""`lapstrake capture`, and what other commands make of its folders."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from app.cli.capture_command import means
from app.cli.main import main
from engine.errors import UsageError
from engine.export.payload import lapstrake_capture, lapstrake_job
from tests.job.processes import CAPTURE, HERE, PLAN, SCRIPT, bundled, python, start
from tools import job_python


@pytest.fixture
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XLA_FLAGS", "JAX_PLATFORMS", "NPROC", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("_plain_environment")
def test_a_script_is_captured_up_to_its_loop(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", str(SCRIPT), "--target", "cpu:8", "-o", str(tmp_path / "captured")]) == 0
    folder = tmp_path / "captured" / "train_step"
    out = capfd.readouterr().out
    # The script ends when its step is called again, before it prints what it is there for.
    assert out.splitlines()[-1] == str(folder)
    assert "losses" not in out
    content = json.loads((folder / "capture.json").read_text())
    assert content["obstacle"] == ""
    assert content["signature"]["mesh"] == {"names": ["x", "y"], "sizes": [2, 4], "devices": list(range(8))}
    assert "constant({...})" not in (folder / "partitioned.hlo").read_text()
    assert "num_partitions=8" in (folder / "scheduled.hlo").read_text().partition("\n")[0]
    assert main(["report", str(folder), "--json", "--quiet"]) == 0
    assert json.loads(capfd.readouterr().out)["module"]["partitions"] == 8


def test_a_function_that_is_never_called_is_named(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import jax\nprint(jax.jit(lambda a: a + 1)(1))\n")
    process = start(CAPTURE, "--function", "train", str(script), cwd=tmp_path, JAX_PLATFORMS="cpu")
    _, logged = process.communicate(timeout=100)
    assert process.returncode == 1
    assert "never called a function called train" in logged


def test_targets() -> None:
    assert means("attached") == ("", {})
    target, environment = means("cpu:4")
    assert target == ""
    assert "--xla_force_host_platform_device_count=4" in environment["XLA_FLAGS"]
    target, environment = means("tpu:v4:2x2x2")
    assert target == "tpu:v4:2x2x2"
    assert "=8" in environment["XLA_FLAGS"]
    assert "=16" in means("tpu:tpu7x:2x2x2")[1]["XLA_FLAGS"]
    with pytest.raises(UsageError, match="--target tpu: attached"):
        means("tpu")


def test_a_script_or_an_interpreter_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", str(tmp_path / "no.py"), "-o", str(tmp_path / "out")]) == 2
    assert "a Python script was expected" in capsys.readouterr().err
    assert main(["capture", str(SCRIPT), "--python", str(tmp_path / "no"), "-o", str(tmp_path / "out")]) == 2
    assert "a Python interpreter was expected" in capsys.readouterr().err


def test_both_files_know_the_same_obstacles() -> None:
    assert lapstrake_capture.OBSTACLES == lapstrake_job.OBSTACLES
    assert lapstrake_capture.SCHEMA == lapstrake_job.SCHEMA
    text = "HloModule m, input_output_alias={ {0}: (0) }, entry_computation_layout={(f32[])->f32[]}, num_partitions=8\n"
    text += "\n%a (b: f32[]) -> f32[] {\n}\n"
    assert lapstrake_capture.known_by(text) == lapstrake_job.known_by(text)
    assert lapstrake_job.known_by(text)["input_output_alias"] == "{ {0}: (0) }"


@pytest.mark.full
@pytest.mark.parametrize("newest", [False, True], ids=["this jax", "the newest jax"])
@pytest.mark.usefixtures("_plain_environment")
def test_tpus_that_are_not_there(tmp_path: Path, newest: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrapped step compiles with our permutes in our order, or each transfer beside the einsum that hides it."""
    found = importlib.util.find_spec("libtpu")
    if found is None or found.submodule_search_locations is None:
        pytest.skip("libtpu is not installed: pip install 'lapstrake[tpu]'")
    interpreter = sys.executable
    if newest:
        try:
            interpreter = str(job_python.interpreter())
        except LookupError as reason:
            pytest.skip(str(reason))
    # That package alone: what lies beside it here is another jax than that of a job.
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "libtpu").symlink_to(found.submodule_search_locations[0])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    options = ("--python", interpreter, "--target", "tpu:v4:2x2x2", "--function", "train_step")
    assert main(["capture", str(SCRIPT), *options, "-o", str(tmp_path)]) == 0
    text = (tmp_path / "train_step" / "partitioned.hlo").read_text()
    assert "windowed" not in text
    assert re.search(r" all-(gather|reduce)\(", text)
    content = json.loads((tmp_path / "train_step" / "capture.json").read_text())
    assert content["signature"]["mesh"]["devices"] is None
    assert content["versions"]["platform"] == "tpu:v4:2x2x2"
    made = bundled(tmp_path / "train_step", tmp_path / "bundle", *PLAN)
    environment = {**means("tpu:v4:2x2x2")[1], "PYTHONPATH": str(tmp_path / "site")}
    script = str(HERE / "without_devices.py")
    out, _ = python(script, str(made), cwd=tmp_path, interpreter=interpreter, **environment)
    version, fired, permutes, in_order, elsewhere, aliased, *_ = json.loads(out.splitlines()[-1])
    assert permutes > 10
    assert aliased
    # jax 0.10.2 gives compilers without devices no hook.
    assert bool(fired) == (not version.startswith("0.10."))
    assert not fired or in_order > 5 * elsewhere
    out, _ = python(script, str(made), "grouped.mlirbc", cwd=tmp_path, interpreter=interpreter, **environment)
    *_, groups, together = json.loads(out.splitlines()[-1])
    assert groups > 10
    assert together > 0.8 * groups
