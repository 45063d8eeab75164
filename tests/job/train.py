"""A small training job on 8 CPU devices, 2-D mesh: what a user's script looks like. Tests run it on its own.

Prints one JSON line: the losses, and what became of the bundle named by BUNDLE.
"""

from __future__ import annotations

import functools
import json
import os
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("NPROC", "16")

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

CHANGE = os.environ.get("CHANGE", "")
"""What this run does differently from the captured one."""
MESH = jax.make_mesh((4, 2) if CHANGE == "mesh" else (2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
FEATURES, HIDDEN, BATCH = 64, 256, 64 if CHANGE == "shape" else 32
RATE = 0.02 if CHANGE == "constant" else 0.01


def on(*axes: str | None) -> NamedSharding:
    return NamedSharding(MESH, P(*axes))


PARAMETERS = {"w1": on("x", "y"), "b1": on("y"), "w2": on("y", "x")}
STATE = {"p": PARAMETERS, "m": PARAMETERS, "n": on()}
BATCHES = {"x": on("y", None) if CHANGE == "sharding" else on("x", "y"), "y": on("x", None)}


def loss(p: Any, batch: Any) -> Any:
    h = jax.nn.relu(batch["x"] @ p["w1"] + p["b1"])
    h = jax.lax.with_sharding_constraint(h, on("x", "y"))
    return jnp.mean((h @ p["w2"] - batch["y"]) ** 2)


@functools.partial(
    jax.jit,
    in_shardings=(STATE, BATCHES),
    out_shardings=(STATE, {"loss": on()}),
    donate_argnums=() if CHANGE == "donation" else (0,),
)
def train_step(state: Any, batch: Any) -> Any:
    value, gradient = jax.value_and_grad(loss)(state["p"], batch)
    momentum = jax.tree.map(lambda a, b: 0.9 * a + b, state["m"], gradient)
    parameters = jax.tree.map(lambda a, b: a - RATE * b, state["p"], momentum)
    return {"p": parameters, "m": momentum, "n": state["n"] + 1}, {"loss": value}


def initial() -> Any:
    random = np.random.RandomState(0)

    def draw(*shape: int) -> Any:
        return random.randn(*shape).astype(np.float32) / 8

    p = {"w1": draw(FEATURES, HIDDEN), "b1": draw(HIDDEN), "w2": draw(HIDDEN, FEATURES)}
    state = jax.device_put({"p": p, "m": jax.tree.map(np.zeros_like, p), "n": np.int32(0)}, STATE)
    return state, jax.device_put({"x": draw(BATCH, FEATURES), "y": draw(BATCH, FEATURES)}, BATCHES)


def main(steps: int) -> None:
    step, wrapped = train_step, None
    if bundle := os.environ.get("BUNDLE"):
        sys.path.insert(0, bundle)
        import lapstrake_job  # type: ignore[import-not-found]  # it comes with the bundle

        step = wrapped = lapstrake_job.load(bundle).wrap(train_step, strict=CHANGE == "strict")
    state, batch = initial()
    losses = []
    for _ in range(steps):
        state, metrics = step(state, batch)
        losses.append(float(metrics["loss"]))
    said = wrapped.explain() if wrapped is not None else ""
    print(json.dumps({"losses": losses, "said": said, "steps": int(state["n"])}))


if __name__ == "__main__":
    main(int(os.environ.get("STEPS", "50")))
