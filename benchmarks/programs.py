"""The JAX programs of benchmarks.production before partitioning, as a TPU compiler gets them from a job.

tests/data/partitioned has the same programs behind the partitioner. In worker processes only: this imports jax.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from engine.control import Control
from engine.execute.compiling import Unpartitioned

Spec = tuple[str | None, ...]

LEARNING_RATE = 0.01
EPSILON = 1e-6


def lower_in_worker(name: str, *, control: Control) -> Unpartitioned:
    """One of PROGRAMS, or ``samples/NAME``. The process needs as many devices as its mesh has."""
    control.step(0.0, f"lowering {name}")
    program: Mlp | Transformer | Sample = Sample(name.removeprefix("samples/"))
    if name in PROGRAMS:
        program = PROGRAMS[name]
    lowered = program.lower()
    operation: Any = lowered.compiler_ir()
    text = operation.operation.get_asm(binary=False, assume_verified=True)
    return Unpartitioned(name, text.encode(), program.devices)


@dataclass(frozen=True)
class Sample:
    """One of the repository's samples."""

    name: str

    @property
    def devices(self) -> int:
        sharding: Any = jax.tree.leaves(self._step().arguments)[0].sharding
        return int(sharding.mesh.size)

    def lower(self) -> Any:
        step = self._step()
        jitted = jax.jit(step.function, out_shardings=step.results, donate_argnums=step.donated)
        return jitted.lower(*step.arguments)

    def _step(self) -> Any:
        # Late: it asks for its number of devices when it is imported, which must not happen for other programs.
        from samples.generate import SAMPLES

        return SAMPLES[self.name]()


@dataclass(frozen=True)
class Mlp:
    """Two einsums with a relu between them, bf16, forward."""

    mesh: tuple[int, ...]
    rows: Spec
    first: Spec
    second: Spec
    hidden: Spec | None = None
    """How the middle is placed; None leaves it to the partitioner."""
    sizes: tuple[int, int, int] = (8192, 4096, 16384)
    """Batch, features, hidden."""

    @property
    def devices(self) -> int:
        return int(np.prod(self.mesh))

    def lower(self) -> Any:
        mesh = _mesh(self.mesh)

        def run(rows: Any, first: Any, second: Any) -> Any:
            hidden = jnp.einsum("bf,fh->bh", rows, first)
            if self.hidden is not None:
                hidden = jax.lax.with_sharding_constraint(hidden, _placed(mesh, self.hidden))
            return jnp.einsum("bh,hf->bf", jax.nn.relu(hidden), second)

        batch, features, hidden = self.sizes
        shapes = ((batch, features), (features, hidden), (hidden, features))
        specs = (self.rows, self.first, self.second)
        arguments = [_array(mesh, shape, spec) for shape, spec in zip(shapes, specs, strict=True)]
        return jax.jit(run, out_shardings=_placed(mesh, self.rows)).lower(*arguments)


@dataclass(frozen=True)
class Transformer:
    """One step of gradient descent on decoder layers (attention without a mask) in a scan, recomputed backwards."""

    mesh: tuple[int, ...]
    tokens: str
    """Axis that the batch lies on."""
    weights: str
    """Axis that the features of weights lie on."""
    model: str | None
    """Axis that features, heads and hidden units of activations lie on."""
    batch: int
    features: int
    heads: int
    layers: int = 2
    sequence: int = 2048
    head: int = 128

    @property
    def devices(self) -> int:
        return int(np.prod(self.mesh))

    def lower(self) -> Any:
        mesh = _mesh(self.mesh)
        parameters = {name: _array(mesh, shape, spec) for name, (shape, spec) in self._parameters().items()}
        placed = {name: array.sharding for name, array in parameters.items()}
        rows = _array(mesh, (self.batch, self.sequence, self.features), (self.tokens, None, self.model))
        step = jax.jit(partial(self._step, mesh), out_shardings=placed, donate_argnums=0)
        return step.lower(parameters, rows)

    def _parameters(self) -> Mapping[str, tuple[tuple[int, ...], Spec]]:
        """Shapes with the layers in front, and where they lie."""
        f, h, d, hidden, n = self.features, self.heads, self.head, 4 * self.features, self.layers
        into: Spec = (None, self.weights, self.model, None)
        return {
            "g1": ((n, f), ()),
            "g2": ((n, f), ()),
            "wq": ((n, f, h, d), into),
            "wk": ((n, f, h, d), into),
            "wv": ((n, f, h, d), into),
            "wo": ((n, h, d, f), (None, self.model, None, self.weights)),
            "w1": ((n, f, hidden), (None, self.weights, self.model)),
            "w2": ((n, hidden, f), (None, self.model, self.weights)),
        }

    def _step(self, mesh: Mesh, parameters: Mapping[str, Any], rows: Any) -> Any:
        def loss(weights: Mapping[str, Any]) -> Any:
            layer = jax.checkpoint(lambda x, w: (self._layer(mesh, x, w), None))
            out, _ = jax.lax.scan(layer, rows, weights)
            return jnp.mean(jnp.square(out.astype(jnp.float32)))

        gradients = jax.grad(loss)(dict(parameters))
        return {name: w - jnp.bfloat16(LEARNING_RATE) * gradients[name] for name, w in parameters.items()}

    def _layer(self, mesh: Mesh, x: Any, w: Mapping[str, Any]) -> Any:
        wide: Spec = (self.tokens, None, self.model)
        at = partial(jax.lax.with_sharding_constraint, shardings=_placed(mesh, wide))
        by_head = partial(jax.lax.with_sharding_constraint, shardings=_placed(mesh, (*wide, None)))
        y = at(_norm(x, w["g1"]))
        query, key, value = (by_head(jnp.einsum("bsf,fhd->bshd", y, w[name])) for name in ("wq", "wk", "wv"))
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * jnp.bfloat16(self.head**-0.5)
        shares = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(jnp.bfloat16)
        mixed = by_head(jnp.einsum("bhqk,bkhd->bqhd", shares, value))
        x = at(x + jnp.einsum("bshd,hdf->bsf", mixed, w["wo"]))
        y = at(_norm(x, w["g2"]))
        hidden = at(jax.nn.relu(jnp.einsum("bsf,fh->bsh", y, w["w1"])))
        return at(x + jnp.einsum("bsh,hf->bsf", hidden, w["w2"]))


def _norm(x: Any, scale: Any) -> Any:
    wide = x.astype(jnp.float32)
    mean = jnp.mean(wide * wide, -1, keepdims=True)
    return (wide * jax.lax.rsqrt(mean + EPSILON)).astype(jnp.bfloat16) * scale


def _mesh(shape: tuple[int, ...]) -> Mesh:
    devices = np.array(jax.devices()[: int(np.prod(shape))])
    return Mesh(devices.reshape(shape), ("x", "y")[: len(shape)])


def _placed(mesh: Mesh, spec: Spec) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec(*spec))


def _array(mesh: Mesh, shape: tuple[int, ...], spec: Spec) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=_placed(mesh, spec))


PROGRAMS: Mapping[str, Mlp | Transformer] = {
    "mlp_fig2": Mlp((8,), ("x", None), ("x", None), (None, "x")),
    "mlp_fig3": Mlp((2, 4), ("y", "x"), ("y", "x"), ("x", "y"), ("y", "x")),
    "mlp_mega": Mlp((8,), ("x", None), (None, "x"), ("x", None)),
    "transformer_1d": Transformer((8,), "x", "x", None, batch=8, features=4096, heads=32),
    "transformer_2d": Transformer((8, 8), "y", "y", "x", batch=64, features=8192, heads=64),
}
