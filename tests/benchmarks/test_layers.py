"""The layer graphs of the published applications compute what their layers are said to compute."""

from __future__ import annotations

import pytest

from benchmarks.layers import Layer, Mesh, backward, einsum_flops, forward
from benchmarks.paper import Model, applications, weak_scaling
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.programs import prepare
from engine.hlo.reading import read_here
from engine.ir.module import Module

MODELS = {model.name: model for model in applications()}
EXPECTED = {"GPT_1T": 1030, "Meena_500B": 507, "MLPerf_200B": 199, "T5_300B": 290, "GLaM_1T": 1160, "BigSSL_10B": 10.4}
"""Parameters in billions."""


def dot_flops(module: Module) -> int:
    """Of the dots, on all devices."""
    program = prepare(module, machine_for(module, load_chip("tpu-v4")))
    return module.header.devices * sum(
        int(program.costs[id_].flops[node])
        for id_, graph in program.graphs.items()
        for node, opcode in enumerate(graph.opcodes)
        if opcode == "dot"
    )


@pytest.mark.parametrize("name", sorted(MODELS))
def test_models_have_as_many_parameters_as_they_are_known_for(name: str) -> None:
    parameters = sum(count * layer.parameters for count, layer in MODELS[name].layers)
    assert parameters / 1e9 == pytest.approx(EXPECTED[name.removesuffix(" ~")], rel=0.03)


def test_weak_scaling_goes_from_32_billion_to_a_trillion() -> None:
    billions = [sum(count * layer.parameters for count, layer in model.layers) / 1e9 for model in weak_scaling()]
    assert billions == pytest.approx([32, 64, 128, 256, 512, 1024], rel=0.03)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_forward_einsums_are_all_there_and_backward_ones_twice(name: str) -> None:
    model: Model = MODELS[name]
    for _, layer in model.layers:
        ahead = read_here(forward(layer, model.mesh, two=model.two).encode())
        back = read_here(backward(layer, model.mesh, two=model.two).encode())
        assert dot_flops(ahead) == einsum_flops(layer)
        # Attention's weights are computed again.
        assert dot_flops(back) == pytest.approx(2 * einsum_flops(layer), rel=0.01)


def test_one_dimension_gathers_weights_and_two_dimensions_both() -> None:
    layer = Layer(features=512, hidden=2048, attention=0, tokens=4096, sequence=512)
    one = read_here(forward(layer, Mesh(4, 1), two=False).encode())
    two = read_here(forward(layer, Mesh(2, 4), two=True).encode())
    assert collectives(one) == ["all-gather", "all-gather"]
    assert collectives(two) == ["all-gather", "all-gather", "all-gather", "reduce-scatter"]


def collectives(module: Module) -> list[str]:
    return [i.opcode for i in module.entry.instructions if i.opcode.startswith(("all-", "reduce-scatter"))]
