"""A small decoder trained on 8 CPU devices: what a user's script looks like. Tests run it on its own.

Prints one JSON line: the losses, and what became of the bundle named by BUNDLE (ROUTE says how it is used, GROUPS that
its scheduling groups are). MESH is 1d or 2d, CHANGE what this run does differently from the captured one, TURN what the
second step does, RESTART the step after which it starts again from a checkpoint.
"""

from __future__ import annotations

import functools
import json
import logging
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

if process := os.environ.get("PROCESS"):
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(os.environ["COORDINATOR"], 2, int(process))

CHANGE = os.environ.get("CHANGE", "")
TURN = os.environ.get("TURN", "")
"""`precise` takes another precision, `precise in one` in the second process; `cleared in one` clears caches there."""
FLAT = os.environ.get("MESH", "2d") == "1d"
SIZES = (8, 1) if FLAT else (4, 2) if CHANGE == "mesh" else (2, 4)
MESH = jax.make_mesh(
    SIZES[:1] if FLAT else SIZES, ("x",) if FLAT else ("x", "y"), axis_types=(AxisType.Auto,) * (2 - FLAT)
)
BATCH, LENGTH, WIDTH, HIDDEN, HEADS, WORDS = 16 if CHANGE == "shape" else 8, 8, 32, 64, 4, 64
RATE = 0.02 if CHANGE == "constant" else 0.01
COMPILED: list[str] = []
"""Modules that XLA compiled, in turn."""


def on(*axes: str | None) -> NamedSharding:
    return NamedSharding(MESH, P(*(None if FLAT and a == "y" else a for a in axes)))


WEIGHTS = {"q": on("x", "y"), "k": on("x", "y"), "v": on("x", "y"), "o": on("y", "x"), "up": on("x", "y")}
WEIGHTS |= {"down": on("y", "x"), "embed": on("x", "y")}
STATE = {"p": WEIGHTS, "m": WEIGHTS, "n": on()}
TOKENS = on(None, "x") if CHANGE == "sharding" else on("x", None)


def decode(p: Any, tokens: Any) -> Any:
    """Logits of one decoder layer, shape [batch, length, words]."""
    x = jax.lax.with_sharding_constraint(jax.nn.one_hot(tokens, WORDS) @ p["embed"], on("x", None, "y"))
    heads = (BATCH, LENGTH, HEADS, WIDTH // HEADS)
    q, k, v = ((x @ p[name]).reshape(heads) for name in "qkv")
    weights = jnp.einsum("bqhd,bkhd->bhqk", q, k) + jnp.where(np.tri(LENGTH, dtype=bool), 0.0, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(weights), v).reshape(BATCH, LENGTH, WIDTH)
    x = jax.lax.with_sharding_constraint(x + mixed @ p["o"], on("x", None, "y"))
    x = jax.lax.with_sharding_constraint(x + jax.nn.relu(x @ p["up"]) @ p["down"], on("x", None, "y"))
    return x @ p["embed"].T


def loss(p: Any, tokens: Any) -> Any:
    said = jax.nn.log_softmax(decode(p, tokens)[:, :-1])
    return -jnp.mean(jnp.take_along_axis(said, tokens[:, 1:, None], axis=-1))


@functools.partial(
    jax.jit,
    in_shardings=(STATE, TOKENS),
    out_shardings=(STATE, {"loss": on()}),
    donate_argnums=() if CHANGE == "donation" else (0,),
)
def train_step(state: Any, tokens: Any) -> Any:
    value, gradient = jax.value_and_grad(loss)(state["p"], tokens)
    if CHANGE == "callback":
        jax.debug.callback(lambda _: None, value)
    momentum = jax.tree.map(lambda a, b: 0.9 * a + b, state["m"], gradient)
    parameters = jax.tree.map(lambda a, b: a - RATE * b, state["p"], momentum)
    return {"p": parameters, "m": momentum, "n": state["n"] + 1}, {"loss": value}


def initial() -> Any:
    random = np.random.RandomState(0)
    shapes = {"q": (WIDTH, WIDTH), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH), "embed": (WORDS, WIDTH)}
    p = {name: random.randn(*shapes.get(name, (WIDTH, WIDTH))).astype(np.float32) / 6 for name in WEIGHTS}
    state = jax.device_put({"p": p, "m": jax.tree.map(np.zeros_like, p), "n": np.int32(0)}, STATE)
    return state, jax.device_put(random.randint(0, WORDS, (BATCH, LENGTH)).astype(np.int32), TOKENS)


def run(step: Any, steps: int, restart: int) -> tuple[list[float], Any]:
    state, tokens = initial()
    losses = []
    for number in range(steps):
        if number == restart:
            state = jax.device_put(jax.tree.map(np.asarray, state), STATE)
        mine = number == 1 and (process == "1" or "in one" not in TURN)
        if mine and "PATIENCE_S" in os.environ:  # the first step may keep either waiting: it is compiled
            vars(sys.modules["lapstrake_runtime.processes"])["PATIENCE_S"] = int(os.environ["PATIENCE_S"])
        if mine and "cleared" in TURN:
            jax.clear_caches()
        with jax.default_matmul_precision("highest" if mine and "precise" in TURN else None):
            state, metrics = step(state, tokens)
        losses.append(float(metrics["loss"]))
    return losses, state


def note_compilation(record: logging.LogRecord) -> bool:
    COMPILED.append(record.getMessage().partition(" with ")[0])
    return False


def main(steps: int) -> None:
    step, plan = train_step, None
    if bundle := os.environ.get("BUNDLE"):
        sys.path.insert(0, bundle)
        import lapstrake_job  # type: ignore[import-not-found]  # it comes with the bundle

        plan = lapstrake_job.load(bundle)
        if os.environ.get("ROUTE") == "install":
            plan.install(strict=CHANGE == "strict")
        else:
            step = plan.wrap(train_step, strict=CHANGE == "strict", groups="GROUPS" in os.environ)
    jax.config.update("jax_log_compiles", val=True)
    logging.getLogger("jax._src.interpreters.pxla").addFilter(note_compilation)
    losses, state = run(step, steps, int(os.environ.get("RESTART", "-1")))
    jax.config.update("jax_log_compiles", val=False)
    compiled = [text for text in COMPILED if "train_step" in text or "lapstrake" in text]
    said = plan.explain() if plan is not None else ""
    plain = run(train_step, steps, -1)[0] if "PLAIN" in os.environ else []
    print(json.dumps({"losses": losses, "plain": plain, "said": said, "steps": int(state["n"]), "compiled": compiled}))


if __name__ == "__main__":
    main(int(os.environ.get("STEPS", "50")))
