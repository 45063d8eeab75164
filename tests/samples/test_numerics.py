"""Every sample for up to eight devices gives the same results when it is decomposed, whatever the gate thinks of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.cli.main import main
from tests.places import SAMPLES

PLANS = (
    "decompose,async-permute,fuse",
    "decompose{gate=off},async-permute,fuse",
    "decompose{gate=off,form=rolled},async-permute",
    "decompose{gate=off,form=unrolled,unroll=2,ring=one},async-permute",
    "decompose{gate=off,form=unrolled,ring=both},async-permute,fuse",
)
QUICK = ("mlp_fig2_train_4_f32", "mlp_fig3_train_2x2_f32", "pipeline_train_4x2_f32")
"""Verified in every run, under a plan that decomposes all that can be."""


def runnable() -> list[Path]:
    """Samples whose devices the CPU can stand in for; the ones named large have more."""
    files = sorted(SAMPLES.glob("*.hlo"))
    partitions = {file: re.search(r"num_partitions=(\d+)", file.read_text("utf-8")) for file in files}
    return [file for file, found in partitions.items() if found is not None and int(found[1]) <= 8]


def verified(file: Path, plan: str, capsys: pytest.CaptureFixture[str]) -> int:
    """Exit status of `lapstrake verify`; shows what it printed where the test fails."""
    status = main(["verify", str(file), "--passes", plan])
    print(capsys.readouterr().out)
    return status


@pytest.mark.parametrize("name", QUICK)
def test_decomposed_sample_equals_the_original(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert verified(SAMPLES / f"{name}.hlo", PLANS[1], capsys) == 0


@pytest.mark.full
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("file", runnable(), ids=lambda file: file.stem)
def test_every_sample_under_every_plan(file: Path, plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert verified(file, plan, capsys) == 0
