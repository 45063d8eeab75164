"""The one command behind `make test`: what it runs, in which order, and when it stops."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import settings

from tools import check
from tools.check import Linter


def python(code: str) -> tuple[str, ...]:
    return ("python", "-c", code)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would have run, without running them."""
    commands: list[list[str]] = []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_failed_linter_is_shown_and_the_tests_still_run(
    monkeypatch: pytest.MonkeyPatch, runs: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    linters = (Linter("good", python("")), Linter("bad", python("print('line 3 is wrong'); raise SystemExit(1)")))
    monkeypatch.setattr(check, "LINTERS", linters)
    assert check.main([]) == 1
    printed = capsys.readouterr().out
    assert "FAILED bad" in printed
    assert "line 3 is wrong" in printed
    assert [command[2] for command in runs] == ["app.display", "pytest"]


def test_linters_alone_need_no_qt(monkeypatch: pytest.MonkeyPatch, runs: list[list[str]]) -> None:
    monkeypatch.setattr(check, "LINTERS", (Linter("good", python("")),))
    assert check.main(["--lint"]) == 0
    assert runs == []


def test_without_qt_nothing_is_skipped_but_all_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "window_tests_can_run", lambda: False)
    monkeypatch.setattr(check, "lint", lambda: pytest.fail("went on without Qt"))
    assert check.main([]) == 2


def test_full_run_takes_every_mark() -> None:
    assert "full or not full" in check.pytest_command(full=True)
    assert "full or not full" not in check.pytest_command(full=False)


def test_full_run_draws_more(pytestconfig: pytest.Config) -> None:
    command = check.pytest_command(full=True)
    profile = command[command.index("--hypothesis-profile") + 1]
    assert settings.get_profile(profile).max_examples > 5 * settings.get_profile("lapstrake").max_examples
    assert not settings.get_profile(profile).derandomize


def test_failing_tests_fail_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "LINTERS", ())
    monkeypatch.setattr(check, "window_tests_can_run", lambda: True)
    monkeypatch.setattr(check, "pytest_command", lambda full: [sys.executable, "-c", "raise SystemExit(1)"])
    assert check.main([]) == 1


def test_tests_draw_offscreen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "xcb")
    assert check.test_environment()["QT_QPA_PLATFORM"] == "offscreen"
