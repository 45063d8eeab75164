"""The Makefile itself: every target expands, and what it calls exists."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.places import ROOT

TARGETS = ("demo", "test", "test-all", "lint", "proto", "samples", "screenshots", "package")


def make(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    # These tests may run under make themselves: what it was told is not for the make that they start.
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "EXTRAS", "PYTHON")}
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("target", TARGETS)
def test_targets_prepare_the_environment_first(target: str) -> None:
    printed = make("--dry-run", target)
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.index("tools/environment.py") < printed.stdout.index(".venv/")


def test_continuous_integration_installs_the_tpu_compiler() -> None:
    (command,) = (line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("exec make"))
    assert '--extras "dev exact tpu"' in make("--dry-run", *command.split()[2:]).stdout
    assert '--extras "dev exact "' in make("--dry-run", "test").stdout


def test_help_is_the_default_and_names_every_target() -> None:
    printed = make().stdout
    assert all(f"make {target} " in printed for target in (*TARGETS, "clean"))


def test_no_python_at_all_is_said_in_words(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    shell = shutil.which("sh")
    assert shell is not None
    (tmp_path / "bin").mkdir()
    for program in ("sh", "env"):
        found = shutil.which(program)
        assert found is not None
        (tmp_path / "bin" / program).symlink_to(found)
    makes = shutil.which("make")
    assert makes is not None
    printed = subprocess.run(
        [makes, "demo"],
        cwd=tmp_path,
        env={"PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert printed.returncode == 2
    assert "No Python was found" in printed.stderr


def test_named_python_that_does_not_exist_is_said() -> None:
    printed = make("lint", "PYTHON=/no/such/python")
    assert printed.returncode == 2
    assert "/no/such/python" in printed.stderr
