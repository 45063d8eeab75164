"""Where `lapstrake export` and `lapstrake report` write, and where they do not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.cli import export_command, report_command
from app.cli.arguments import parse
from engine.errors import UsageError
from tests.places import SAMPLES

SAMPLE = SAMPLES / "mlp_fig2_forward_4_f32.hlo"


@pytest.mark.parametrize("link", [False, True])
def test_a_file_is_not_written_over_itself(tmp_path: Path, link: bool) -> None:
    source = Path(shutil.copy(SAMPLE, tmp_path / "step.svg"))  # --plot takes no other ending
    target = tmp_path / "same.svg" if link else tmp_path / "." / "step.svg"
    if link:
        target.symlink_to(source)
    before = source.read_bytes()
    exporting = parse(["export", str(source), "--to", "hlo", "-o", str(target)])
    with pytest.raises(UsageError, match="nothing is written over it"):
        export_command.run(exporting)
    for option in ("--html", "--plot"):
        with pytest.raises(UsageError, match="nothing is written over it"):
            report_command.run(parse(["report", str(source), option, str(target)]))
    assert source.read_bytes() == before


@pytest.mark.parametrize(
    ("named", "ordered"),
    [([], True), (["--passes", "decompose"], False), (["--passes", "decompose", "--scheduler", "bottom-up"], True)],
)
def test_a_plan_that_has_a_scheduler_is_written_in_its_order(named: list[str], ordered: bool, tmp_path: Path) -> None:
    """Also the plan that is taken where none is named: it is the fastest in that order alone."""
    target = tmp_path / "out.hlo"
    assert export_command.run(parse(["export", str(SAMPLE), "--to", "hlo", "-o", str(target), "--quiet", *named])) == 0
    assert ("is_scheduled=true" in target.read_text("utf-8")) == ordered
