"""Small programs with one collective and one einsum each, their sites, and what they compute in float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from engine.hlo.reading import read_here
from engine.ir.edit import Editor
from engine.ir.module import Module
from engine.ir.shapes import numpy_dtype
from engine.passes.decompose.emit.emit import emit, why_not
from engine.passes.decompose.rings.variants import Variant
from engine.passes.decompose.site import Case, EinsumUse, GatherSite, Groups, Mode, ScatterSite
from tests.element_types import element_type
from tests.engine.passes.decompose.running import reloaded, run

Array = npt.NDArray[Any]
Lists = tuple[tuple[int, ...], ...]

FORMS: tuple[Literal["unrolled", "rolled"], ...] = ("unrolled", "rolled")
UNROLLS: tuple[Literal[1, 2], ...] = (1, 2)
RINGS: tuple[Literal["one", "both"], ...] = ("one", "both")
CHAINS: tuple[Literal["stride", "halves"], ...] = ("stride", "halves")


@dataclass(frozen=True)
class Program:
    """An einsum ``lhs,rhs->out`` with one blocked index that is gathered before it, or scattered after it.

    Indices are letters; the result's order is the one a dot gives: batch, then what is left of lhs and of rhs.
    """

    lhs: str
    rhs: str
    blocked: str
    scatter: bool
    groups: Lists = ()
    side: int = 0
    """Which operand is gathered; for a scatter it follows from the blocked index."""
    dtype: str = "f32"
    sizes: dict[str, int] = field(default_factory=dict)
    """Size of every index; for the blocked one that of a block."""
    positions: tuple[int, ...] = ()
    """Scatter as all-reduce and dynamic-slice, position r keeping block positions[r]; empty for a reduce-scatter."""
    rebuild: bool = False
    ring: tuple[int, ...] = ()
    """Order in which the ring passes the members of a group; empty for the group's own."""
    devices: int = 0

    @property
    def count(self) -> int:
        return len(self.groups[0])

    @property
    def batch(self) -> str:
        return "".join(i for i in self.lhs if i in "bc" and i in self.rhs)

    @property
    def out(self) -> str:
        contracted = {i for i in self.lhs if i in self.rhs and i not in self.batch}
        rest = [i for i in self.lhs + self.rhs if i not in contracted and i not in self.batch]
        return self.batch + "".join(rest)

    def shape(self, indices: str, *, block: bool) -> tuple[int, ...]:
        return tuple(self.sizes[i] * (1 if block or i != self.blocked else self.count) for i in indices)

    def dot_attributes(self) -> str:
        contracted = [i for i in self.lhs if i in self.rhs and i not in self.batch]
        parts = []
        for name, operand in (("lhs", self.lhs), ("rhs", self.rhs)):
            if self.batch:
                parts.append(f"{name}_batch_dims={{{','.join(str(operand.index(i)) for i in self.batch)}}}")
            parts.append(f"{name}_contracting_dims={{{','.join(str(operand.index(i)) for i in contracted)}}}")
        return ", ".join(parts)

    def lines(self, c: int) -> tuple[list[str], list[str], list[str]]:
        """(parameter shapes, instructions, names of results); parameters are x{c} and w{c}."""
        t = self.dtype
        groups = "{" + ",".join("{" + ",".join(map(str, g)) + "}" for g in self.groups) + "}"
        lists = f"channel_id={c + 1}, replica_groups={groups}, use_global_device_ids=true"
        out = _text(t, self.shape(self.out, block=False))
        operands = [self.lhs, self.rhs]
        if not self.scatter:
            dim = operands[self.side].index(self.blocked)
            full = [_text(t, self.shape(o, block=False)) for o in operands]
            shapes = list(full)
            shapes[self.side] = _text(t, self.shape(operands[self.side], block=True))
            names = [f"x{c}", f"w{c}"]
            code = [f"g{c} = {full[self.side]} all-gather({names[self.side]}), {lists}, dimensions={{{dim}}}"]
            names[self.side] = f"g{c}"
            code.append(
                f'd{c} = {out} dot({names[0]}, {names[1]}), {self.dot_attributes()}, metadata={{op_name="case{c}"}}'
            )
            results = [f"d{c}"]
            if self.rebuild:
                code.append(f"n{c} = {full[self.side]} negate(g{c})")
                results.append(f"n{c}")
            return shapes, code, results
        shapes = [_text(t, self.shape(o, block=False)) for o in operands]
        dim = self.out.index(self.blocked)
        shard = _text(t, self.shape(self.out, block=True))
        code = [f"d{c} = {out} dot(x{c}, w{c}), {self.dot_attributes()}"]
        if not self.positions:
            code.append(f"r{c} = {shard} reduce-scatter(d{c}), {lists}, dimensions={{{dim}}}, to_apply=add_{t}")
            return shapes, code, [f"r{c}"]
        size = self.sizes[self.blocked]
        starts = [0] * self.devices
        for group in self.groups:
            for r, member in enumerate(group):
                starts[member] = self.positions[r] * size
        code += [
            f"a{c} = {out} all-reduce(d{c}), {lists}, to_apply=add_{t}",
            f"t{c} = s32[{self.devices}] constant({{{','.join(map(str, starts))}}})",
            f"p{c} = u32[] partition-id()",
            f"o{c} = s32[1] dynamic-slice(t{c}, p{c}), dynamic_slice_sizes={{1}}",
            f"i{c} = s32[] reshape(o{c})",
            f"z{c} = s32[] constant(0)",
        ]
        at = ", ".join(f"i{c}" if k == dim else f"z{c}" for k in range(len(self.out)))
        sizes = ",".join(map(str, self.shape(self.out, block=True)))
        code.append(f"r{c} = {shard} dynamic-slice(a{c}, {at}), dynamic_slice_sizes={{{sizes}}}")
        return shapes, code, [f"r{c}"]

    def site(self, module: Module, c: int) -> GatherSite | ScatterSite:
        id_of = {name: i.id for name, i in module.by_name.items()}
        entry = module.entry.id
        ring = self.ring or tuple(range(self.count))
        groups = Groups(tuple(tuple(group[r] for r in ring) for group in self.groups), Mode.PARTITION)
        in_out = self.blocked in self.out
        output_dim = self.out.index(self.blocked) if in_out else None
        operands = [self.lhs, self.rhs]
        side = self.side if not self.scatter else int(self.blocked not in self.lhs)
        other = operands[1 - side]
        other_dim = other.index(self.blocked) if self.blocked in other else None
        if self.scatter:
            case = Case.SCATTER
        elif not in_out:
            case = Case.CONTRACTING
        else:
            case = Case.BATCH if other_dim is not None else Case.NON_CONTRACTING
        use = EinsumUse(id_of[f"d{c}"], case, side, operands[side].index(self.blocked), other_dim, output_dim)
        if not self.scatter:
            gathered = module.by_name[f"g{c}"]
            shard = gathered.operand_ids[0]
            return GatherSite(entry, (gathered.id,), shard, use.dim, groups, (use,), self.rebuild, self.ring)
        collective = id_of[f"a{c}"] if self.positions else id_of[f"r{c}"]
        positions = self.positions or tuple(range(self.count))
        positions = tuple(positions[r] for r in ring)
        assert output_dim is not None
        return ScatterSite(entry, collective, id_of[f"r{c}"], groups, positions, output_dim, use)

    def reference(self, inputs: Sequence[tuple[Array, Array]]) -> list[list[Array]]:
        """Results by device in float64 (complex128), for (x, w) by device."""
        wide = [
            [np.asarray(a).astype(np.complex128 if self.dtype == "c64" else np.float64) for a in pair]
            for pair in inputs
        ]
        equation = f"{self.lhs},{self.rhs}->{self.out}"
        results: list[list[Array]] = [[] for _ in inputs]
        for group in self.groups:
            if self.scatter:
                total = sum(np.einsum(equation, *wide[m]) for m in group)
                blocks = np.split(total, self.count, self.out.index(self.blocked))
                positions = self.positions or tuple(range(self.count))
                for r, member in enumerate(group):
                    results[member] = [blocks[positions[r]]]
                continue
            axis = (self.lhs, self.rhs)[self.side].index(self.blocked)
            whole = np.concatenate([wide[m][self.side] for m in group], axis)
            for member in group:
                pair = list(wide[member])
                pair[self.side] = whole
                results[member] = [np.einsum(equation, *pair)] + ([-whole] if self.rebuild else [])
        return results

    @property
    def tolerance(self) -> float:
        """Allowed error relative to the largest value: N roundings of the type's precision, 1e-5 for f32."""
        bits = {"bf16": 8, "f16": 11, "f8e4m3fn": 3, "f8e5m2": 2}.get(self.dtype)
        if self.dtype in ("s32", "s8", "u8"):
            return 0.0
        return 1e-5 if bits is None else self.count * 2.0**-bits

    def inputs(self, rng: np.random.Generator) -> list[tuple[Array, Array]]:
        dtype = numpy_dtype(element_type(self.dtype))
        made = []
        for _ in range(self.devices):
            pair = []
            for k, operand in enumerate((self.lhs, self.rhs)):
                shape = self.shape(operand, block=not self.scatter and k == self.side)
                if self.dtype in ("s32", "s8", "u8"):
                    pair.append(rng.integers(0, 4, shape).astype(dtype))
                elif self.dtype == "c64":
                    pair.append((rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype))
                else:
                    pair.append(rng.standard_normal(shape).astype(dtype))
            made.append((pair[0], pair[1]))
        return made


