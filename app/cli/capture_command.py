"""`lapstrake capture`: runs a JAX script in its own interpreter and writes down what it compiles, for `tune`."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path

from app.cli.main import BAD_ANSWER, BAD_USAGE, DONE
from engine.errors import UsageError

_WITHOUT_TPU = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v4-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
"""Keeps libtpu from looking for the machine it is not on; the same values serve every kind of TPU."""


def run(arguments: Namespace) -> int:
    """Capture; 1 when the script fails or calls nothing that can be captured, 2 without an interpreter that has jax."""
    target, environment = means(arguments.target)
    if not os.path.isfile(arguments.script):
        raise UsageError(f"{arguments.script}: a Python script was expected, but there is no such file")
    with as_file(files("engine.export.payload").joinpath("lapstrake_runtime", "lapstrake_capture.py")) as capture:
        command = [arguments.python or sys.executable, str(capture), "--out", arguments.output]
        command += ["--target", target] if target else []
        command += ["--function", arguments.function] if arguments.function else []
        command += ["--go-on"] if arguments.go_on else []
        command += [arguments.script, *arguments.arguments]
        try:
            done = subprocess.run(command, env={**os.environ, **environment}, timeout=arguments.time_limit, check=False)
        except OSError as error:
            raise UsageError(f"{command[0]}: a Python interpreter was expected ({error.strerror})") from error
        except subprocess.TimeoutExpired:
            raise UsageError(f"{arguments.script} was not captured within {arguments.time_limit:g} s") from None
    if done.returncode == DONE and not list(Path(arguments.output).glob("*/capture.json")):
        raise UsageError(f"{command[0]}: a Python interpreter was expected, but it ended well and captured nothing")
    return done.returncode if done.returncode in (DONE, BAD_USAGE) else BAD_ANSWER


def means(target: str) -> tuple[str, Mapping[str, str]]:
    """What ``--target`` asks of lapstrake_capture, and the environment it needs. Raises UsageError."""
    if target == "attached":
        return "", {}
    if found := re.fullmatch(r"cpu:([1-9]\d*)", target):
        return "", _cpu_devices(int(found[1]))
    if found := re.fullmatch(r"tpu:(\w+):(\d+(?:x\d+)+)", target):
        chips = math.prod(int(n) for n in found[2].split("x"))
        cores = 2 if found[1].lower() in ("v2", "v3", "tpu7x") else 1
        return target, {**_cpu_devices(chips * cores), **_WITHOUT_TPU}
    raise UsageError(
        f"--target {target}: attached, cpu:DEVICES (cpu:8) or tpu:KIND:SHAPE (tpu:v4:2x2x2) was expected; for GPUs, "
        "capture on the machine that has them"
    )


def _cpu_devices(count: int) -> dict[str, str]:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}".strip()
    # XLA runs collectives of so many devices on a thread each, on machines with fewer cores too.
    return {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "NPROC": str(max(16, 2 * count))}
