"""Writes the samples: JAX programs as XLA's partitioner leaves them, collectives whole and nothing optimised yet.

The same version of jax writes the same bytes. Nothing is run: the devices that a file is for need not exist.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=64"  # the largest mesh below

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh

from samples.models import (
    DecoderSizes,
    RecommenderSizes,
    Sizes,
    Step,
    decoder,
    mlp_chain,
    mlp_fig2,
    mlp_fig3,
    pipeline,
    recommender,
)

FOLDER = Path(__file__).resolve().parent
WRITTEN_WITH = "0.10.2"
"""The version of jax that wrote the committed files."""

F32, BF16 = jnp.float32, jnp.bfloat16

# Small: original and decomposed run on CPU devices within seconds.
SMALL = Sizes(batch=64, features=32, hidden=128)
MEDIUM = Sizes(batch=256, features=128, hidden=512)
SMALL_DECODER = DecoderSizes(layers=2, batch=8, sequence=16, features=32, heads=4, head_size=8, hidden=64)
MEDIUM_DECODER = DecoderSizes(layers=3, batch=16, sequence=32, features=64, heads=8, head_size=16, hidden=256)
# Still run on CPU devices within a minute; on TPU v4 the einsums take about as long as the transfers, or longer.
PAYS_FIG2 = Sizes(batch=32768, features=1024, hidden=2048)
PAYS_FIG3 = Sizes(batch=8192, features=2048, hidden=8192)
PAYS_CHAIN = Sizes(batch=4096, features=1024, hidden=32768)
# The size of real models; never run here.
LARGE_FIG2 = Sizes(batch=131072, features=4096, hidden=16384)
LARGE_FIG3 = Sizes(batch=32768, features=8192, hidden=32768)
LARGE_1D = DecoderSizes(layers=4, batch=64, sequence=2048, features=4096, heads=32, head_size=128, hidden=11264)
LARGE_2D = DecoderSizes(layers=4, batch=32, sequence=2048, features=8192, heads=64, head_size=128, hidden=28672)
RECOMMENDER = RecommenderSizes(batch=512, tables=8, rows=256, embedding=32, dense=64, hidden=1024, layers=3)


def mesh(**axes: int) -> Mesh:
    """A mesh over the first devices, its axes in the order given."""
    devices = jax.devices()[: prod(axes.values())]
    return jax.make_mesh(tuple(axes.values()), tuple(axes), (AxisType.Auto,) * len(axes), devices=devices)


SAMPLES: dict[str, Callable[[], Step]] = {
    "mlp_fig2": lambda: mlp_fig2(mesh(x=8), PAYS_FIG2, BF16, train=False),
    "mlp_fig2_forward_4_f32": lambda: mlp_fig2(mesh(x=4), SMALL, F32, train=False),
    "mlp_fig2_train_4_f32": lambda: mlp_fig2(mesh(x=4), SMALL, F32, train=True),
    "mlp_fig2_train_8_bf16": lambda: mlp_fig2(mesh(x=8), MEDIUM, BF16, train=True),
    "mlp_fig2_train_16_large": lambda: mlp_fig2(mesh(x=16), LARGE_FIG2, BF16, train=True),
    "mlp_fig3": lambda: mlp_fig3(mesh(x=2, y=4), PAYS_FIG3, BF16, train=False),
    "mlp_fig3_forward_2x2_f32": lambda: mlp_fig3(mesh(x=2, y=2), SMALL, F32, train=False),
    "mlp_fig3_train_2x2_f32": lambda: mlp_fig3(mesh(x=2, y=2), SMALL, F32, train=True),
    "mlp_fig3_train_2x4_bf16": lambda: mlp_fig3(mesh(x=2, y=4), MEDIUM, BF16, train=True),
    "mlp_fig3_train_4x2_f32": lambda: mlp_fig3(mesh(x=4, y=2), MEDIUM, F32, train=True),
    "mlp_fig3_train_8x8_large": lambda: mlp_fig3(mesh(x=8, y=8), LARGE_FIG3, BF16, train=True),
    "mlp_chain": lambda: mlp_chain(mesh(x=8), PAYS_CHAIN, BF16, train=False),
    "mlp_chain_forward_4_f32": lambda: mlp_chain(mesh(x=4), SMALL, F32, train=False),
    "mlp_chain_train_8_bf16": lambda: mlp_chain(mesh(x=8), MEDIUM, BF16, train=True),
    "decoder_fig2_scan_4_f32": lambda: decoder(mesh(y=4), SMALL_DECODER, F32, scan=True),
    "decoder_fig2_scan_8_bf16": lambda: decoder(mesh(y=8), MEDIUM_DECODER, BF16, scan=True),
    "decoder_fig2_scan_16_large": lambda: decoder(mesh(y=16), LARGE_1D, BF16, scan=True),
    "decoder_fig2_unrolled_4_f32": lambda: decoder(mesh(y=4), SMALL_DECODER, F32, scan=False),
    "decoder_fig3_scan_2x2_f32": lambda: decoder(mesh(x=2, y=2), SMALL_DECODER, F32, scan=True),
    "decoder_fig3_scan_2x4_bf16": lambda: decoder(mesh(x=2, y=4), MEDIUM_DECODER, BF16, scan=True),
    "decoder_fig3_scan_8x8_large": lambda: decoder(mesh(x=8, y=8), LARGE_2D, BF16, scan=True),
    "decoder_fig3_unrolled_2x4_bf16": lambda: decoder(mesh(x=2, y=4), SMALL_DECODER, BF16, scan=False),
    "recommender_2_bf16": lambda: recommender(mesh(x=2), RECOMMENDER, BF16),
    "pipeline_forward_4_f32": lambda: pipeline(mesh(stage=4), SMALL, 4, F32, scan=False, train=False),
    "pipeline_train_4x2_f32": lambda: pipeline(mesh(stage=4, x=2), SMALL, 4, F32, scan=True, train=True),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the samples that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(SAMPLES)}")
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder to write to (default: samples)")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - SAMPLES.keys())
    if unknown:
        parser.error(f"no such sample: {', '.join(unknown)}")
    if jax.__version__ != WRITTEN_WITH:
        print(f"note: the committed samples were written with jax {WRITTEN_WITH}, this is {jax.__version__}")
    # File names without folders, and no frames of this file: the text must not depend on where or how it was made.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*[/\\\\]")
    jax.config.update("jax_traceback_in_locations_limit", 1)
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.names or SAMPLES:
        text = partitioned(SAMPLES[name]())
        (options.output / f"{name}.hlo").write_text(text, "utf-8", newline="\n")
        print(f"{name}.hlo: {len(text.splitlines())} lines", flush=True)
    return 0


def partitioned(step: Step) -> str:
    """The module of `step` right after XLA's partitioner, as HLO text."""
    jitted = jax.jit(step.function, out_shardings=step.results, donate_argnums=step.donated)
    with tempfile.TemporaryDirectory(prefix="lapstrake-samples-") as folder:
        options: dict[str, str | bool] = {
            "xla_dump_to": folder,
            "xla_dump_hlo_pass_re": "spmd-partitioning",
            "xla_dump_hlo_as_text": True,
            "xla_dump_large_constants": True,  # the tables of positions matter
            "xla_backend_optimization_level": "0",  # what comes after the partitioner is thrown away
        }
        jitted.lower(*step.arguments).compile(compiler_options=options)
        (dump,) = Path(folder).glob("*.after_spmd-partitioning.*.txt")
        return dump.read_text("utf-8")


if __name__ == "__main__":
    sys.exit(main())
