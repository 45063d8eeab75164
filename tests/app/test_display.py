"""What the child process that tries Qt reports, and how it is told."""

from __future__ import annotations

import errno
import os
import sys
from multiprocessing.context import SpawnProcess
from typing import NoReturn

import pytest

from app import display


def test_offscreen_platform_starts() -> None:
    assert display.display_trouble("offscreen") is None


def test_unknown_platform_is_quoted_in_qt_words() -> None:
    trouble = display.display_trouble("no-such-platform")
    assert trouble is not None
    assert "no-such-platform" in trouble


def test_first_complaint_is_the_cause() -> None:
    words = """
    qt.qpa.xcb: could not connect to display
    qt.qpa.plugin: Could not load the Qt platform plugin "xcb" in "" even though it was found.
    Aborted
    """
    assert display._cause(words) == "qt.qpa.xcb: could not connect to display"


def test_missing_library_is_the_cause() -> None:
    words = "Traceback (most recent call last):\n  File …\nImportError: libEGL.so.1: cannot open shared object file\n"
    assert display._cause(words) == "ImportError: libEGL.so.1: cannot open shared object file"


@pytest.mark.parametrize(("system", "told"), [("linux", True), ("darwin", False)])
def test_packages_are_named_on_linux(monkeypatch: pytest.MonkeyPatch, system: str, told: bool) -> None:
    monkeypatch.setattr(sys, "platform", system)
    text = display.advice("libEGL.so.1 is missing")
    assert "libEGL.so.1 is missing" in text
    assert ("libxcb-cursor0" in text) is told


def test_where_no_process_can_be_started_that_is_the_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(process: SpawnProcess) -> NoReturn:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(SpawnProcess, "start", refuse)
    trouble = display.display_trouble("offscreen")
    assert trouble == f"no process could be started to try it: {os.strerror(errno.EAGAIN)}"
