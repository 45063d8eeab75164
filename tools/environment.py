"""Makes `.venv` with the newest suitable CPython and installs Lapstrake there; does nothing where that is already done.

Runs on any Python from 3.8 on, with the standard library alone, so that it can say in words what is missing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
OLDEST, NEWEST = (3, 11), (3, 14)
"""The CPython versions for which jaxlib and PySide6 both publish wheels."""

STAMP = "lapstrake.json"
"""Written into the environment as the last step: an environment without it was left half-made."""

ASK = """
import json, platform, sys, sysconfig
try:
    import ensurepip, venv
    seedable = True
except ImportError:
    seedable = False
print(json.dumps({
    "path": getattr(sys, "_base_executable", None) or sys.executable,
    "version": list(sys.version_info[:3]),
    "final": sys.version_info.releaselevel == "final",
    "cpython": platform.python_implementation() == "CPython",
    "gil": not sysconfig.get_config_var("Py_GIL_DISABLED"),
    "seedable": seedable,
    "machine": platform.machine(),
    "base": sys.base_prefix,
}))
"""


class Stop(Exception):
    """A reason, in words for the user, why no environment can be made."""


class Interpreter(NamedTuple):
    """What a Python on this machine said about itself."""

    path: str
    """Its own program, where the name led to a version manager's shim or into an environment."""
    version: tuple[int, ...]
    final: bool
    cpython: bool
    gil: bool
    seedable: bool
    """Whether it can put pip into a new environment; Debian keeps that part in a package of its own."""
    machine: str
    base: str
    """Its installation; several names on PATH often lead to the same one."""


class Stamp(NamedTuple):
    """What an environment holds."""

    version: str
    extras: list[str]
    project: str
    """Hash of pyproject.toml when it was installed."""
    root: str
    """The project's folder then: scripts in an environment hold absolute paths and do not survive a move."""


class Host(NamedTuple):
    """The parts of this machine that decide whether jaxlib and PySide6 have wheels for it."""

    system: str
    machine: str
    release: tuple[int, ...]
    """macOS version; empty elsewhere."""
    translated: bool
    """An Intel process on an Apple silicon Mac (Rosetta)."""
    glibc: bool


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0 when the environment is ready, 2 with a sentence on standard error when it cannot be made."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--python", default="", help="the Python to use, instead of the newest that is found")
    parser.add_argument("--extras", default="", help="extras of pyproject.toml to install, separated by spaces")
    options = parser.parse_args(arguments)
    extras = sorted(set(options.extras.split()))
    try:
        prepare(ROOT / ".venv", options.python, extras)
    except Stop as reason:
        print(reason, file=sys.stderr)
        return 2
    return 0


def prepare(venv: Path, python: str, extras: list[str]) -> None:
    """Make `venv`, or bring it up to date, with `extras` installed; raises Stop when that is impossible."""
    stamp = read_stamp(venv)
    asked = ask(python) if python else None
    if python and asked is None:
        raise Stop(f"PYTHON={python}: expected a Python that can be started, found none by that name.")
    if stamp is None or (asked is not None and dotted(asked.version) != stamp.version):
        refusal = refuse(this_host())
        if refusal:
            raise Stop(refusal)
        chosen = asked or newest(found(interpreter_names()))
        create(venv, chosen)
        stamp = Stamp(dotted(chosen.version), [], "", str(ROOT))
    if stamp.project == project_hash() and set(extras) <= set(stamp.extras):
        return
    wanted = sorted({*extras, *stamp.extras})
    install(venv, wanted)
    done = stamp._replace(extras=wanted, project=project_hash())
    (venv / STAMP).write_text(json.dumps(done._asdict()), "utf-8")


