"""The applications that the technique was published with, as layer graphs, under our passes, schedulers and simulator.

Source: "Overlap Communication with Dependent Computation via Decomposition in Large Deep Learning Models" (ASPLOS '23)
on TPU v4. Published: throughput 1.14 to 1.38 times, communication 22 to 42 % of the step before, 72 % of the peak
FLOPS for the model of 500 billion parameters, bottom-up slightly ahead of top-down, half the latency for a
recommendation model on two chips. Nothing here is fitted to these figures, and the table is printed wherever it lands.

Assumed where nothing is published: 2,048 tokens a chip (MLPerf_200B's batch of 4,096 sequences of 512 on 1,024 chips),
bf16, the mesh and its place on the torus, and the shapes marked ~, which only reproduce the parameter counts. A step is
its layers alone: no embedding, loss, optimiser or rematerialisation.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.layers import Layer, Mesh, backward, einsum_flops, forward
from engine.chips.library import load_chip
from engine.hlo.reading import read_bytes, read_here
from engine.session.evaluation import Evaluator
from engine.session.plan import MachineSpec, Plan, plain_plan
from engine.timeline.timeline import Metrics

SAMPLES = Path(__file__).parent.parent / "samples"
TOKENS_PER_CHIP = 2048
SEQUENCE = 512
CHIP = "tpu-v4"

# Meshes whose x is one axis of the torus and whose y is the other two.
TOPOLOGIES = {64: "4x4x4", 128: "4x4x8", 256: "4x8x8", 512: "8x8x8", 1024: "8x8x16", 2048: "8x16x16"}
MESHES = {
    64: Mesh(4, 16),
    128: Mesh(8, 16),
    256: Mesh(8, 32),
    512: Mesh(8, 64),
    1024: Mesh(16, 64),
    2048: Mesh(16, 128),
}


@dataclass(frozen=True)
class Model:
    """Layers and how many there are of each; `two` partitions along both axes."""

    name: str
    layers: tuple[tuple[int, Layer], ...]
    mesh: Mesh
    two: bool = True


def layer_of(features: int, hidden: int, chips: int, attention: int = 0) -> Layer:
    return Layer(features, hidden, attention or features, chips * TOKENS_PER_CHIP, SEQUENCE)


def dense(name: str, layers: int, features: int, hidden: int, chips: int, attention: int = 0) -> Model:
    return Model(name, ((layers, layer_of(features, hidden, chips, attention)),), MESHES[chips])


def applications() -> tuple[Model, ...]:
    encoder = replace(layer_of(12288, 36864, 512), gated=True)
    decoder = replace(encoder, cross=True)
    expert_free = layer_of(8192, 32768, 1024)
    conformer = replace(layer_of(3072, 12288, 128), feedforwards=2, convolution=True)
    return (
        dense("GPT_1T ~", 142, 24576, 98304, 2048),
        dense("Meena_500B ~", 120, 18432, 65536, 1024, attention=24576),
        dense("MLPerf_200B", 66, 12288, 98304, 1024),
        Model("T5_300B ~", ((64, encoder), (64, decoder)), MESHES[512]),
        Model("GLaM_1T ~", ((32, expert_free), (32, replace(expert_free, experts=64))), MESHES[1024]),
        Model("BigSSL_10B ~", ((48, conformer),), MESHES[128], two=False),
    )


def weak_scaling() -> tuple[Model, ...]:
    shapes = (
        ("32B", 40, 8192, 64),
        ("64B", 51, 10240, 128),
        ("128B", 71, 12288, 256),
        ("256B", 80, 16384, 512),
        ("512B", 102, 20480, 1024),
        ("1T", 142, 24576, 2048),
    )
    return tuple(dense(f"GPT_{name} ~", layers, d, 4 * d, chips) for name, layers, d, chips in shapes)


PLANS = {
    "auto": Plan("decompose,async-permute,fuse", "bottom-up"),
    "top-down": Plan("decompose,async-permute,fuse", "top-down"),
    "one": Plan("decompose{ring=one},async-permute,fuse", "bottom-up"),
    "both": Plan("decompose{ring=both},async-permute,fuse", "bottom-up"),
    "rolled": Plan("decompose{form=rolled,unroll=1,ring=one},async-permute,fuse", "bottom-up"),
    "unrolled": Plan("decompose{form=rolled,unroll=2,ring=one},async-permute,fuse", "bottom-up"),
}


@dataclass(frozen=True)
class Step:
    """Sums over a model's layers, forward and backward. Times in picoseconds."""

    time: int
    exposed: int


