"""Compiled modules for `benchmarks.costs` and `benchmarks.fit`: the production TPU compiler's text, with its estimates.

``python -m benchmarks.compiled NAME … [-o FOLDER]`` compiles the named cases (``--list`` shows them) and writes
``NAME.hlo.gz``. Nothing is run, no TPU is needed; the extra `tpu` is. Decoder steps are those of ``samples/models.py``
in other sizes; a probe is single einsums and element-wise operations of many sizes, one fusion each.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from engine import worker
from engine.control import Control
from engine.errors import LapstrakeError
from engine.execute.compiling import WITHOUT_DECOMPOSITION, Options
from engine.execute.targets import Target, check_installed

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks/data"
DEADLINE = 600.0


@dataclass(frozen=True)
class Case:
    """A program and the slice that it is compiled for."""

    target: str
    mesh: tuple[tuple[str, int], ...] = (("x", 1),)
    """Axes with their lengths, slowest first."""
    sizes: tuple[int, ...] = ()
    """Of `samples.models.DecoderSizes`; none for the probe."""
    options: Options = field(default_factory=dict)


def _on(x: int, y: int) -> tuple[tuple[str, int], ...]:
    return ("y", y), ("x", x)


CASES: Mapping[str, Case] = {
    "probe_v2": Case("tpu:v2:1x1"),
    "probe_v3": Case("tpu:v3:1x1"),
    "probe_v4": Case("tpu:v4:1x1x1"),
    "probe_v5e": Case("tpu:v5e:1x1"),
    "probe_v5p": Case("tpu:v5p:1x1x1"),
    "probe_v6e": Case("tpu:v6e:1x1"),
    # layers, batch, sequence, features, heads, head size, hidden
    "decoder_v4-2x2x1_2x2_d2048": Case("tpu:v4:2x2x1", _on(2, 2), (2, 16, 1024, 2048, 16, 128, 5504)),
    "decoder_v4-2x2x4_4x4_d6144_whole": Case(
        "tpu:v4:2x2x4", _on(4, 4), (2, 16, 2048, 6144, 48, 128, 16384), WITHOUT_DECOMPOSITION
    ),
    # The two programs of v5p below, for v4: not shipped, to tell what is v5p's from what is the program's.
    "decoder_v4-2x2x1_2x2_d3072": Case("tpu:v4:2x2x1", _on(2, 2), (2, 16, 2048, 3072, 24, 128, 8192)),
    "decoder_v4-2x2x4_4x4_d6144_b32_whole": Case(
        "tpu:v4:2x2x4", _on(4, 4), (2, 32, 2048, 6144, 48, 128, 16384), WITHOUT_DECOMPOSITION
    ),
    "decoder_v4-2x2x2_2x4_d3584_whole": Case(
        "tpu:v4:2x2x2", _on(2, 4), (2, 16, 2048, 3584, 28, 128, 18944), WITHOUT_DECOMPOSITION
    ),
    "decoder_v4-2x2x2_2x4_d4096": Case("tpu:v4:2x2x2", _on(2, 4), (2, 16, 4096, 4096, 32, 128, 14336)),
    "decoder_v5e-2x2_2x2_d2048": Case("tpu:v5e:2x2", _on(2, 2), (2, 8, 2048, 2048, 16, 128, 5632)),
    "decoder_v5e-4x4_4x4_d5120_whole": Case(
        "tpu:v5e:4x4", _on(4, 4), (2, 32, 2048, 5120, 40, 128, 13824), WITHOUT_DECOMPOSITION
    ),
    "decoder_v5p-2x2x1_2x2_d3072": Case("tpu:v5p:2x2x1", _on(2, 2), (2, 16, 2048, 3072, 24, 128, 8192)),
    "decoder_v5p-2x2x4_4x4_d5120_whole": Case(
        "tpu:v5p:2x2x4", _on(4, 4), (2, 32, 2048, 5120, 40, 128, 13824), WITHOUT_DECOMPOSITION
    ),
    # With its probe what v6e's constants are fitted on; the next was looked at meanwhile.
    "decoder_v6e-2x2_2x2_d2048": Case("tpu:v6e:2x2", _on(2, 2), (2, 8, 2048, 2048, 16, 128, 5632)),
    "decoder_v6e-2x4_2x4_d4096_whole": Case(
        "tpu:v6e:2x4", _on(2, 4), (2, 8, 4096, 4096, 32, 128, 14336), WITHOUT_DECOMPOSITION
    ),
    # Compiled after the form of the model and its constants were settled, and nothing was changed for them.
    "decoder_v5p-2x2x2_2x4_d4096": Case("tpu:v5p:2x2x2", _on(2, 4), (2, 16, 4096, 4096, 32, 128, 14336)),
    "decoder_v5e-2x4_2x4_d3584_whole": Case(
        "tpu:v5e:2x4", _on(2, 4), (2, 16, 2048, 3584, 28, 128, 18944), WITHOUT_DECOMPOSITION
    ),
    "decoder_v5p-2x2x4_4x4_d6144_whole": Case(
        "tpu:v5p:2x2x4", _on(4, 4), (2, 32, 2048, 6144, 48, 128, 16384), WITHOUT_DECOMPOSITION
    ),
    "decoder_v6e-4x4_4x4_d6144": Case("tpu:v6e:4x4", _on(4, 4), (2, 16, 2048, 6144, 48, 128, 16384)),
    "decoder_v6e-2x2_2x2_d3072": Case("tpu:v6e:2x2", _on(2, 2), (2, 16, 1024, 3072, 24, 128, 8192)),
    "decoder_v6e-4x4_4x4_d8192_whole": Case(
        "tpu:v6e:4x4", _on(4, 4), (2, 16, 2048, 8192, 64, 128, 28672), WITHOUT_DECOMPOSITION
    ),
    "decoder_v6e-2x4_2x4_d5120_whole": Case(
        "tpu:v6e:2x4", _on(2, 4), (2, 16, 2048, 5120, 40, 128, 13824), WITHOUT_DECOMPOSITION
    ),
}


def compile_case(case: Case) -> str:
    """Text of the compiled module. Raises UnsupportedError without the compiler, WorkerError for what it refuses."""
    target = Target.parse(case.target)
    check_installed(target)
    text = worker.call(
        "benchmarks.compiled:compile_in_worker",
        target,
        case.mesh,
        case.sizes,
        dict(case.options),
        environment={**target.environment, "JAX_ENABLE_X64": "0"},
        deadline=DEADLINE,
    )
    assert isinstance(text, str)
    return text


def compile_in_worker(
    target: Target, mesh: tuple[tuple[str, int], ...], sizes: tuple[int, ...], options: Options, *, control: Control
) -> str:
    """The worker's side of `compile_case`."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import mesh_utils
    from jax.sharding import AxisType, Mesh

    from engine.execute.compilers import topology_of
    from samples.models import DecoderSizes, decoder

    control.step(0.0, f"compiling for {target}")
    # Where this checkout lies is no part of the module.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", re.escape(f"{ROOT}/"))
    axes, shape = tuple(axis for axis, _ in mesh), tuple(length for _, length in mesh)
    devices = topology_of(target).devices[: prod(shape)]
    placed = mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=True)
    on = Mesh(placed, axes, axis_types=(AxisType.Auto,) * len(mesh))
    step: Any = decoder(on, DecoderSizes(*sizes), jnp.bfloat16, scan=True) if sizes else _probe(on)
    asked: dict[str, Any] = dict(options)
    jitted = jax.jit(step.function, out_shardings=step.results, donate_argnums=step.donated)
    compiled = jitted.lower(*step.arguments).compile(compiler_options=asked)
    text = compiled.as_text()
    assert text is not None
    return text


