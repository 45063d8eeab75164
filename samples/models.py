"""The programs behind the samples: plain JAX functions with the shapes and shardings that partition them.

Kept apart from generate.py because the generated HLO names lines of this file.
Axis names follow the figures of "Overlap Communication with Dependent Computation via Decomposition in Large Deep
Learning Models" (ASPLOS '23): on a mesh [M, N], `x` is the axis of size M and `y` that of size N.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Arrays = Any
"""A pytree of arrays, of their shapes, or of their shardings."""


@dataclass(frozen=True)
class Step:
    """A function and how its flat or nested arguments and results lie on the mesh."""

    function: Callable[..., Arrays]
    arguments: tuple[Arrays, ...]
    """Pytrees of jax.ShapeDtypeStruct with global shapes and shardings."""
    results: Arrays
    """Pytree of shardings, a prefix of the results' tree."""
    donated: tuple[int, ...] = ()


@dataclass(frozen=True)
class Sizes:
    """Global sizes of a two-layer MLP."""

    batch: int
    features: int
    hidden: int


@dataclass(frozen=True)
class DecoderSizes:
    """Global sizes of a stack of decoder layers."""

    layers: int
    batch: int
    sequence: int
    features: int
    heads: int
    head_size: int
    hidden: int


def struct(mesh: Mesh, spec: P, shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    """An argument of global `shape` that lies on `mesh` as `spec` says."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))


def pinned(x: jax.Array, sharding: NamedSharding | P) -> jax.Array:
    """`x`, which the partitioner must lay out as `sharding` says."""
    constrained: jax.Array = lax.with_sharding_constraint(x, sharding)
    return constrained


def squared_relu(x: jax.Array) -> jax.Array:
    """max(x, 0)². Its derivative has no jump, across which rounding could push a gradient."""
    return jnp.square(jax.nn.relu(x))


def mlp(
    x: jax.Array,
    w1: jax.Array,
    w2: jax.Array,
    *,
    middle: NamedSharding,
    result: NamedSharding,
    activation: Callable[[jax.Array], jax.Array],
) -> jax.Array:
    """[B, F] · [F, H] → activation → [B, H] · [H, F] → [B, F]."""
    hidden = pinned(jnp.einsum("bf,fh->bh", x, w1), middle)
    return pinned(jnp.einsum("bh,hf->bf", activation(hidden), w2), result)


def mlp_step(mesh: Mesh, sizes: Sizes, dtype: Any, specs: tuple[P, P, P, P], train: bool) -> Step:
    """An MLP whose activations, first and second weights and middle lie as `specs` says, in that order.

    With `train`, the backward pass too: the gradient of the result comes in, those of input and weights go out.
    """
    activations, first, second, middle = specs
    batch, features, hidden = sizes.batch, sizes.features, sizes.hidden
    x = struct(mesh, activations, (batch, features), dtype)
    w1 = struct(mesh, first, (features, hidden), dtype)
    w2 = struct(mesh, second, (hidden, features), dtype)
    layer = partial(
        mlp,
        middle=NamedSharding(mesh, middle),
        result=NamedSharding(mesh, activations),
        activation=squared_relu if train else jax.nn.relu,
    )

    def mlp_forward(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
        return layer(x, w1, w2)

    def mlp_train(x: jax.Array, w1: jax.Array, w2: jax.Array, dy: jax.Array) -> Arrays:
        y, pull = jax.vjp(layer, x, w1, w2)
        return y, *pull(dy)

    if not train:
        return Step(mlp_forward, (x, w1, w2), x.sharding)
    return Step(mlp_train, (x, w1, w2, x), (x.sharding, x.sharding, w1.sharding, w2.sharding))


def mlp_fig2(mesh: Mesh, sizes: Sizes, dtype: Any, train: bool) -> Step:
    """One-dimensional partitioning (Figure 2): the batch is split, weights are gathered before each einsum."""
    return mlp_step(mesh, sizes, dtype, (P("x", None), P("x", None), P(None, "x"), P("x", None)), train)


def mlp_fig3(mesh: Mesh, sizes: Sizes, dtype: Any, train: bool) -> Step:
    """Two-dimensional partitioning (Figure 3): activations are gathered along x, weights along y; the second einsum's
    partial sums are reduced and scattered along x."""
    return mlp_step(mesh, sizes, dtype, (P("y", "x"), P("y", "x"), P("x", "y"), P("y", "x")), train)


def mlp_chain(mesh: Mesh, sizes: Sizes, dtype: Any, train: bool) -> Step:
    """Weights stay where they are: activations are gathered along the batch, and the result is scattered along it."""
    return mlp_step(mesh, sizes, dtype, (P("x", None), P(None, "x"), P("x", None), P(None, "x")), train)


def decoder_layer(x: jax.Array, weights: dict[str, jax.Array], pin: Callable[[jax.Array, P], jax.Array]) -> jax.Array:
    """Attention and gated MLP, both with a residual; `pin` fixes how an intermediate array lies on the mesh."""
    normed = rms_norm(x, weights["attention_scale"])
    q = pin(jnp.einsum("bsd,dhk->bshk", normed, weights["q"]), P("y", None, "x", None))
    k = pin(jnp.einsum("bsd,dhk->bshk", normed, weights["k"]), P("y", None, "x", None))
    v = pin(jnp.einsum("bsd,dhk->bshk", normed, weights["v"]), P("y", None, "x", None))
    logits = jnp.einsum("bshk,bthk->bhst", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
    causal = jnp.tril(jnp.ones((q.shape[1], q.shape[1]), bool))
    attention = jax.nn.softmax(jnp.where(causal, logits, -1e30)).astype(x.dtype)
    mixed = pin(jnp.einsum("bhst,bthk->bshk", attention, v), P("y", None, "x", None))
    x = pin(x + jnp.einsum("bshk,hkd->bsd", mixed, weights["o"]), P("y", None, "x"))
    normed = rms_norm(x, weights["mlp_scale"])
    gate = pin(jnp.einsum("bsd,df->bsf", normed, weights["gate"]), P("y", None, "x"))
    up = pin(jnp.einsum("bsd,df->bsf", normed, weights["up"]), P("y", None, "x"))
    return pin(x + jnp.einsum("bsf,fd->bsd", jax.nn.silu(gate) * up, weights["down"]), P("y", None, "x"))


def rms_norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    """x / rms(x) · scale over the last dimension, the mean taken in f32."""
    mean = jnp.mean(jnp.square(x.astype(jnp.float32)), axis=-1, keepdims=True)
    return (x * lax.rsqrt(mean + 1e-6).astype(x.dtype)) * scale


def decoder(mesh: Mesh, sizes: DecoderSizes, dtype: Any, scan: bool) -> Step:
    """A training step of decoder layers: forward, backward, SGD. Layers in a `while` loop with `scan`, else one by one.

    On a mesh with axes x and y as in Figure 3; with y alone as in Figure 2 (the batch split, weights gathered).
    """

    def on_mesh(spec: P) -> P:
        return P(*(axis if axis in mesh.axis_names else None for axis in spec))

    def pin(x: jax.Array, spec: P) -> jax.Array:
        return pinned(x, NamedSharding(mesh, on_mesh(spec)))

    layout = decoder_weights(sizes)
    if scan:
        weights: Arrays = {
            name: struct(mesh, on_mesh(P(None, *spec)), (sizes.layers, *shape), dtype)
            for name, (shape, spec) in layout.items()
        }
    else:
        weights = [
            {name: struct(mesh, on_mesh(spec), shape, dtype) for name, (shape, spec) in layout.items()}
            for _ in range(sizes.layers)
        ]
    x = struct(mesh, on_mesh(P("y", None, "x")), (sizes.batch, sizes.sequence, sizes.features), dtype)

    def loss(weights: Arrays, x: jax.Array, target: jax.Array) -> jax.Array:
        if scan:
            x, _ = lax.scan(lambda x, layer: (decoder_layer(x, layer, pin), None), x, weights)
        else:
            for layer in weights:
                x = decoder_layer(x, layer, pin)
        return jnp.mean(jnp.square((x - target).astype(jnp.float32)))

    def train_step(weights: Arrays, x: jax.Array, target: jax.Array) -> Arrays:
        value, gradients = jax.value_and_grad(loss)(weights, x, target)
        updated = jax.tree.map(lambda weight, gradient: weight - (0.01 * gradient).astype(dtype), weights, gradients)
        return updated, value

    shardings = jax.tree.map(lambda weight: weight.sharding, weights)
    return Step(train_step, (weights, x, x), (shardings, NamedSharding(mesh, P())), donated=(0,))


def decoder_weights(sizes: DecoderSizes) -> dict[str, tuple[tuple[int, ...], P]]:
    """Shape and mesh axes of every weight of one layer: features along y, what they are mapped to along x."""
    features, heads, head_size, hidden = sizes.features, sizes.heads, sizes.head_size, sizes.hidden
    return {
        "attention_scale": ((features,), P("x")),
        "mlp_scale": ((features,), P("x")),
        "q": ((features, heads, head_size), P("y", "x", None)),
        "k": ((features, heads, head_size), P("y", "x", None)),
        "v": ((features, heads, head_size), P("y", "x", None)),
        "o": ((heads, head_size, features), P("x", None, "y")),
        "gate": ((features, hidden), P("y", "x")),
        "up": ((features, hidden), P("y", "x")),
        "down": ((hidden, features), P("x", "y")),
    }


@dataclass(frozen=True)
class RecommenderSizes:
    """Global sizes of a recommendation model."""

    batch: int
    tables: int
    rows: int
    embedding: int
    dense: int
    hidden: int
    layers: int


def recommender(mesh: Mesh, sizes: RecommenderSizes, dtype: Any) -> Step:
    """Inference of a recommendation model, partitioned within layers: looked-up embeddings, their products, an MLP."""

    def pin(x: jax.Array, spec: P) -> jax.Array:
        return pinned(x, NamedSharding(mesh, spec))

    vectors = sizes.tables + 1
    width = vectors * vectors + sizes.embedding
    ids = struct(mesh, P(None, "x"), (sizes.batch, sizes.tables), jnp.int32)
    tables = struct(mesh, P("x", None, None), (sizes.tables, sizes.rows, sizes.embedding), dtype)
    dense = struct(mesh, P("x", None), (sizes.batch, sizes.dense), dtype)
    bottom = struct(mesh, P(None, None), (sizes.dense, sizes.embedding), dtype)
    expand = struct(mesh, P(None, None, "x"), (sizes.layers, width, sizes.hidden), dtype)
    reduce = struct(mesh, P(None, "x", None), (sizes.layers, sizes.hidden, width), dtype)
    top = struct(mesh, P(None), (width,), dtype)

    def recommend(
        ids: jax.Array,
        tables: jax.Array,
        dense: jax.Array,
        bottom: jax.Array,
        expand: jax.Array,
        reduce: jax.Array,
        top: jax.Array,
    ) -> jax.Array:
        looked_up = jax.vmap(lambda table, rows: table[rows], in_axes=(0, 1), out_axes=1)(tables, ids)
        looked_up = pin(looked_up, P("x", None, None))  # from split by table to split by batch: an all-to-all
        projected = jax.nn.relu(jnp.einsum("bd,de->be", dense, bottom))
        every = jnp.concatenate([projected[:, None], looked_up], axis=1)
        products = jnp.einsum("bte,bue->btu", every, every).reshape(dense.shape[0], -1)
        x = pin(jnp.concatenate([products, projected], axis=1), P("x", None))
        for layer in range(sizes.layers):
            hidden = pin(jnp.einsum("bf,fh->bh", x, expand[layer]), P(None, "x"))
            x = pin(x + jnp.einsum("bh,hf->bf", jax.nn.relu(hidden), reduce[layer]), P("x", None))
        return jax.nn.sigmoid(jnp.einsum("bf,f->b", x, top))

    arguments = (ids, tables, dense, bottom, expand, reduce, top)
    return Step(recommend, arguments, NamedSharding(mesh, P("x")))


def pipeline(mesh: Mesh, sizes: Sizes, microbatches: int, dtype: Any, scan: bool, train: bool) -> Step:
    """Stages of one MLP each along the mesh axis `stage`, activations permuted from stage to stage (GPipe's order).

    `sizes.batch` is that of a microbatch. Where the mesh has an axis x, each stage is split along it as in `mlp_chain`.
    """
    stages = mesh.shape["stage"]
    axis = "x" if "x" in mesh.axis_names else None
    batch, features, hidden = sizes.batch, sizes.features, sizes.hidden
    w1 = struct(mesh, P("stage", None, axis), (stages, features, hidden), dtype)
    w2 = struct(mesh, P("stage", axis, None), (stages, hidden, features), dtype)
    x = struct(mesh, P(None, axis, None), (microbatches, batch, features), dtype)

    def split(x: jax.Array, spec: P) -> jax.Array:
        return pinned(x, spec) if axis else x

    def stage(x: jax.Array, w1: jax.Array, w2: jax.Array) -> jax.Array:
        hidden = split(jnp.einsum("bf,fh->bh", x, w1), P(None, axis))
        return split(jnp.einsum("bh,hf->bf", jax.nn.relu(hidden), w2), P(axis, None))

    @partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P("stage"), P("stage"), P()),
        out_specs=P("stage"),
        axis_names={"stage"},
        check_vma=False,
    )
    def run(w1: jax.Array, w2: jax.Array, x: jax.Array) -> jax.Array:
        first = lax.axis_index("stage") == 0

        def visit(arriving: jax.Array, fresh: jax.Array) -> tuple[jax.Array, jax.Array]:
            leaving = stage(jnp.where(first, fresh, arriving), w1[0], w2[0])
            return lax.ppermute(leaving, "stage", [(i, i + 1) for i in range(stages - 1)]), leaving

        # After the last microbatch has entered, the pipeline drains for stages - 1 visits.
        fresh = jnp.concatenate([x, jnp.zeros((stages - 1, *x.shape[1:]), dtype)])
        arriving = jnp.zeros(x.shape[1:], dtype)
        if scan:
            _, leaving = lax.scan(visit, arriving, fresh)
            return leaving[stages - 1 :]
        visits = []
        for index in range(fresh.shape[0]):
            arriving, left = visit(arriving, fresh[index])
            visits.append(left)
        return jnp.stack(visits[stages - 1 :])

    def pipeline_forward(w1: jax.Array, w2: jax.Array, x: jax.Array) -> jax.Array:
        last: jax.Array = run(w1, w2, x)[-microbatches:]
        return last

    def pipeline_train(w1: jax.Array, w2: jax.Array, x: jax.Array) -> Arrays:
        def loss(w1: jax.Array, w2: jax.Array) -> jax.Array:
            return jnp.mean(jnp.square(pipeline_forward(w1, w2, x).astype(jnp.float32)))

        return jax.grad(loss, argnums=(0, 1))(w1, w2)

    if train:
        return Step(pipeline_train, (w1, w2, x), (w1.sharding, w2.sharding))
    return Step(pipeline_forward, (w1, w2, x), x.sharding)
