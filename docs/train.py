"""A training script to try the manual's page "A faster job" with: two-layer MLP, 8 devices, weights sharded over all.

    python docs/train.py [STEPS]

It needs jax alone. Without accelerators it takes 8 CPU devices.
"""

import os
import sys
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("NPROC", "16")  # XLA's CPU devices wait for each other in threads of their own

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
BATCH, WIDTH, HIDDEN = 64, 128, 512
ROWS, COLUMNS = NamedSharding(MESH, P("x", None)), NamedSharding(MESH, P(None, "x"))


def loss(weights: Any, inputs: Any, targets: Any) -> Any:
    hidden = jax.nn.relu(inputs @ weights["up"])
    found = jax.lax.with_sharding_constraint(hidden @ weights["down"], ROWS)
    return jnp.mean((found - targets) ** 2)


@jax.jit
def train_step(weights: Any, inputs: Any, targets: Any) -> Any:
    value, gradient = jax.value_and_grad(loss)(weights, inputs, targets)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradient), value


def main(steps: int) -> None:
    random = np.random.RandomState(0)
    weights = {
        "up": jax.device_put(random.randn(WIDTH, HIDDEN).astype(np.float32) / 12, COLUMNS),
        "down": jax.device_put(random.randn(HIDDEN, WIDTH).astype(np.float32) / 24, COLUMNS),
    }
    inputs = jax.device_put(random.randn(BATCH, WIDTH).astype(np.float32), ROWS)
    targets = jax.device_put(random.randn(BATCH, WIDTH).astype(np.float32), ROWS)
    for step in range(steps):
        weights, value = train_step(weights, inputs, targets)
        print(f"step {step}: loss {float(value):.6f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
