from __future__ import annotations

import os
from pathlib import Path

from app.settings import Settings


def test_recent_paths_are_found_again_whatever_their_names_are(tmp_path: Path) -> None:
    paths = ["/models/ein Weg/ü%20.hlo", os.fsdecode(b"/models/100% \xff, bad.hlo"), "relative.hlo"]
    settings = Settings(tmp_path / "window.ini")
    for path in reversed(paths):
        settings.remember(path)
    settings.sync()
    assert list(Settings(tmp_path / "window.ini").recent) == paths
    settings.remember(paths[1])
    assert settings.recent == (paths[1], paths[0], paths[2])
