"""`lapstrake capture`, and what other commands make of its folders."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from app.cli.capture_command import means
from app.cli.main import main
from engine.errors import UsageError
from engine.export.payload.lapstrake_runtime import lapstrake_capture
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


def test_a_program_that_is_no_interpreter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    does_nothing = shutil.which("true")
    if does_nothing is None:
        pytest.skip("no program that does nothing")
    assert main(["capture", str(SCRIPT), "--python", does_nothing, "-o", str(tmp_path / "out")]) == 2
    assert "a Python interpreter was expected, but it ended well and captured nothing" in capsys.readouterr().err


def test_what_is_no_jitted_function_is_to_be_wrapped(tmp_path: Path) -> None:
    with pytest.raises(lapstrake_capture.CaptureError, match=r"function from jax\.jit .*: wrap it in jax\.jit"):
        lapstrake_capture.capture(abs, -1, out=str(tmp_path))


def test_what_a_module_is_known_by() -> None:
    text = "HloModule m, input_output_alias={ {0}: (0) }, entry_computation_layout={(f32[])->f32[]}, num_partitions=8\n"
    body = "\n%a (b: f32[]) -> f32[] {\n}\n"
    known = lapstrake_capture.known_by(text + body)
    assert known["input_output_alias"] == "{ {0}: (0) }"
    assert known["entry_computation_layout"] == "{(f32[])->f32[]}"
    assert known["buffer_donor"] == "{}"
    assert known == lapstrake_capture.known_by(text.replace("HloModule m,", "HloModule n, is_scheduled=true,") + body)
    assert known["sha256"] != lapstrake_capture.known_by(text + body.replace("f32", "f64"))["sha256"]


_MOVED = """import sys, jax, jax._src.config
del jax._src.config.trace_context
sys.path.insert(0, sys.argv[1])
import lapstrake_job
plan = lapstrake_job.load("bundle")
print(int(plan.wrap(jax.jit(lambda a: a + 1))(1)))
print(plan.explain())
print(lapstrake_job.load("bundle").install())
"""


def test_a_jax_that_has_moved_what_a_plan_needs(tmp_path: Path) -> None:
    """The job runs on, with its own function."""
    (tmp_path / "job.py").write_text(_MOVED)
    payload = str(Path(CAPTURE).parents[1])
    out, logged = python("job.py", payload, cwd=tmp_path, JAX_PLATFORMS="cpu")
    two, said, installed = out.splitlines()
    assert (two, installed) == ("2", "False")
    assert "the original runs: jax" in said
    assert "has moved what a plan needs of it" in said
    assert logged.count("lapstrake: ") == 2


_ON_A_MESH = """import jax, jax.numpy as jnp
mesh = jax.make_mesh((2,), ("x",))
x = jax.device_put(jnp.ones(8), jax.NamedSharding(mesh, jax.P("x")))
"""


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("jax.jit(lambda x, n: x * n, static_argnums=1)(x, 3)", "it has static arguments"),
        ("jax.jit(lambda k, x: x + jax.random.normal(k, (8,)))(jax.random.key(0), x)", "a typed PRNG key is among"),
        ("jax.jit(lambda x, y=None: x * 2)(x, y=None)", ""),
    ],
)
def test_what_a_plan_cannot_be_passed_is_said_first(tmp_path: Path, call: str, why: str) -> None:
    flags = "--xla_force_host_platform_device_count=2"
    code, folder, said = _capture(tmp_path, "script.py", script=f"{_ON_A_MESH}{call}\n", XLA_FLAGS=flags)
    assert code == 0, said
    assert ("no plan of it can run in a job" in said) == bool(why)
    assert why in said
    made = json.loads((tmp_path / folder.split()[-1] / "capture.json").read_bytes())
    assert made["obstacle"].startswith(why)
    assert bool(made["obstacle"]) == bool(why)


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


def _capture(folder: Path, *arguments: str, script: str = "", **environment: str) -> tuple[int, str, str]:
    """Exit status, output and log of `lapstrake_capture`, run alone on a script of these lines."""
    if script:
        (folder / "script.py").write_text(script)
    process = start(CAPTURE, "--out", "out", *arguments, cwd=folder, JAX_PLATFORMS="cpu", **environment)
    out, logged = process.communicate(timeout=100)
    assert "lapstrake_capture.py" not in logged, logged
    return process.returncode, out, logged


def test_functions_that_were_called_are_listed(tmp_path: Path) -> None:
    script = (
        "import jax\n@jax.jit\ndef one(a):\n  return a + 1\n@jax.jit\ndef two(a):\n  return one(a) + 1\ntwo(one(1))\n"
    )
    status, _, logged = _capture(tmp_path, "--function", "train", "script.py", script=script)
    assert status == 1
    assert "called train; those from jax.jit that it called: one, two" in logged


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("def f():\n  raise ValueError('mine')\nf()\n", "script.py failed (ValueError); functions captured before: 0"),
        ("print('hello')\n", "script.py called no function from jax.jit"),
        ("import sys\nsys.exit('no data')\n", "script.py ended itself (no data); functions captured before: 0"),
        ("import jax\njax.jit(lambda a: a)(1)\n", "not captured: <lambda>: no argument or result lies on a mesh"),
    ],
)
def test_a_script_that_has_nothing_to_capture(tmp_path: Path, script: str, said: str) -> None:
    """What it raises is shown as it would be alone: its own lines, and none of the capture's."""
    status, _, logged = _capture(tmp_path, "script.py", script=script)
    assert status == 1
    assert said in logged
    assert ("Traceback" in logged) == ("raise" in script)
    assert "runpy" not in logged
    assert not (tmp_path / "out").exists()


