"""Production compilers without a device. Most of what needs libtpu is part of `make test-all`, which installs it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import worker
from engine.chips.library import chips
from engine.errors import UnsupportedError, UsageError, WorkerError
from engine.execute.compiling import (
    DECOMPOSED_LATE,
    WITHOUT_DECOMPOSITION,
    Unpredicted,
    compile_module,
)
from engine.execute.pinning import Pin, force
from engine.execute.stopping import Stop
from engine.execute.targets import CUDA, TPU, Target, check_installed
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.hlo.reading import read_here
from engine.ir.graphs import graph_of
from engine.ir.module import Module
from engine.session.plan import Plan
from engine.session.production import Production, link_load, produce
from tests.extras import needs_libtpu
from tests.small import SMALL

V4 = Target.parse("tpu:v4:2x2x2")
DATA = Path(__file__).parent.parent.parent / "data"


def small() -> Module:
    return read_here(SMALL.encode())


def pinnable() -> HloModuleProto:
    text = """
HloModule m, is_scheduled=true

ENTRY e {
  p = f32[4] parameter(0)
  a = f32[4] negate(p)
  b = f32[4] exponential(p)
  ROOT c = f32[4] add(a, b)
}
"""
    return read_here(text.encode()).proto


def names(proto: HloModuleProto) -> list[str]:
    return [i.name for i in proto.computations[-1].instructions]


@pytest.mark.parametrize("text", ["tpu:v4:2x2x2", "tpu:v5e:2x4", "tpu:v5p:4x4x4", "cuda:h100:1x1x8"])
def test_targets_round_trip(text: str) -> None:
    assert str(Target.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tpu", "a target is written tpu:v4:2x2x2"),
        ("gpu:h100:1x1x8", "a target is written"),
        ("tpu:v9:2x2", "for tpu there are v2, v3, v4"),
        ("tpu:v4:2x2", "tpu:v4 has 3 dimensions, such as 2x2x2"),
        ("tpu:v4:2x0x2", "tpu:v4 has 3 dimensions"),
        ("cuda:h100:8", "cuda:h100 has 3 dimensions"),
    ],
)
def test_other_targets_are_refused(text: str, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        Target.parse(text)


def test_what_a_target_is() -> None:
    assert (V4.devices, V4.topology, V4.wraps) == (8, "2x2x2", False)
    assert Target.parse("tpu:v4:4x4x8").wraps
    assert not Target.parse("tpu:v4:4x4x2").wraps
    assert Target.parse("tpu:v3:2x2").devices == 8
    gpus = Target.parse("cuda:h100:2x1x8")
    assert (gpus.devices, gpus.topology) == (16, "2x8")
    assert {g.chip for g in (*TPU.values(), *CUDA.values())} <= set(chips())


def test_a_missing_compiler_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match=r"pip install 'lapstrake\[tpu\]'"):
        check_installed(V4)
    with pytest.raises(UnsupportedError, match=r"pip install 'lapstrake\[cuda\]'"):
        check_installed(Target.parse("cuda:h100:1x1x8"))
    with pytest.raises(UnsupportedError, match="libtpu"):
        compile_module(small(), V4)
    with pytest.raises(UnsupportedError, match="libtpu"):
        produce(Production(small(), V4), Plan("decompose"))


def test_the_module_must_be_partitioned_for_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.execute.compiling.check_installed", lambda target: None)
    with pytest.raises(UsageError, match=r"small is partitioned for 8 devices, but tpu:v4:2x2x1 has 4"):
        compile_module(small(), Target.parse("tpu:v4:2x2x1"))


def test_forcing_chains_instructions_in_the_order_wanted() -> None:
    proto = pinnable()
    force(proto, proto.computations[-1], ["b", "p", "a", "c"])
    assert names(proto) == ["p", "b", "a", "c"]
    by_name = {i.name: i for i in proto.computations[-1].instructions}
    assert not by_name["b"].control_predecessor_ids
    assert list(by_name["a"].control_predecessor_ids) == [by_name["b"].id]
    assert list(by_name["c"].control_predecessor_ids) == [by_name["a"].id]
    written = proto.schedule.sequences[proto.computations[-1].id].instruction_ids
    assert list(written) == [by_name[name].id for name in ("p", "b", "a", "c")]


def test_what_takes_no_time_is_not_chained() -> None:
    """The compiler takes elements of tuples away after scheduling; a dependency on one could close a cycle then."""
    text = """
HloModule m, is_scheduled=true