def evaluate(model: Model) -> dict[str, Step]:
    """Steps by plan; "before" is the model as loaded, its collectives blocking."""
    sums: dict[str, Step] = {}
    for count, layer in model.layers:
        for write in (forward, backward):
            text = write(layer, model.mesh, two=model.two)
            for name, metrics in _metrics(text, model.mesh):
                before = sums.get(name, Step(0, 0))
                sums[name] = Step(before.time + count * metrics.makespan, before.exposed + count * metrics.exposed)
    return sums


def _metrics(text: str, mesh: Mesh) -> Iterable[tuple[str, Metrics]]:
    module = read_here(text.encode())
    spec = MachineSpec(CHIP, TOPOLOGIES[mesh.devices], f"y={mesh.y},x={mesh.x}")
    evaluator = Evaluator(module, spec)
    yield "before", evaluator.evaluate(plain_plan(module)).metrics
    for name, plan in PLANS.items():
        yield name, evaluator.evaluate(plan).metrics


def utilisation(model: Model, time: int) -> float:
    """Floating point operations of the einsums, twice as many backward as forward, over the peak of all chips."""
    flops = sum(count * 3 * einsum_flops(layer) for count, layer in model.layers)
    return flops / (time * 1e-12 * load_chip(CHIP).peak("bf16") * model.mesh.devices)


def row(model: Model) -> str:
    steps = evaluate(model)
    before, after = steps["before"], steps["auto"]
    best = min((step.time, name) for name, step in steps.items())
    parameters = sum(count * layer.parameters for count, layer in model.layers)
    return (
        f"{model.name:14s}{parameters / 1e9:8.0f}B {model.mesh.devices:6d}  {model.mesh.x:3d}×{model.mesh.y:<4d}"
        f"{before.exposed / before.time:8.1%} {before.time / after.time:7.3f}x "
        f"{before.time / best[0]:7.3f}x {best[1]:9s}"
        f"{utilisation(model, before.time):8.1%} {utilisation(model, best[0]):8.1%} "
        f"{steps['rolled'].time / steps['unrolled'].time:8.3f}x {steps['one'].time / steps['both'].time:8.3f}x "
        f"{steps['top-down'].time / after.time:8.3f}x"
    )


HEADER = (
    f"{'model':14s}{'params':>9s} {'chips':>6s}  {'mesh':8s}{'comm':>8s} {'auto':>8s} {'best':>8s} {'by':9s}"
    f"{'before':>8s} {'after':>8s} {'unroll':>9s} {'both ways':>9s} {'bottom-up':>9s}"
)


LEGEND = """\
comm: exposed communication before; auto: gain of the default plan; best: gain of the best plan tried, and which it is;
before, after: FLOPS utilisation, the latter of the best plan; unroll: gain of unrolling loops by 2; both ways: of two
ring directions over one; bottom-up: over top-down."""


def inference() -> str:
    """The recommendation model on two chips: latency before over after."""
    path = str(SAMPLES / "recommender_2_bf16.hlo")
    evaluator = Evaluator(read_here(read_bytes(path), path), MachineSpec(CHIP))
    before = evaluator.evaluate(plain_plan(evaluator.module)).metrics
    after = evaluator.evaluate(PLANS["auto"]).metrics
    return (
        f"recommender, 2 chips: {before.makespan / 1e6:.1f} µs before, of which {before.exposed / 1e6:.1f} µs exposed; "
        f"{after.makespan / 1e6:.1f} µs after: {before.makespan / after.makespan:.2f}x (published: about 2x)"
    )


def main() -> None:
    """Print a row for each application, beside what was published."""
    parser = argparse.ArgumentParser(prog="benchmarks.paper", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of applications' names; all if none is given")
    chosen = parser.parse_args().names
    print(__doc__)
    print(LEGEND)
    for title, models in (("applications", applications()), ("weak scaling", weak_scaling())):
        print(f"\n{title}\n{HEADER}")
        for model in models:
            if not chosen or any(part.lower() in model.name.lower() for part in chosen):
                print(row(model), flush=True)
    print(f"{'published':14s}{'':27s}22–42 %{'':10s}1.14–1.38x{'':20s}72 % (500B)")
    if not chosen:
        print(f"\n{inference()}")


if __name__ == "__main__":
    main()
