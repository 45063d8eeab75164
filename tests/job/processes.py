"""Starts the scripts that play users' jobs, without any import path of ours: what a job gets must stand alone."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from app.cli.main import main

HERE = Path(__file__).parent
SCRIPT = HERE / "train.py"
CAPTURE = str(files("engine.export.payload").joinpath("lapstrake_runtime", "lapstrake_capture.py"))
PLAN = ("--passes", "decompose{gate=off},async-permute,fuse", "--scheduler", "bottom-up")
_DEADLINE = 300
_OURS = ("PYTHONPATH", "JAX_PLATFORMS", "XLA_FLAGS", "BUNDLE", "CHANGE", "MESH", "ROUTE", "STEPS", "GROUPS", "TURN")


def start(*arguments: str, cwd: Path, interpreter: str = sys.executable, **environment: str) -> subprocess.Popen[str]:
    clean = {k: v for k, v in os.environ.items() if k not in _OURS}
    return subprocess.Popen(
        [interpreter, *arguments],
        cwd=cwd,
        env={**clean, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def python(*arguments: str, cwd: Path, interpreter: str = sys.executable, **environment: str) -> tuple[str, str]:
    """What a script printed and logged; it has to end well."""
    process = start(*arguments, cwd=cwd, interpreter=interpreter, **environment)
    out, logged = process.communicate(timeout=_DEADLINE)
    assert process.returncode == 0, logged[-3000:]
    return out, logged


def train(folder: Path, interpreter: str = sys.executable, **environment: str) -> tuple[dict[str, Any], str]:
    """The training script's JSON line, and what it logged."""
    out, logged = python(str(SCRIPT), cwd=folder, interpreter=interpreter, **environment)
    content: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return content, logged


def captured(folder: Path, interpreter: str = sys.executable, **environment: str) -> Path:
    """The folder of the training step, captured by itself."""
    options = ("--out", str(folder / "captured"), "--function", "train_step")
    python(CAPTURE, *options, str(SCRIPT), cwd=folder, interpreter=interpreter, **environment)
    return folder / "captured" / "train_step"


def dumped(folder: Path, interpreter: str = sys.executable, **environment: str) -> Path:
    """The training step after partitioning, as the manual's dump flags write it for a script that is left alone."""
    flags = "--xla_dump_to=dump --xla_dump_hlo_pass_re=spmd-partitioning --xla_dump_large_constants"
    devices = "--xla_force_host_platform_device_count=8"
    python(str(SCRIPT), cwd=folder, interpreter=interpreter, XLA_FLAGS=f"{devices} {flags}", STEPS="1", **environment)
    (found,) = (folder / "dump").glob("*.jit_train_step.*after_spmd-partitioning*.txt")
    return found


def bundled(source: Path, target: Path, *plan: str) -> Path:
    assert main(["tune", str(source), *plan, "-o", str(target), "--quiet"]) == 0
    return target


def altered(bundle: Path, target: Path, alter: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of a bundle whose manifest says something else, and is whole."""
    shutil.copytree(bundle, target)
    manifest = json.loads((bundle / "manifest.json").read_text())
    del manifest["digest"]
    alter(manifest)
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    manifest["digest"] = hashlib.sha256(text.encode()).hexdigest()
    (target / "manifest.json").write_text(json.dumps(manifest))
    return target


def damaged(bundle: Path, target: Path, name: str) -> Path:
    """A copy of a bundle with one byte of one file changed."""
    shutil.copytree(bundle, target)
    content = bytearray((bundle / name).read_bytes())
    content[len(content) // 2] ^= 1
    (target / name).write_bytes(content)
    return target