def _text(dtype: str, dimensions: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, dimensions))}]"


def module_of(programs: Sequence[Program]) -> Module:
    """All programs side by side in one entry computation."""
    devices = programs[0].devices
    parameters, code, results, result_shapes = [], [], [], []
    for c, program in enumerate(programs):
        shapes, lines, names = program.lines(c)
        for k, (name, shape) in enumerate(zip((f"x{c}", f"w{c}"), shapes, strict=True)):
            parameters.append(f"  {name} = {shape} parameter({2 * c + k})")
        code += [f"  {line}" for line in lines]
        results += names
        made = {line.split(" = ")[0]: line.split(" = ")[1].split(" ")[0] for line in lines}
        result_shapes += [made[name] for name in names]
    adders = [
        f"add_{t} {{\n  l_{t} = {t}[] parameter(0)\n  r_{t} = {t}[] parameter(1)\n"
        f"  ROOT s_{t} = {t}[] add(l_{t}, r_{t})\n}}\n"
        for t in sorted({p.dtype for p in programs})
    ]
    root = f"  ROOT all = ({', '.join(result_shapes)}) tuple({', '.join(results)})"
    body = "\n".join([*parameters, *code, root])
    text = f"HloModule cases, num_partitions={devices}\n\n" + "\n".join(adders) + f"\nENTRY main {{\n{body}\n}}\n"
    return read_here(text.encode())