def test_arguments_of_the_script_are_its_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, os\nprint(sys.argv[1:], os.path.basename(sys.path[0]), 'lapstrake_capture' in sys.modules)\n"
    )
    assert main(["capture", str(script), "-o", str(tmp_path / "out"), "--", "--steps", "3", "-o", "x"]) == 1
    assert f"['--steps', '3', '-o', 'x'] {tmp_path.name} False" in capfd.readouterr().out


def test_a_full_disk_ends_it_with_a_sentence(tmp_path: Path) -> None:
    """Before the job's own work begins. A file where the folder should be is as good as no space."""
    script = (
        "import jax\nfrom jax.sharding import NamedSharding, PartitionSpec as P\n"
        "on = NamedSharding(jax.make_mesh((2,), ('x',)), P('x'))\n"
        "f = jax.jit(lambda a: a.sum(), in_shardings=on)\nf(jax.numpy.ones(8))\nprint('trained')\n"
    )
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "NPROC": "16"}
    (tmp_path / "out").write_text("")
    status, out, logged = _capture(tmp_path, "script.py", script=script, **flags)
    assert (status, out) == (1, "")
    assert "not captured: <lambda>: cannot make the folder" in logged
    (tmp_path / "out").unlink()
    status, out, logged = _capture(tmp_path, "--go-on", "script.py", **flags)
    assert (status, out.splitlines()) == (0, ["trained", str(Path("out") / "_lambda_")])


def test_no_space_left_says_so_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(lapstrake_capture.DiskError, match=r"cannot write .*a\.hlo: No space left on device"):
        lapstrake_capture._write(tmp_path / "a.hlo", b"text")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(tempfile, "mkdtemp", lambda *_: full(0))
    with pytest.raises(lapstrake_capture.DiskError, match="TMPDIR names another place"):
        lapstrake_capture._dump_folder().__enter__()
    monkeypatch.undo()
    (tmp_path / "m.after_spmd-partitioning.txt").write_text("HloModule m\n\nENTRY e {\n  a = f32[")
    with pytest.raises(lapstrake_capture.DiskError, match="only part of the module"):
        lapstrake_capture._dumped(str(tmp_path))


def test_files_are_as_any_others(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        lapstrake_capture._write(tmp_path / "a.hlo", b"text")
    finally:
        os.umask(before)
    assert (tmp_path / "a.hlo").stat().st_mode & 0o777 == 0o640


def test_an_interpreter_without_jax(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jax.py").write_text("raise ImportError('no jax here')\n")
    script = tmp_path / "script.py"
    script.write_text("")
    alone = tmp_path / "python"
    alone.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(tmp_path))} exec {shlex.quote(sys.executable)} "$@"\n')
    alone.chmod(0o755)
    assert main(["capture", str(script), "--python", str(alone), "-o", str(tmp_path / "out")]) == 2
    err = capfd.readouterr().err
    assert "has no jax that can be imported (no jax here)" in err
    assert "Traceback" not in err
