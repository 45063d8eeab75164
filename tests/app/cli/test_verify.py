"""`lapstrake verify`: what it does not run, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.main import main
from tests.engine.hlo.test_reading import MANUAL


def test_a_program_of_all_devices_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also one with collectives written by hand: outside of them its shapes are those of all devices together."""
    (tmp_path / "before.hlo").write_text(MANUAL)
    assert main(["verify", str(tmp_path / "before.hlo")]) == 2
    err = capsys.readouterr().err
    assert "is not partitioned yet" in err
    assert "--xla_dump_hlo_pass_re=spmd-partitioning" in err


def test_a_report_of_one_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "before.hlo").write_text(MANUAL)
    assert main(["report", str(tmp_path / "before.hlo")]) == 0
    assert "note: The module is not partitioned yet" in capsys.readouterr().err
