"""A gated two-layer block: gather → two einsums → element-wise → einsum → reduce-scatter, and what it computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.passes.decompose.site import (
    Case,
    ChainSite,
    EinsumUse,
    GatherSite,
    Groups,
    MiddleStep,
    Mode,
    ScatterSite,
)
from tests.engine.passes.decompose.cases import Array, Lists

B, F, H = 2, 3, 5


@dataclass(frozen=True)
class Block:
    """y = scatter((max(0, gather(x)·a + bias) * (gather(x)·b) * mask)·c): the mask is a whole array, used by block."""

    groups: Lists
    devices: int

    def module(self) -> Module:
        n = len(self.groups[0])
        rows = n * B
        groups = "{" + ",".join("{" + ",".join(map(str, g)) + "}" for g in self.groups) + "}"
        lists = f"replica_groups={groups}, use_global_device_ids=true"
        dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
        text = f"""HloModule block, num_partitions={self.devices}

add {{
  l = f32[] parameter(0)
  r = f32[] parameter(1)
  ROOT s = f32[] add(l, r)
}}

ENTRY main {{
  x = f32[{B},{F}] parameter(0)
  a = f32[{F},{H}] parameter(1)
  b = f32[{F},{H}] parameter(2)
  c = f32[{H},{F}] parameter(3)
  bias = f32[{H}] parameter(4)
  mask = f32[{rows}] parameter(5)
  gather = f32[{rows},{F}] all-gather(x), channel_id=1, {lists}, dimensions={{0}}
  up = f32[{rows},{H}] dot(gather, a), {dims}
  gate = f32[{rows},{H}] dot(gather, b), {dims}
  wide = f32[{rows},{H}] broadcast(bias), dimensions={{1}}
  shifted = f32[{rows},{H}] add(up, wide)
  zero = f32[] constant(0)
  zeros = f32[{rows},{H}] broadcast(zero), dimensions={{}}
  relu = f32[{rows},{H}] maximum(shifted, zeros)
  gated = f32[{rows},{H}] multiply(relu, gate)
  masks = f32[{rows},{H}] broadcast(mask), dimensions={{0}}
  masked = f32[{rows},{H}] multiply(gated, masks)
  down = f32[{rows},{F}] dot(masked, c), {dims}
  ROOT result = f32[{B},{F}] reduce-scatter(down), channel_id=2, {lists}, dimensions={{0}}, to_apply=add
}}
"""
        return read_here(text.encode())

    def site(self, module: Module) -> ChainSite:
        id_of = {name: i.id for name, i in module.by_name.items()}
        groups = Groups(self.groups, Mode.PARTITION)
        entry = module.entry.id

        def first(name: str) -> EinsumUse:
            return EinsumUse(id_of[name], Case.NON_CONTRACTING, 0, 0, None, 0)

        def step(name: str, *slices: int | None) -> MiddleStep:
            return MiddleStep(id_of[name], 0, B, slices)

        gather = GatherSite(
            entry, (id_of["gather"],), id_of["x"], 0, groups, (first("up"), first("gate")), rebuild=False
        )
        use = EinsumUse(id_of["down"], Case.SCATTER, 0, 0, None, 0)
        positions = tuple(range(groups.size))
        scatter = ScatterSite(entry, id_of["result"], id_of["result"], groups, positions, 0, use)
        middle = (
            step("shifted", 0, 0),
            step("relu", 0, 0),
            step("gated", 0, 0),
            step("masks", 0),
            step("masked", 0, 0),
        )
        return ChainSite(entry, gather, middle, scatter)

    def inputs(self, rng: np.random.Generator) -> list[tuple[Array, ...]]:
        shapes = ((B, F), (F, H), (F, H), (H, F), (H,), (len(self.groups[0]) * B,))
        return [tuple(rng.standard_normal(s).astype(np.float32) for s in shapes) for _ in range(self.devices)]

    def reference(self, inputs: Sequence[tuple[Array, ...]]) -> list[Array]:
        wide = [[np.asarray(v).astype(np.float64) for v in device] for device in inputs]
        results: dict[int, Array] = {}
        for group in self.groups:
            whole = np.concatenate([wide[m][0] for m in group])
            total = np.zeros_like(whole)
            for m in group:
                _, a, b, c, bias, mask = wide[m]
                total += (np.maximum(0, whole @ a + bias) * (whole @ b) * mask[:, None]) @ c
            results.update(zip(group, np.split(total, len(group)), strict=True))
        return [results[m] for m in range(self.devices)]
