"""The page "A faster job", followed to the letter with its own script: from the script, and from a dump."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.main import main
from tests.job.processes import python
from tests.places import ROOT

pytestmark = pytest.mark.full

DOCS = ROOT / "docs"
PAGE = (DOCS / "job.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)


def command(start: str) -> list[str]:
    """The page's command that begins so, without the word `lapstrake`."""
    lines = [line for _, block in BLOCKS for line in block.splitlines()]
    return shlex.split(next(line for line in lines if line.startswith(start)))[1:]


def prepared(folder: Path) -> Path:
    """The script with what the page says put where the page says."""
    load, explain = (
        block for kind, block in BLOCKS if kind == "python" and "capture(" not in block and "install" not in block
    )
    text = (folder / "train.py").read_text("utf-8")
    assert "\n\ndef main(" in text
    text = text.replace("\n\ndef main(", f"\n\n{load}\n\ndef main(", 1)
    (folder / "tuned.py").write_text(f"{text}{explain}")
    return folder / "tuned.py"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(DOCS / "train.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("XLA_FLAGS", "JAX_PLATFORMS", "NPROC", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")  # an accelerator of this machine is not what the page is about
    return tmp_path


def losses(text: str) -> list[float]:
    return [float(value) for value in re.findall(r"loss ([\d.]+)", text)]


def test_from_the_script(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = command("lapstrake capture train.py")
    capture[capture.index("--python") + 1] = sys.executable
    assert main(capture) == 0
    assert main(command("lapstrake report captured")) == 0
    assert main(command("lapstrake tune captured/train_step --chip")) == 0
    assert "nothing found is faster than the module whole, asynchronous" in capsys.readouterr().out
    assert not (folder / "bundle").exists()
    prepared(folder)
    assert main(command("lapstrake tune captured/train_step --passes")) == 0
    found, logged = python("tuned.py", cwd=folder, JAX_PLATFORMS="cpu")
    assert "structure: applied" in found
    assert "lapstrake:" not in logged
    sample = next(block for _, block in BLOCKS if block.startswith("lapstrake: structure"))
    assert found[found.index("lapstrake: ") :].split() == sample.split()
    text = (folder / "tuned.py").read_text("utf-8")
    (folder / "other.py").write_text(text.replace("BATCH, WIDTH, HIDDEN = 64,", "BATCH, WIDTH, HIDDEN = 32,"))
    _, logged = python("other.py", cwd=folder, JAX_PLATFORMS="cpu")
    warning = next(block for _, block in BLOCKS if block.startswith("lapstrake: the original runs"))
    assert logged.split() == warning.split()
    plain, _ = python("train.py", cwd=folder, JAX_PLATFORMS="cpu")
    assert losses(found) == pytest.approx(losses(plain), abs=2e-6)
    assert len(losses(plain)) == 5
    assert main(shlex.split("tune captured/train_step --order-only --scheduler memory -o bundle")) == 0
    install = next(block for kind, block in BLOCKS if kind == "python" and "install" in block)
    text = (folder / "train.py").read_text("utf-8")
    load = f'import sys\nsys.path.insert(0, "bundle")\nimport lapstrake_job\n{install}'
    (folder / "ordered.py").write_text(text.replace("\n\ndef main(", f"\n\n{load}\n\ndef main(", 1))
    found, logged = python("ordered.py", cwd=folder, JAX_PLATFORMS="cpu")
    assert losses(found) == losses(plain)
    assert "lapstrake" not in logged


def test_from_a_dump(folder: Path) -> None:
    line = next(line for _, block in BLOCKS for line in block.splitlines() if line.startswith("XLA_FLAGS="))
    flags = shlex.split(line)[0].partition("=")[2]
    given = f"--xla_force_host_platform_device_count=8 {flags}"
    subprocess.run([sys.executable, "train.py", "1"], env={**os.environ, "XLA_FLAGS": given, "NPROC": "16"}, check=True)
    (dumped,) = (folder / "dump").glob("*.jit_train_step.*after_spmd-partitioning*.txt")
    tune = command("lapstrake tune dump/")
    tune[tune.index(next(word for word in tune if word.startswith("dump/")))] = str(dumped)
    assert main(tune) == 0
    found, _ = python(str(prepared(folder)), cwd=folder, JAX_PLATFORMS="cpu")
    assert "structure: applied (made from a dump" in found
    plain, _ = python("train.py", cwd=folder, JAX_PLATFORMS="cpu")
    assert losses(found) == pytest.approx(losses(plain), abs=2e-6)
