"""The table of benchmarks names every script, and no other."""

from __future__ import annotations

import re

from tests.places import ROOT


def test_every_script_is_named() -> None:
    folder = ROOT / "benchmarks"
    named = set(re.findall(r"`([a-z_]+)`", (folder / "README.md").read_text("utf-8")))
    assert named - {"tpu"} == {path.stem for path in folder.glob("*.py")}
