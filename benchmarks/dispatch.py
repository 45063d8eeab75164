"""What a wrapped step costs to call, against the step itself: median of interleaved calls, at 10 and at 300 leaves.

    python -m benchmarks.dispatch [--calls 400]

The steps do next to nothing on 8 CPU devices, so that nearly all of the time is the call's. They donate nothing: on
CPU with jaxlib 0.10.2, whose scheduler hook forgets donation, a wrapped step deletes its donated arguments itself,
which takes about 3 µs for each. Exit status 1 when a wrapped call takes longer than the original's by more than 50 µs
or 2 %, whichever is more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from app.cli.main import main as lapstrake

ALLOWED_US, ALLOWED_SHARE = 50.0, 0.02
_JOB = """
import json, os, statistics, sys, time
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"], os.environ["NPROC"] = "cpu", "16"
import jax, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

leaves, calls = int(sys.argv[1]), int(sys.argv[2])
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
on = NamedSharding(mesh, P("x"))

def step(state):
    total = sum(leaf.sum() for leaf in state.values())
    return {name: leaf + total for name, leaf in state.items()}

step = jax.jit(step)
state = {f"leaf{k}": jax.device_put(np.zeros(8, np.float32), on) for k in range(leaves)}

def timed(call, state):
    start = time.perf_counter()
    state = call(state)
    end = time.perf_counter()
    jax.block_until_ready(state)
    return end - start, state

if len(sys.argv) == 3:
    step(state)
else:
    sys.path.insert(0, sys.argv[3])
    import lapstrake_job
    plan = lapstrake_job.load(sys.argv[3])
    tuned = plan.wrap(step)
    times = {"original": [], "tuned": []}
    for k in range(calls + 20):
        for name, call in (("original", step), ("tuned", tuned)):
            spent, state = timed(call, state)
            if k >= 20:
                times[name].append(spent * 1e6)
    print(json.dumps({**{k: statistics.median(v) for k, v in times.items()}, "said": plan.explain()}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=400)
    options = parser.parse_args()
    bad = False
    for leaves in (10, 300):
        found = measure(leaves, options.calls)
        original, tuned = float(found["original"]), float(found["tuned"])
        allowed = max(ALLOWED_US, ALLOWED_SHARE * original)
        bad = bad or tuned - original > allowed
        print(
            f"{leaves:3} leaves: original {original:.0f} µs, wrapped {tuned:.0f} µs, "
            f"{tuned - original:+.0f} µs of {allowed:.0f} allowed"
        )
    return 1 if bad else 0


def measure(leaves: int, calls: int) -> dict[str, float | str]:
    """Median microseconds until each call returns."""
    capture = str(files("engine.export.payload").joinpath("lapstrake_runtime", "lapstrake_capture.py"))
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job.py"
        job.write_text(_JOB)
        environment = {
            **os.environ,
            "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
            "JAX_PLATFORMS": "cpu",
        }
        command = [sys.executable, capture, "--out", folder, str(job), str(leaves), str(calls)]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        bundle = f"{folder}/bundle"
        plan = ["--passes", "decompose,async-permute", "--no-verify", "--quiet"]
        sys.stdout.flush()
        if lapstrake(["tune", f"{folder}/step", *plan, "-o", bundle]):
            raise SystemExit("the step could not be tuned")
        done = subprocess.run(
            [sys.executable, str(job), str(leaves), str(calls), bundle], check=True, capture_output=True, text=True
        )
        found: dict[str, float | str] = json.loads(done.stdout.splitlines()[-1])
        if "structure: nothing to apply" not in str(found["said"]):  # the steps' all-reduces are not decomposed
            raise SystemExit(f"the plan did not run: {found['said']}")
        return found


if __name__ == "__main__":
    sys.exit(main())
