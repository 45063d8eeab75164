"""Modules that TPU and GPU compilers wrote compute what their sources say, run on CPU devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.execute.legalize import legalize
from engine.execute.verifying import verify
from engine.execute.widening import widen
from engine.hlo.reading import read_here
from engine.hlo.verifying import problems
from engine.ir.module import Module
from tests.places import COMPILED, DATA

HEAD = "add {\n  a = bf16[] parameter(0)\n  b = bf16[] parameter(1)\n  ROOT s = bf16[] add(a, b)\n}\nENTRY main {\n"
GROUP = "channel_id={0}, replica_groups=[1,{1}]<=[{1}], use_global_device_ids=true, dimensions={{{2}}}"

SOURCES = {
    "tpu_mlp": "HloModule m, num_partitions=8\n" + HEAD + "  x = bf16[128,512] parameter(0)\n"
    "  v = bf16[64,1024] parameter(1)\n  w = bf16[1024,64] parameter(2)\n"
    f"  vg = bf16[512,1024] all-gather(v), {GROUP.format(1, 8, 0)}\n"
    "  h = bf16[128,1024] dot(x, vg), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "  z = bf16[] constant(0)\n  zs = bf16[128,1024] broadcast(z), dimensions={}\n"
    "  r = bf16[128,1024] maximum(h, zs)\n"
    f"  wg = bf16[1024,512] all-gather(w), {GROUP.format(2, 8, 1)}\n"
    "  ROOT y = bf16[128,512] dot(r, wg), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
    "gpu_ag1_bidir_R4": "HloModule m, num_partitions=4\n" + HEAD + "  x = bf16[256,1024] parameter(0)\n"
    "  w = bf16[1024,768] parameter(1)\n"
    f"  g = bf16[1024,1024] all-gather(x), {GROUP.format(1, 4, 0)}\n"
    "  ROOT y = bf16[1024,768] dot(g, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
    "gpu_rs_unroll2_R4": "HloModule m, num_partitions=4\n" + HEAD + "  x = bf16[1024,384] parameter(0)\n"
    "  w = bf16[384,768] parameter(1)\n"
    "  p = bf16[1024,768] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    f"  ROOT y = bf16[256,768] reduce-scatter(p), {GROUP.format(1, 4, 0)}, to_apply=add\n}}\n",
}
SOURCES["gpu_ag1_unroll2_R4"] = SOURCES["gpu_ag1_bidir_R4"]


def compiled(path: Path) -> Module:
    return read_here(path.read_bytes(), path.name)


@pytest.mark.parametrize("name", SOURCES)
def test_compiled_modules_equal_their_sources(name: str) -> None:
    found = verify(read_here(SOURCES[name].encode()), compiled(DATA / "compiled" / f"{name}.hlo.gz"), deadline=120.0)
    assert found.equal
    assert found.reference == "float64"
    assert {output.precision for output in found.outputs} == {"own", "float64"}


def small() -> list[object]:
    """Programs of d_model 256 that compilers left for eight devices; transformer steps and six loops take longer."""
    names = sorted(path.name.removesuffix(".hlo.gz") for path in (DATA / "small-compiled").glob("*_*pu_*.hlo.gz"))
    marks = {n: [pytest.mark.full] for n in names if n.startswith("step") or n == "mlp_fig2_1x8_tpu_late"}
    return [pytest.param(n, marks=marks.get(n, []), id=n) for n in names]


@pytest.mark.parametrize("name", small())
def test_small_programs_equal_what_compilers_made_of_them(name: str) -> None:
    folder = DATA / "small-compiled"
    source = "_".join(name.split("_")[:-2])
    found = verify(compiled(folder / f"{source}.hlo.gz"), compiled(folder / f"{name}.hlo.gz"), seeds=2, deadline=600.0)
    assert found.equal, str(found)


@pytest.mark.parametrize("path", sorted(COMPILED.glob("*.hlo.gz")), ids=lambda path: path.stem)
def test_large_ones_become_valid_modules(path: Path) -> None:
    """They need more memory than a test machine has; that they compile was tried by hand."""
    proto = legalize(compiled(path))
    assert list(problems(proto)) == []
    assert list(problems(widen(proto))) == []
    left = {i.opcode for c in proto.computations for i in c.instructions}
    assert not left & {"fusion", "bitcast", "custom-call", "copy-start", "async-start", "collective-permute-start"}