ENTRY e {
  p = (f32[4], f32[4]) parameter(0)
  x = f32[4] get-tuple-element(p), index=0
  y = f32[4] get-tuple-element(p), index=1
  a = f32[4] negate(x)
  b = f32[4] exponential(y)
  ROOT t = (f32[4], f32[4]) tuple(a, b)
}
"""
    proto = read_here(text.encode()).proto
    force(proto, proto.computations[-1], ["p", "y", "b", "x", "a", "t"])
    assert names(proto) == ["p", "y", "b", "x", "a", "t"]
    by_name = {i.name: i for i in proto.computations[-1].instructions}
    assert list(by_name["a"].control_predecessor_ids) == [by_name["b"].id]
    assert not any(by_name[name].control_predecessor_ids for name in ("x", "y", "b", "t"))


def test_a_stop_ends_only_what_is_to_end() -> None:
    stop = Stop()
    stop(b"a module")
    stop.wanted = True
    with pytest.raises(RuntimeError, match=Stop.SAID):
        stop(b"a module")


def test_an_order_of_other_instructions_is_refused() -> None:
    proto = pinnable()
    with pytest.raises(UnsupportedError, match="z is only in one of them"):
        force(proto, proto.computations[-1], ["p", "a", "b", "c", "z"])
    pin = Pin()
    pin.ask({"e": ["p", "a", "b", "c", "z"]})
    assert pin(pinnable().SerializeToString()) is None
    assert "z is only in one of them" in str(pin.refused)


def test_a_pin_leaves_other_modules_alone() -> None:
    pin = Pin()
    assert pin(pinnable().SerializeToString()) is None
    pin.ask({"another": ["p"]})
    assert pin(pinnable().SerializeToString()) is None
    pin.ask({"e": ["p", "b", "a", "c"]})
    changed = pin(pinnable().SerializeToString())
    assert changed is not None
    assert names(HloModuleProto.FromString(changed)) == ["p", "b", "a", "c"]
    assert pin.pinned == ["e"]


@pytest.mark.parametrize(("groups", "mesh"), [(1, "x=8"), (2, "x=2,y=4")])
def test_rings_on_neighbouring_chips_load_each_link_once(groups: int, mesh: str) -> None:
    """One ring both ways through a cube, or one on each of two of its sides."""
    size = 8 // groups
    forth = ",".join(f"{{{d},{d // size * size + (d + 1) % size}}}" for d in range(8))
    back = ",".join(f"{{{d},{d // size * size + (d - 1) % size}}}" for d in range(8))
    start = "(f32[8], f32[8], u32[], u32[]) collective-permute-start"
    text = f"""
HloModule m, num_partitions=8

ENTRY e {{
  p = f32[8] parameter(0)
  first = {start}(p), channel_id=1, source_target_pairs={{{forth}}}
  second = {start}(p), channel_id=2, source_target_pairs={{{back}}}
  a = f32[8] collective-permute-done(first)
  b = f32[8] collective-permute-done(second)
  ROOT t = (f32[8], f32[8]) tuple(a, b)
}}
"""
    module = read_here(text.encode())
    graph = graph_of(module, module.proto.entry_computation_id)
    order = np.array([graph.names.index(name) for name in ("p", "first", "second", "a", "b", "t")], np.int64)
    assert link_load(module, graph, order, Production(module, V4, mesh).machine) == 1.0
    if groups == 1:
        assert link_load(module, graph, order, Production(module, V4, f"{mesh};order=natural").machine) > 1.0


@needs_libtpu
@pytest.mark.full
def test_the_compiler_predicts_what_its_options_make() -> None:
    whole = compile_module(small(), V4, options=WITHOUT_DECOMPOSITION)
    entry = whole.predicted().schedule.computations[-1]
    assert "all-gather-start" in entry.opcodes
    assert entry.total_cycles > 0
    assert whole.versions["libtpu"]
    with pytest.raises(Unpredicted, match="nothing in the module is asynchronous"):
        compile_module(small(), V4).predicted()
    decomposed = compile_module(_mega(), V4, options=DECOMPOSED_LATE)
    assert "collective-permute-start" in decomposed.text
    stopped = compile_module(_mega(), V4, options=DECOMPOSED_LATE, scheduled_only=True)
    assert not stopped.text
    computations = zip(
        stopped.predicted().schedule.computations, decomposed.predicted().schedule.computations, strict=True
    )
    assert all((a.names, a.total_cycles) == (b.names, b.total_cycles) for a, b in computations)


@needs_libtpu
@pytest.mark.full
def test_what_the_compiler_refuses_is_quoted() -> None:
    with pytest.raises(WorkerError, match="No such compile option"):
        compile_module(small(), V4, options={"xla_tpu_no_such_option": True})


def test_an_abort_of_the_compiler_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which options and modules a compiler aborts on differs from version to version."""
    call = worker.call

    def aborting(_: str, *given: object, **more: Any) -> object:
        del given
        return call("tests.engine.worker.jobs:abort", "F0000 00:00:1.5 7 a.cc:12] Check failed: !compact\n", **more)

    monkeypatch.setattr("engine.worker.call", aborting)
    monkeypatch.setattr("engine.execute.compiling.check_installed", lambda target: None)
    with pytest.raises(WorkerError, match=r"the compiler for tpu:v4:2x2x2 aborted on small: .*SIGABRT: Check failed"):
        compile_module(small(), V4)


@needs_libtpu
@pytest.mark.full
def test_an_order_that_was_pinned_is_kept() -> None:
    production = Production(small(), V4)
    plan = Plan("decompose{gate=off},async-permute", "bottom-up")
    found, missing = produce(production, plan)
    assert [p.variant.name for p in found] == [
        "TPU compiler, without decomposition",
        "TPU compiler, decomposing after partitioning",
        "ours, compiled by it",
        "ours, our order pinned",
    ]
    assert any("TPU compiler, default" in text for text in missing)
    pinned = found[-1]
    assert pinned.counts
    assert pinned.compiled.pinned
    assert pinned.cycles > 0
    assert pinned.link_load >= 1.0


def _mega() -> Module:
    path = DATA / "partitioned" / "mlp_mega.hlo"
    return read_here(path.read_bytes(), str(path))