def _probe(mesh: Any) -> Any:
    """Products and element-wise operations, each of operands of its own so that nothing is merged."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    from samples.models import Step, struct

    bf16, f32 = jnp.bfloat16, jnp.float32
    products = [(1, m, n, k) for m in (256, 1024, 4096) for n in (256, 1024, 4096) for k in (128, 512, 2048, 8192)]
    products += [(b, s, s, k) for b in (4, 32) for s in (256, 1024, 2048) for k in (64, 128)]
    products += [(b, s, k, s) for b in (4, 32) for s in (256, 1024, 2048) for k in (64, 128)]
    sheets = [(rows, columns) for rows in (64, 512, 4096) for columns in (256, 2048, 8192)]

    def softmax(x: Any) -> Any:
        return jax.nn.softmax(x.astype(f32), axis=-1).astype(x.dtype)

    def normed(x: Any) -> Any:
        mean = jnp.mean(jnp.square(x.astype(f32)), axis=-1, keepdims=True)
        return (x * jax.lax.rsqrt(mean + 1e-6)).astype(x.dtype)

    def adam(w: Any, g: Any, m: Any, v: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        return w - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v

    operations: list[tuple[Callable[..., Any], int, Any]] = [
        (lambda a, b: a + b, 2, bf16),
        (lambda a: a * 2 + 1, 1, f32),
        (jax.nn.gelu, 1, bf16),
        (lambda a, b: jax.nn.silu(a) * b, 2, bf16),
        (softmax, 1, bf16),
        (normed, 1, bf16),
        (lambda a: a.astype(f32).sum(axis=0), 1, bf16),
        (adam, 4, f32),
    ]
    arguments: list[Any] = []
    calls: list[tuple[Callable[..., Any], int]] = []
    for b, m, n, k in products:
        arguments += [struct(mesh, P(), (b, m, k), bf16), struct(mesh, P(), (b, k, n), bf16)]
        calls.append((lambda a, b: jnp.einsum("bmk,bkn->bmn", a, b), 2))
    for shape in sheets:
        for function, count, dtype in operations:
            arguments += [struct(mesh, P(), shape, dtype)] * count
            calls.append((function, count))

    def probe(*arrays: Any) -> Any:
        given = iter(arrays)
        return [function(*[next(given) for _ in range(count)]) for function, count in calls]

    return Step(probe, tuple(arguments), None)


def main(arguments: list[str]) -> int:
    """Write the named modules; 1 when one could not be compiled."""
    parser = argparse.ArgumentParser(prog="benchmarks.compiled", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases to compile")
    parser.add_argument("--list", action="store_true", help="show the cases instead")
    parser.add_argument(
        "-o", dest="folder", type=Path, default=FOLDER, help="folder to write to (default: %(default)s)"
    )
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.names) - CASES.keys()):
        parser.error(f"no such case: {', '.join(unknown)}; there are: {', '.join(CASES)}")
    if given.list or not given.names:
        for name, case in CASES.items():
            print(f"{name:40} {case.target:16} {'decoder step' if case.sizes else 'probe'}")
        return 0
    for name in given.names:
        try:
            text = compile_case(CASES[name])
        except LapstrakeError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
        given.folder.mkdir(parents=True, exist_ok=True)
        (given.folder / f"{name}.hlo.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
        print(f"{name}: {text.count('estimated_cycles')} estimates", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
