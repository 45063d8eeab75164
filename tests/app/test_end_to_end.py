"""With mouse and keys alone: open, decompose otherwise, compare, change budget and fusion, save, draw, open again.

What is done stands in `tests.app.sitting`, which runs in a process of its own under Xvfb.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.app import sitting_process, virtual_display

BLOCK = 0.1
"""Seconds of processor time that the GUI's thread may take at a stretch."""
TRIES = 3
"""Sittings, of which one must keep to that: what other work takes from the caches and the clock differs among them."""
STEP, WHOLE = 60.0, 540.0
"""Seconds that a step may take on a busy machine, and until even the script's own watch must have ended it."""


def test_a_whole_sitting(record_property: Callable[[str, object], None]) -> None:
    lacking = virtual_display.missing()
    for _ in range(TRIES):
        ended = sitting_process.sit("--limit", f"{STEP:g}", deadline=WHOLE)
        assert ended.returncode == 0, ended.stdout
        said = json.loads(ended.stdout.splitlines()[-1])
        assert said["platform"] == ("offscreen" if lacking else "xcb")
        assert said["warnings"] == []
        if said["busy"] < BLOCK:
            break
    assert said["busy"] < BLOCK, ended.stdout
    where = f"without real mouse and keyboard, on Qt's offscreen platform: {lacking}" if lacking else "under Xvfb"
    longest = f"longest block of the event loop {said['blocked'] * 1e3:.0f} ms, {said['busy'] * 1e3:.0f} ms of work"
    record_property("summary", f"end-to-end script {where}; {longest}")
