"""What compilers write runs on CPU devices and gives the numbers it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from engine.errors import UnsupportedError
from engine.execute.legalize import legalize
from engine.hlo.reading import read_here
from tests.engine.execute.jobs import by_device, close, run_text
from tests.engine.execute.texts import LEFT, program

Device = list[npt.NDArray[Any]]
Expected = Callable[[list[Device]], list[npt.NDArray[Any]]]

X = "  x = f32[4,8] parameter(0)\n"
GROUP = "channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true"


def gathered(inputs: list[Device]) -> list[npt.NDArray[Any]]:
    return [np.concatenate([d[0] for d in inputs])] * len(inputs)


def summed(inputs: list[Device]) -> list[npt.NDArray[Any]]:
    return [np.sum([d[0] for d in inputs], axis=0)] * len(inputs)


def scattered(inputs: list[Device]) -> list[npt.NDArray[Any]]:
    total = np.sum([d[0] for d in inputs], axis=0)
    return [total[k : k + 1] for k in range(len(inputs))]


def shifted(inputs: list[Device]) -> list[npt.NDArray[Any]]:
    return [inputs[(k + 1) % 4][0] for k in range(4)]


def same(inputs: list[Device]) -> list[npt.NDArray[Any]]:
    return [d[0] for d in inputs]


def negated(inputs: list[Device]) -> list[npt.NDArray[Any]]:
    return [-d[0] for d in inputs]


COMPUTATIONS = f"""scatter {{
  p = f32[4,8] parameter(0)
  ROOT r = f32[1,8] reduce-scatter(p), {GROUP}, to_apply=add
}}
inner {{
  p = f32[4,8] parameter(0)
  ROOT n = f32[4,8] negate(p)
}}
outer {{
  p = f32[4,8] parameter(0)
  n = f32[4,8] fusion(p), kind=kLoop, calls=inner
  ROOT r = f32[4,8] multiply(n, p)
}}
pair {{
  p = f32[4,8] parameter(0)
  n = f32[4,8] negate(p)
  m = f32[4,8] multiply(n, p)
  ROOT t = (f32[4,8], f32[4,8]) tuple(n, m)
}}
einsum {{
  p = f32[4,8] parameter(0)
  q = f32[8,4] transpose(p), dimensions={{1,0}}
  d = f32[4,4] dot(p, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT r = f32[4,4] negate(d)
}}
"""

CASES: dict[str, tuple[str, Expected]] = {
    "all-gather-start": (
        f"{X}  s = (f32[4,8], f32[16,8]) all-gather-start(x), {GROUP}\n  ROOT r = f32[16,8] all-gather-done(s)",
        gathered,
    ),
    "all-reduce-start": (
        f"{X}  s = f32[4,8] all-reduce-start(x), channel_id=1, replica_groups={{{{0,1,2,3}}}}, "
        "use_global_device_ids=true, to_apply=add\n  ROOT r = f32[4,8] all-reduce-done(s)",
        summed,
    ),
    "permute-start": (
        f"{X}  s = (f32[4,8], f32[4,8], u32[], u32[]) collective-permute-start(x), channel_id=1, "
        f"source_target_pairs={LEFT}\n  n = f32[4,8] negate(x)\n"
        "  ROOT r = f32[4,8] collective-permute-done(s), control-predecessors={n}",
        shifted,
    ),
    "two permutes in one": (
        f"{X}  n = f32[4,8] negate(x)\n"
        "  s = ((f32[4,8], f32[4,8]), (f32[4,8], f32[4,8]), u32[], u32[]) collective-permute-start(x, n), "
        f"channel_id=1, source_target_pairs={LEFT}\n"
        "  d = (f32[4,8], f32[4,8]) collective-permute-done(s)\n"
        "  a = f32[4,8] get-tuple-element(d), index=0\n  b = f32[4,8] get-tuple-element(d), index=1\n"
        "  ROOT r = f32[4,8] subtract(a, b)",
        lambda inputs: [2 * d for d in shifted(inputs)],
    ),
    "async-start": (
        f"{X}  s = ((f32[4,8]), f32[1,8], u32[]) async-start(x), calls=scatter\n"
        "  u = ((f32[4,8]), f32[1,8], u32[]) async-update(s)\n  ROOT r = f32[1,8] async-done(u)",
        scattered,
    ),
    "copy-start": (
        f"{X}  s = (f32[4,8]{{1,0:S(1)}}, f32[4,8], u32[]) copy-start(x)\n  ROOT r = f32[4,8] copy-done(s)",
        same,
    ),
    "nested fusions": (
        f"{X}  ROOT r = f32[4,8] fusion(x), kind=kOutput, calls=outer",
        lambda inputs: [-d[0] * d[0] for d in inputs],
    ),
    "fusion with two results": (
        f"{X}  f = (f32[4,8], f32[4,8]) fusion(x), kind=kLoop, calls=pair\n"
        "  a = f32[4,8] get-tuple-element(f), index=0\n  b = f32[4,8] get-tuple-element(f), index=1\n"
        "  ROOT r = f32[4,8] subtract(a, b)",
        lambda inputs: [-d[0] + d[0] * d[0] for d in inputs],
    ),
    "custom fusion with a dot": (
        f"{X}  ROOT r = f32[4,4] fusion(x), kind=kCustom, calls=einsum",
        lambda inputs: [-d[0] @ d[0].T for d in inputs],
    ),
    "bitcast that reshapes": (
        f"{X}  ROOT r = f32[32]{{0}} bitcast(x)",
        lambda inputs: [d[0].reshape(32) for d in inputs],
    ),
    "bitcast that transposes": (
        "  x = f32[4,8]{0,1} parameter(0)\n  ROOT r = f32[8,4]{1,0} bitcast(x)",
        lambda inputs: [d[0].T for d in inputs],
    ),
    "bitcast of tiles": (
        "  x = f32[4,8]{1,0:T(2,4)} parameter(0)\n  ROOT r = f32[2,2,2,4]{3,2,1,0} bitcast(x)",
        lambda inputs: [d[0].reshape(2, 2, 2, 4).transpose(0, 2, 1, 3) for d in inputs],
    ),
    "bitcast to bits": (
        f"{X}  b = s32[4,8] bitcast(x)\n  ROOT r = f32[4,8] bitcast(b)",
        same,
    ),
    "layouts and memory spaces": (
        "  x = f32[4,8]{0,1:T(8,128)S(1)} parameter(0)\n  c = f32[4,8]{1,0} copy(x)\n"
        "  ROOT r = f32[8,4]{0,1} transpose(c), dimensions={1,0}",
        lambda inputs: [d[0].T for d in inputs],
    ),
    "copy to another type": (
        f"{X}  b = bf16[4,8] convert(x)\n  ROOT r = f32[4,8] copy(b)",
        lambda inputs: [d[0].astype(ml_dtypes.bfloat16).astype(np.float32) for d in inputs],
    ),
    "constant in another layout": (
        "  x = s32[2,3] parameter(0)\n  c = s32[2,3]{0,1} constant({{1,2,3},{4,5,6}})\n  ROOT r = s32[2,3] add(x, c)",
        lambda inputs: [d[0] + np.array([[1, 2, 3], [4, 5, 6]]) for d in inputs],
    ),
    "combined all-reduce of bf16": (
        "  x = bf16[4,8] parameter(0)\n  n = bf16[4,8] negate(x)\n"
        "  s = (bf16[4,8], bf16[4,8]) all-reduce(x, n), channel_id=1, replica_groups={{0,1,2,3}}, "
        "use_global_device_ids=true, to_apply=addb\n  a = bf16[4,8] get-tuple-element(s), index=0\n"
        "  b = bf16[4,8] get-tuple-element(s), index=1\n  ROOT r = bf16[4,8] add(a, b)",
        lambda inputs: [0 * d[0] for d in inputs],
    ),
    "mesh-form groups of two meshes": (
        f"{X}  g = f32[8,8] all-gather(x), channel_id=1, replica_groups=mesh['a'=2,'b'=2] {{'b'}}, dimensions={{0}}, "
        "use_global_device_ids=true\n"
        "  h = f32[16,8] all-gather(g), channel_id=2, replica_groups=mesh['b'=2,'a'=2] {'b'}, dimensions={0}, "
        "use_global_device_ids=true\n  ROOT r = f32[16,8] negate(h)",
        lambda inputs: [
            -np.concatenate([inputs[e // 2 * 2 + k][0] for e in (d % 2, d % 2 + 2) for k in (0, 1)]) for d in range(4)
        ],
    ),
    "transposed iota groups": (
        f"{X}  ROOT g = f32[8,8] all-gather(x), channel_id=1, replica_groups=[2,2]<=[2,2]T(1,0), dimensions={{0}}, "
        "use_global_device_ids=true",
        lambda inputs: [np.concatenate([inputs[d % 2][0], inputs[d % 2 + 2][0]]) for d in range(4)],
    ),
    "partition-id": (
        f"{X}  i = u32[] partition-id()\n  z = u32[] constant(0)\n"
        "  ROOT r = f32[1,8] dynamic-slice(x, i, z), dynamic_slice_sizes={1,8}",
        lambda inputs: [inputs[d][0][d : d + 1] for d in range(4)],
    ),
    "permute to some": (
        f"{X}  ROOT r = f32[4,8] collective-permute(x), channel_id=1, source_target_pairs={{{{0,1}},{{3,2}}}}",
        lambda inputs: [inputs[{1: 0, 2: 3}[d]][0] if d in (1, 2) else 0 * inputs[0][0] for d in range(4)],
    ),
    "tuple parameter": (
        "  p = (f32[8], f32[8]) parameter(0)\n  a = f32[8] get-tuple-element(p), index=0\n"
        "  b = f32[8] get-tuple-element(p), index=1\n  ROOT r = f32[8] subtract(a, b)",
        lambda inputs: [d[0] - d[1] for d in inputs],
    ),
    "what TPU compilers allocate and concatenate": (
        f'{X}  a = f32[4,8] custom-call(), custom_call_target="AllocateBuffer"\n  z = s32[] constant(0)\n'
        "  u = f32[4,8] dynamic-update-slice(a, x, z, z)\n"
        '  ROOT r = f32[8,8] custom-call(u, x), custom_call_target="ConcatBitcast"',
        lambda inputs: [np.concatenate([d[0], d[0]]) for d in inputs],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results(name: str) -> None:
    body, expected = CASES[name]
    bf16 = "addb {\n  a = bf16[] parameter(0)\n  b = bf16[] parameter(1)\n  ROOT s = bf16[] add(a, b)\n}\n"
    inputs, results = run_text(program(body, COMPUTATIONS + bf16))
    devices = by_device(inputs)
    for found, wanted in zip(results[0], expected(devices), strict=True):
        assert close(found, wanted)


@pytest.mark.parametrize(
    "header",
    [
        "num_partitions=4, input_output_alias={ {}: (0, {}, may-alias) }",
        "num_partitions=4, buffer_donor={ (0, {}) }",
        "num_partitions=4, is_scheduled=true",
        'num_partitions=4, frontend_attributes={xla.sdy.meshes="{mesh = #sdy.mesh<[\\"x\\"=4]>}"}',
    ],
)
def test_what_does_not_change_numbers_is_dropped(header: str) -> None:
    inputs, results = run_text(program(f"{X}  ROOT r = f32[4,8] negate(x)", header=header))
    for found, wanted in zip(results[0], negated(by_device(inputs)), strict=True):
        assert close(found, wanted)


@pytest.mark.parametrize(
    ("header", "operation"),
    [
        ("replica_count=4", "all-reduce(x), replica_groups={{0,1,2,3}}, to_apply=add"),
        ("replica_count=2, num_partitions=2", "all-reduce(x), replica_groups={}, to_apply=add"),
        (
            "replica_count=2, num_partitions=2",
            "all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add",
        ),
    ],
)
def test_replicas(header: str, operation: str) -> None:
    inputs, results = run_text(program(f"{X}  ROOT r = f32[4,8] {operation}", header=header))
    devices = by_device(inputs)
    groups = [(0, 2), (1, 3)] if "replica_groups={}," in operation else [(0, 1, 2, 3)]
    for group in groups:
        total = np.sum([devices[d][0] for d in group], axis=0)
        for d in group:
            assert close(results[0][d], total)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (
            f'{X}  ROOT r = f32[4,8] custom-call(x), custom_call_target="tpu_custom_call"',
            'custom-call "tpu_custom_call"',
        ),
        (
            "  x = f32[8] parameter(0)\n  t = token[] after-all()\n"
            "  s = (f32[8], u32[], token[]) send(x, t), channel_id=1\n  d = token[] send-done(s), channel_id=1\n"
            "  v = (f32[8], u32[], token[]) recv(t), channel_id=2\n  e = (f32[8], token[]) recv-done(v), channel_id=2\n"
            "  ROOT r = f32[8] get-tuple-element(e), index=0",
            "send, send-done, recv, recv-done",
        ),
        ("  x = f32[<=8] parameter(0)\n  ROOT r = f32[<=8] negate(x)", r"dynamic shapes (f32[<=8]) (×2)"),
        (
            "  z = f32[] constant(0)\n  o = f32[] constant(1)\n  ROOT r = f32[8] rng(z, o), distribution=rng_uniform",
            "rng",
        ),
    ],
)
def test_what_cannot_run_is_named(body: str, named: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        legalize(read_here(program(body).encode()))
    assert str(caught.value) == f"m cannot run on CPU devices: it uses {named}"


def test_the_module_itself_is_left_alone() -> None:
    module = read_here(program(CASES["async-start"][0], COMPUTATIONS).encode())
    before = module.proto.SerializeToString(deterministic=True)
    legalize(module)
    assert module.proto.SerializeToString(deterministic=True) == before
