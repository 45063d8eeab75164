"""What other work hides of a ring, and of a collective that stays whole: as much as there is, shared by all."""

from __future__ import annotations

import pytest

from engine.ir.flow import Flow
from engine.ir.module import Module
from engine.passes.candidate import GateTerms
from engine.passes.decompose.find.collectives import collectives_of
from engine.passes.decompose.gate.surroundings import Beside, beside
from engine.session.evaluation import Evaluator
from engine.session.plan import MachineSpec, Plan, whole_plan
from tests.engine.passes.decompose.texts import ALL, module, planned, verdicts

MATMUL = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
SECOND = ALL.replace("channel_id=1", "channel_id=2")
IDLE = "  m = f32[4096,4096] parameter(2)\n"
BUSY = IDLE + f"  n = f32[4096,4096] dot(m, m), {MATMUL}\n  o = f32[4096,4096] dot(n, m), {MATMUL}\n"


def gather(around: str, result: str = "m", sync: str = "") -> Module:
    """A gather and its einsum, beside what there is around it."""
    return module(f"""
  x = f32[1024,4096] parameter(0)
  v = f32[4096,4096] parameter(1)
{around}  g = f32[4096,4096] all-gather(x), dimensions={{0}}, {ALL}
{sync}  y = f32[4096,4096] dot(g, v), {MATMUL}
  ROOT out = (f32[4096,4096], f32[4096,4096]) tuple(y, {result})
""")


def scatter(around: str, result: str = "m") -> Module:
    """An einsum and its scatter, beside what there is around it."""
    return module(f"""
  x = f32[4096,4096] parameter(0)
  v = f32[4096,4096] parameter(1)
{around}  y = f32[4096,4096] dot(x, v), {MATMUL}
  r = f32[1024,4096] reduce-scatter(y), dimensions={{0}}, to_apply=add, {SECOND}
  ROOT out = (f32[1024,4096], f32[4096,4096]) tuple(r, {result})
""")


def gate(of: Module, name: str, chip: str = "tpu-v4") -> GateTerms:
    terms = verdicts(planned(of, chip, gate=False))[name].gate
    assert terms is not None
    return terms


def found(of: Module, comm: int, comp: int) -> dict[str, Beside]:
    """What there is beside each collective where each takes `comm`, each einsum `comp`."""
    flow = Flow(of)
    collectives = tuple(collectives_of(flow))
    work = {id_: comp for id_, opcode in flow.opcodes.items() if opcode == "dot"}
    ways = {c.id: "all" for c in collectives}
    return {flow.name(k): v for k, v in beside(flow, collectives, lambda c: comm, work, ways).items()}


def test_only_what_neither_needs_nor_is_needed_hides_a_transfer() -> None:
    assert found(gather(IDLE), 100, 60)["g"].time == 0
    assert found(gather(BUSY, "o"), 100, 60)["g"].time == 120
    after = gather(BUSY, "o", f"  p = f32[4096,4096] dot(g, o), {MATMUL}\n")
    assert found(after, 100, 60)["g"].time == 120  # p needs the gather


def test_transfers_share_what_hides_them() -> None:
    second = "  w = f32[1024,4096] parameter(3)\n  h = f32[4096,4096] all-gather(w), dimensions={0}, " + SECOND + "\n"
    one = found(gather(BUSY, "o"), 100, 60)["g"]
    two = found(gather(BUSY + second, "o"), 100, 60)
    assert (one.time, one.wanted) == (120, 0.0)
    # The other may wait for the einsum of this one, too.
    assert two["g"].time == 60
    assert two["h"].time == 60 + 60
    assert two["g"].wanted == two["h"].wanted == pytest.approx(1 - 160 / 200)
    assert two["g"].hides(100) == round(60 * 0.8)
    assert one.hides(100) == 100


def test_a_site_by_itself_is_weighed_as_published() -> None:
    for of, name in ((gather(IDLE), "g"), (scatter(IDLE), "r")):
        terms = gate(of, name)
        assert terms.beside == 0
        assert terms.gain == terms.comp + terms.comm - max(terms.comp, terms.ring) - terms.extra


def test_what_is_hidden_whole_need_not_be_decomposed() -> None:
    """A gather that the compiler makes asynchronous; one that blocks has more to gain where its ring can hide."""
    idle, busy = (gate(of, "g") for of in (gather(IDLE), gather(BUSY, "o")))
    assert busy.beside < 0
    assert busy.gain < idle.gain
    idle, busy = (gate(of, "r") for of in (scatter(IDLE), scatter(BUSY, "o")))
    assert busy.beside > 0
    assert busy.gain > idle.gain


def test_where_scatters_are_asynchronous_they_hide_whole_too() -> None:
    blocking, waiting = (gate(scatter(BUSY, "o"), "r", chip).beside for chip in ("tpu-v4", "tpu-v7x"))
    assert blocking > 0 >= waiting


def test_nothing_runs_beside_the_steps_of_a_loop() -> None:
    of = scatter(BUSY, "o")
    loop, line = (verdicts(planned(of, gate=False, form=form))["r"].gate for form in ("rolled", "unrolled"))
    assert loop is not None
    assert line is not None
    assert loop.beside < line.beside


@pytest.mark.parametrize("around", [(IDLE, "m"), (BUSY, "o")])
def test_the_gate_and_the_simulator_agree(around: tuple[str, str]) -> None:
    """To a third of the collective, over the module whole, asynchronous where the chip's compiler makes it so."""
    for of, name in ((gather(*around), "g"), (scatter(*around), "r")):
        at = Evaluator(of, MachineSpec("tpu-v4"))
        whole = at.evaluate(whole_plan(of)).metrics.makespan
        plan = Plan(f"decompose{{force={name}}},async-permute{{kinds=supported}},fuse", "bottom-up")
        variant = at.evaluate(plan)
        (terms,) = (c.gate for c in variant.candidates)
        assert terms is not None
        gain = whole - variant.metrics.makespan
        assert terms.gain == pytest.approx(gain, abs=terms.comm / 3)
        assert (terms.gain > 0) == (gain > 0)


def test_blocking_collectives_hide_transfers_over_other_links_alone() -> None:
    rows = "channel_id=1, replica_groups=[2,2]<=[4], use_global_device_ids=true"
    columns = "channel_id=2, replica_groups=[2,2]<=[2,2]T(1,0), use_global_device_ids=true"
    text = f"""
  x = f32[2048,4096] parameter(0)
  v = f32[4096,4096] parameter(1)
  z = f32[4096,4096] parameter(2)
  g = f32[4096,4096] all-gather(x), dimensions={{0}}, {rows}
  y = f32[4096,4096] dot(g, v), {MATMUL}
  r = f32[4096,4096] all-reduce(z), to_apply=add, OTHER
  ROOT out = (f32[4096,4096], f32[4096,4096]) tuple(y, r)
"""
    same = gate(module(text.replace("OTHER", rows.replace("=1,", "=2,", 1))), "g").beside
    other = gate(module(text.replace("OTHER", columns)), "g").beside
    assert same == 0
    assert other < 0