def rings(count: int, kind: str) -> tuple[Lists, int]:
    """Groups of `count` members and how many devices they take."""
    match kind:
        case "one":
            return (tuple(range(count)),), count
        case "consecutive":
            return (tuple(range(count)), tuple(range(count, 2 * count))), 2 * count
        case "strided":
            return (tuple(range(0, 2 * count, 2)), tuple(range(1, 2 * count, 2))), 2 * count
        case "irregular":
            order = [*range(1, count), 0]
            second = [*range(2 * count - 1, count - 1, -1)]
            return (tuple(order), tuple(second)), 2 * count
    raise ValueError(kind)


EINSUMS = {
    "non-contracting": Program("mk", "kn", "m", scatter=False),
    "contracting": Program("mk", "kn", "k", scatter=False),
    "batch": Program("bmk", "bkn", "b", scatter=False),
    "scatter": Program("mk", "kn", "m", scatter=True),
    "batch-scatter": Program("bmk", "bkn", "b", scatter=True),
}
"""One plain program a case; groups and sizes are to be filled in."""


def sized(program: Program, groups: Lists, devices: int, **changes: Any) -> Program:
    sizes = {"m": 2, "k": 3, "n": 4, "b": 2, "c": 2, "h": 3, **changes.pop("sizes", {})}
    return replace(program, groups=groups, devices=devices, sizes=sizes, **changes)


def variants(
    *, accumulate: Literal["same", "f32"] = "same", blocks: Literal["joined", "stacked", "separate"] = "joined"
) -> list[Variant]:
    """Every form of a decomposition that is one of its own."""
    return [
        Variant(form, unroll, ring, chains, accumulate=accumulate, blocks=blocks)
        for form in FORMS
        for unroll in UNROLLS
        for ring in RINGS
        for chains in CHAINS
        if chains == "stride" or (unroll == 2 and ring == "one")
    ]


def decomposed(programs: Sequence[Program], chosen: Sequence[Variant]) -> tuple[Module, Module, list[int]]:
    """(all programs in one module, the same decomposed, numbers of the programs whose variant applied)."""
    module = module_of(programs)
    editor = Editor(module)
    done = []
    for c, (program, variant) in enumerate(zip(programs, chosen, strict=True)):
        site = program.site(module, c)
        if why_not(editor, site, variant) is None:
            emit(editor, site, variant)
            done.append(c)
    return module, editor.finish(), done


def check(module: Module, programs: Sequence[Program], seed: int = 0) -> None:
    """Run `module` on CPU devices and compare every program's results with float64."""
    rng = np.random.default_rng(seed)
    inputs = [program.inputs(rng) for program in programs]
    devices = programs[0].devices
    outputs = run(reloaded(module), [[a for given in inputs for a in given[d]] for d in range(devices)])
    at = 0
    for program, given in zip(programs, inputs, strict=True):
        expected = program.reference(given)
        for k in range(len(expected[0])):
            got = np.stack([np.asarray(outputs[d][at + k]).astype(expected[d][k].dtype) for d in range(devices)])
            want = np.stack([expected[d][k] for d in range(devices)])
            error = np.abs(got - want).max() / max(1.0, np.abs(want).max())
            assert error <= program.tolerance, f"{program}: error {error}, allowed {program.tolerance}"
        at += len(expected[0])