def read_stamp(venv: Path) -> Stamp | None:
    """What `venv` holds, or None where it is absent, half-made, without its Python, or was moved."""
    try:
        stamp = Stamp(**json.loads((venv / STAMP).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return stamp if executable(venv).exists() and stamp.root == str(ROOT) else None


def executable(venv: Path) -> Path:
    """The environment's Python."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def dotted(version: tuple[int, ...]) -> str:
    """3.12.1 rather than (3, 12, 1)."""
    return ".".join(map(str, version))


def project_hash() -> str:
    """Changes when the dependencies may have changed."""
    return hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()


def this_host() -> Host:
    """This machine."""
    system = platform.system()
    translated = False
    if system == "Darwin":
        answer = subprocess.run(["sysctl", "-n", "sysctl.proc_translated"], capture_output=True, text=True, check=False)
        translated = answer.stdout.strip() == "1"
    release = tuple(int(part) for part in re.findall(r"\d+", platform.mac_ver()[0]))
    return Host(system, platform.machine(), release, translated, platform.libc_ver()[0] == "glibc")


def refuse(host: Host) -> str:
    """Why nothing can be installed on `host`; empty where it can."""
    machine = host.machine.lower()
    supported = "Lapstrake runs on Linux (x86-64, arm64), macOS 13 or later (Apple silicon) and Windows (x86-64)."
    if host.system == "Darwin" and machine == "x86_64" and host.translated:
        return (
            "This Python is an Intel build that runs under Rosetta, for which jaxlib publishes no wheels. "
            "Install a Python for Apple silicon (from python.org or Homebrew) and name it: make PYTHON=/path/to/python3"
        )
    if host.system == "Darwin" and machine == "x86_64":
        return f"This is an Intel Mac: jaxlib, which reads and runs HLO, publishes no wheels for it. {supported}"
    if host.system == "Darwin" and host.release < (13,):
        return f"This is macOS {dotted(host.release)}: PySide6 needs macOS 13 or later. {supported}"
    if host.system == "Linux" and machine not in ("x86_64", "aarch64", "arm64"):
        return f"This is Linux on {host.machine}: jaxlib publishes no wheels for it. {supported}"
    if host.system == "Linux" and not host.glibc:
        return f"This Linux has no glibc (Alpine and others): jaxlib publishes no wheels for it. {supported}"
    if host.system == "Windows" and machine not in ("amd64", "x86_64"):
        return f"This is Windows on {host.machine}: jaxlib publishes no wheels for it. {supported}"
    return ""


def interpreter_names() -> list[str]:
    """Names under which a Python may be found on PATH."""
    minors = range(NEWEST[1] + 1, OLDEST[1] - 1, -1)
    return [*(f"python3.{minor}" for minor in minors), "python3", "python", sys.executable]


def found(names: list[str]) -> list[Interpreter]:
    """The interpreters behind `names`, each installation once."""
    answers = [answer for answer in map(ask, names) if answer is not None]
    return list({answer.base: answer for answer in reversed(answers)}.values())[::-1]


def ask(python: str) -> Interpreter | None:
    """What `python` says about itself; None where it is absent or does not start (a version manager's empty shim)."""
    path = shutil.which(python)
    if path is None:
        return None
    try:
        answer = subprocess.run([path, "-c", ASK], capture_output=True, text=True, timeout=30, check=True)
        said = json.loads(answer.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return Interpreter(version=tuple(said.pop("version")), **said)


def newest(interpreters: list[Interpreter]) -> Interpreter:
    """The newest released CPython that the libraries support; raises Stop where there is none."""
    usable = [python for python in interpreters if python.cpython and python.gil and python.final]
    fitting = [python for python in usable if OLDEST <= python.version[:2] <= NEWEST]
    if fitting:
        return max(fitting, key=lambda python: python.version)
    seen = ", ".join(f"{python.path} ({dotted(python.version)})" for python in interpreters) or "none"
    raise Stop(
        f"Expected CPython {dotted(OLDEST)} to {dotted(NEWEST)} on PATH, found: {seen}.\n"
        "Install one (python.org, your package manager, or `uv python install 3.13`), or name it: "
        "make PYTHON=/path/to/python3 demo"
    )


def create(venv: Path, python: Interpreter) -> None:
    """Make an empty environment in `venv` with `python`; what was there before is removed."""
    target = venv.resolve()
    if target != venv.parent.resolve() / venv.name:
        raise Stop(
            f"{venv} is a link to {target}: expected a folder of this project's own, since all that is in it would be "
            "removed.\nRemove the link (the folder behind it stays) and run make again, which then makes a new .venv."
        )
    version = dotted(python.version)
    if python.version[:2] < OLDEST or not python.cpython or not python.gil:
        raise Stop(f"{python.path}: expected CPython {dotted(OLDEST)} or later with the GIL, found {version}.")
    if not python.seedable:
        package = f"python{python.version[0]}.{python.version[1]}-venv"
        raise Stop(
            f"{python.path} has no ensurepip, so it cannot make a virtual environment. On Debian and Ubuntu:\n"
            f"    sudo apt-get install {package}\n"
            "Or name another Python: make PYTHON=/path/to/python3 demo"
        )
    print(f"Making .venv with Python {version} ({python.path})", flush=True)
    made = subprocess.run([python.path, "-m", "venv", "--clear", str(venv)], check=False)
    if made.returncode:
        raise Stop(f"{python.path} could not make {venv}; its message is above.")


def install(venv: Path, extras: list[str]) -> None:
    """Install the project, editable, with `extras`. The stamp goes first: half an installation must not look done."""
    stamp = venv / STAMP
    if stamp.exists():
        stamp.unlink()
    target = f".[{','.join(extras)}]" if extras else "."
    print(f"Installing Lapstrake and its libraries (pip install --editable {target})", flush=True)
    command = [str(executable(venv)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, "--editable", target], cwd=str(ROOT), check=False)
    if done.returncode:
        raise Stop("pip could not install the libraries; its message is above. Running make again starts afresh.")


if __name__ == "__main__":
    sys.exit(main())
