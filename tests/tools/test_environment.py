"""What `make` decides before it installs anything: which Python, whether to rebuild, what to say when it cannot."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools import environment
from tools.environment import Host, Interpreter, Stamp, Stop

LINUX = Host("Linux", "x86_64", (), translated=False, glibc=True)


def interpreter(path: str, version: tuple[int, ...], **said: bool) -> Interpreter:
    facts = {"final": True, "cpython": True, "gil": True, "seedable": True, **said}
    return Interpreter(path=path, version=version, machine="x86_64", base=f"/opt/{path}", **facts)


@pytest.mark.parametrize(
    "host",
    [
        LINUX,
        LINUX._replace(machine="aarch64"),
        Host("Darwin", "arm64", (13, 0), translated=False, glibc=False),
        Host("Darwin", "arm64", (26, 1), translated=False, glibc=False),
        Host("Windows", "AMD64", (), translated=False, glibc=False),
    ],
)
def test_supported_hosts_are_not_refused(host: Host) -> None:
    assert environment.refuse(host) == ""


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (Host("Darwin", "x86_64", (14, 5), translated=False, glibc=False), "Intel Mac"),
        (Host("Darwin", "x86_64", (14, 5), translated=True, glibc=False), "Rosetta"),
        (Host("Darwin", "arm64", (12, 7, 1), translated=False, glibc=False), "macOS 12.7.1"),
        (LINUX._replace(machine="riscv64"), "riscv64"),
        (LINUX._replace(glibc=False), "glibc"),
        (Host("Windows", "ARM64", (), translated=False, glibc=False), "ARM64"),
    ],
)
def test_other_hosts_are_refused_in_words(host: Host, words: str) -> None:
    assert words in environment.refuse(host)


def test_newest_supported_release_wins() -> None:
    found = [
        interpreter("old", (3, 10, 9)),
        interpreter("good", (3, 12, 8)),
        interpreter("better", (3, 13, 1)),
        interpreter("candidate", (3, 14, 0), final=False),
        interpreter("free-threaded", (3, 14, 0), gil=False),
        interpreter("pypy", (3, 14, 0), cpython=False),
        interpreter("too-new", (3, 99, 0)),
    ]
    assert environment.newest(found).path == "better"


def test_no_fitting_python_says_what_was_found() -> None:
    with pytest.raises(Stop, match=r"found: old \(3\.10\.9\)") as stop:
        environment.newest([interpreter("old", (3, 10, 9))])
    assert "PYTHON=" in str(stop.value)


def test_missing_ensurepip_names_the_package(tmp_path: Path) -> None:
    with pytest.raises(Stop, match=r"apt-get install python3\.12-venv"):
        environment.create(tmp_path / ".venv", interpreter("debian", (3, 12, 3), seedable=False))
    assert not (tmp_path / ".venv").exists()


def test_named_python_that_is_too_old_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Stop, match=r"expected CPython 3\.11 or later"):
        environment.create(tmp_path / ".venv", interpreter("old", (3, 9, 2)))


def test_named_python_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(Stop, match="no-such-python"):
        environment.prepare(tmp_path / ".venv", "no-such-python", [])


def test_this_python_answers() -> None:
    answer = environment.ask(sys.executable)
    assert answer is not None
    assert answer.version == sys.version_info[:3]
    assert answer.cpython


def test_program_that_is_no_python_is_passed_over(tmp_path: Path) -> None:
    program = tmp_path / "python3.12"
    program.write_text("#!/bin/sh\necho 'pyenv: python3.12: command not found'\nexit 127\n", "utf-8")
    program.chmod(0o755)
    assert environment.ask(str(program)) is None


def test_one_installation_under_two_names_is_found_once() -> None:
    assert len(environment.found([sys.executable, sys.executable])) == 1


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand-ins for the two slow steps; the list says which were taken."""
    taken: list[str] = []

    def create(venv: Path, python: Interpreter) -> None:
        taken.append("create")
        program = environment.executable(venv)
        program.parent.mkdir(parents=True, exist_ok=True)
        program.touch()

    def install(venv: Path, extras: list[str]) -> None:
        taken.append(f"install {' '.join(extras)}".rstrip())

    monkeypatch.setattr(environment, "create", create)
    monkeypatch.setattr(environment, "install", install)
    return taken


def test_second_call_does_nothing(tmp_path: Path, steps: list[str]) -> None:
    environment.prepare(tmp_path, sys.executable, ["dev"])
    assert steps == ["create", "install dev"]
    environment.prepare(tmp_path, "", ["dev"])
    assert steps == ["create", "install dev"]


def test_more_extras_are_added_and_none_lost(tmp_path: Path, steps: list[str]) -> None:
    environment.prepare(tmp_path, sys.executable, ["dev"])
    environment.prepare(tmp_path, "", ["exact"])
    environment.prepare(tmp_path, "", ["dev"])
    assert steps == ["create", "install dev", "install dev exact"]


def test_changed_dependencies_are_installed(tmp_path: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    environment.prepare(tmp_path, sys.executable, [])
    monkeypatch.setattr(environment, "project_hash", lambda: "another")
    environment.prepare(tmp_path, "", [])
    assert steps == ["create", "install", "install"]


@pytest.mark.parametrize("damage", ["no stamp", "broken stamp", "moved", "no python", "other python"])
def test_half_made_environment_is_made_again(tmp_path: Path, steps: list[str], damage: str) -> None:
    environment.prepare(tmp_path, sys.executable, [])
    stamp = tmp_path / environment.STAMP
    content = Stamp(**json.loads(stamp.read_text("utf-8")))
    if damage == "no stamp":
        stamp.unlink()
    elif damage == "broken stamp":
        stamp.write_text("{", "utf-8")
    elif damage == "moved":
        stamp.write_text(json.dumps(content._replace(root="/elsewhere")._asdict()), "utf-8")
    elif damage == "no python":
        environment.executable(tmp_path).unlink()
    else:
        stamp.write_text(json.dumps(content._replace(version="3.10.1")._asdict()), "utf-8")
    environment.prepare(tmp_path, sys.executable, [])
    assert steps == ["create", "install", "create", "install"]


def test_interrupted_installation_leaves_no_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / environment.STAMP).write_text("{}", "utf-8")
    failed: subprocess.CompletedProcess[str] = subprocess.CompletedProcess([], 1)
    monkeypatch.setattr(subprocess, "run", lambda *arguments, **options: failed)
    with pytest.raises(Stop, match="pip could not install"):
        environment.install(tmp_path, ["dev"])
    assert not (tmp_path / environment.STAMP).exists()


def test_reason_goes_to_standard_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(*arguments: object) -> None:
        raise Stop("no Python here")

    monkeypatch.setattr(environment, "prepare", stop)
    assert environment.main(["--extras", "dev exact"]) == 2
    assert capsys.readouterr().err == "no Python here\n"


def test_an_environment_behind_a_link_is_never_cleared(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "kept.txt").write_text("another project's")
    link = tmp_path / "project" / ".venv"
    link.parent.mkdir()
    link.symlink_to(theirs, target_is_directory=True)
    with pytest.raises(Stop, match=r"is a link to .*theirs") as stop:
        environment.create(link, interpreter("good", (3, 12, 3)))
    assert "Remove the link" in str(stop.value)
    assert link.is_symlink()
    assert [each.name for each in theirs.iterdir()] == ["kept.txt"]
