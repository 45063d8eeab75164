"""Writes tests/data/small-compiled again: MLPs and transformer steps as production compilers leave them, for 8 devices.

Small enough to run on CPU devices (d_model 256), where tests hold what the compilers made to what they were given.
Needs the extras `tpu` and `cuda`; no device of either.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from engine.errors import LapstrakeError
from engine.execute.compiling import (
    ASYNCHRONOUS_WHOLE,
    DECOMPOSED_LATE,
    NO_OPTIONS,
    WITHOUT_DECOMPOSITION,
    Options,
    compile_module,
)
from engine.execute.targets import Target
from engine.hlo.reading import read_here

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data" / "small-compiled"
COMPILED: Mapping[str, tuple[str, Options]] = {
    "tpu_default": ("tpu:v4:2x2x2", NO_OPTIONS),
    "tpu_late": ("tpu:v4:2x2x2", {**DECOMPOSED_LATE, **ASYNCHRONOUS_WHOLE}),
    "tpu_off": ("tpu:v4:2x2x2", WITHOUT_DECOMPOSITION),
    "gpu_default": ("cuda:h100:1x1x8", NO_OPTIONS),
}


def main() -> int:
    """Write sources, then what each compiler makes of them."""
    import jax

    from samples import generate  # late: it sets the environment for jax
    from samples.models import DecoderSizes, Sizes, decoder, mlp_chain, mlp_fig2, mlp_fig3

    mlp = Sizes(batch=256, features=256, hidden=1024)
    layers = DecoderSizes(layers=2, batch=16, sequence=64, features=256, heads=8, head_size=32, hidden=512)
    ring, grid, dtype = generate.mesh(x=8), generate.mesh(x=2, y=4), generate.BF16
    programs = {
        "mlp_fig2_1x8": mlp_fig2(ring, mlp, dtype, train=True),
        "mlp_fig3_2x4": mlp_fig3(grid, mlp, dtype, train=True),
        "mlp_chain_1x8": mlp_chain(ring, mlp, dtype, train=True),
        "step_1x8": decoder(generate.mesh(y=8), layers, dtype, scan=False),
        "step_2x4": decoder(grid, layers, dtype, scan=False),
    }
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*[/\\\\]")
    jax.config.update("jax_traceback_in_locations_limit", 1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, step in programs.items():
        text = generate.partitioned(replace(step, donated=()))  # the TPU compiler wants other layouts for its results
        write(name, text)
        module = read_here(text.encode(), name)
        for how, (target, options) in COMPILED.items():
            try:
                made = compile_module(module, Target.parse(target), options=options)
            except LapstrakeError as error:
                print(f"{name}_{how}: {error}", flush=True)
                continue
            write(f"{name}_{how}", made.text)
            print(f"{name}_{how}: {len(made.text.splitlines())} lines in {made.seconds:.0f} s", flush=True)
    return 0


def write(name: str, text: str) -> None:
    (FOLDER / f"{name}.hlo.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    sys.exit(main())
