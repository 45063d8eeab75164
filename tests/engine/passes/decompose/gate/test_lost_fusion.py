"""What an einsum's fusion computed and a loop finds in memory: found on texts, and held to the simulator."""

from __future__ import annotations

import pytest

from engine.chips.library import load_chip
from engine.cost.compute import work_time
from engine.cost.work import Work
from engine.hlo.reading import read_here
from engine.ir.edit import Editor
from engine.ir.flow import Flow
from engine.ir.module import Module
from engine.passes.decompose.gate.lost_fusion import put_behind, written_out
from engine.passes.decompose.site import Case, EinsumUse
from engine.passes.fuse.clusters import MOST_MEMBERS
from engine.session.evaluation import Evaluator
from engine.session.plan import MachineSpec, Plan, plain_plan

WIDE, NARROW, OUT = "bf16[16384,14336]", "bf16[16384,4096]", "bf16[14336,4096]"


def scatter_of(left: str, right: str = "%c = bf16[16384,4096]{1,0} parameter(2)", *, also: str = "") -> Module:
    """An einsum whose result is scattered along the dimension of its right operand `c`; `left` makes `l`."""
    return read_here(
        f"""HloModule m, num_partitions=16
%add (x: bf16[], y: bf16[]) -> bf16[] {{
  %x = bf16[] parameter(0)
  %y = bf16[] parameter(1)
  ROOT %s = bf16[] add(%x, %y)
}}
ENTRY %main {{
  %a = {WIDE}{{1,0}} parameter(0)
  %b = {WIDE}{{1,0}} parameter(1)
  {right}
  {left}
  %dot = {OUT}{{1,0}} dot(%l, %c), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  %sum = {OUT}{{1,0}} all-reduce(%dot), channel_id=1, replica_groups=[1,16]<=[16], use_global_device_ids=true, to_apply=%add
  %id = u32[] partition-id()
  %number = s32[] convert(%id)
  %block = s32[] constant(256)
  %zero = s32[] constant(0)
  %at = s32[] multiply(%number, %block)
  %part = bf16[14336,256]{{1,0}} dynamic-slice(%sum, %zero, %at), dynamic_slice_sizes={{14336,256}}
  {also or "ROOT %out = (bf16[14336,256]{1,0}) tuple(%part)"}
}}
""".encode()  # noqa: E501  # one instruction a line, as HLO is printed
    )


PRODUCT = f"%l = {WIDE}{{1,0}} multiply(%a, %b)"
READ_TWICE = f"ROOT %out = (bf16[14336,256]{{1,0}}, {WIDE}{{1,0}}) tuple(%part, %NAME)"


def lost(module: Module) -> list[Work]:
    """What the loop of the scatter finds in memory: its right operand is sliced, its left one is not."""
    use = EinsumUse(module.by_name["dot"].id, Case.SCATTER, 1, 1, None, 1)
    return [work for _, work in written_out(Flow(module), Editor(module), use, {0: None, 1: 1})]


def test_of_a_long_chain_no_more_is_lost_than_one_fusion_computes() -> None:
    """As far back as the einsum's own fusion reaches; what comes before it is in memory anyway."""
    length = 2 * MOST_MEMBERS
    chain = [f"%t0 = {WIDE}{{1,0}} tanh(%a)", *(f"%t{k} = {WIDE}{{1,0}} tanh(%t{k - 1})" for k in range(1, length))]
    (work,) = lost(scatter_of("\n".join([*chain, f"%l = {WIDE}{{1,0}} tanh(%t{length - 1})"])))
    assert work.vector == MOST_MEMBERS * 16384 * 14336


@pytest.mark.parametrize(("left", "arrays"), [(PRODUCT, 3), (f"%l = {WIDE}{{1,0}} exponential(%a)", 2)])
def test_what_is_computed_on_the_way_into_the_einsum_is_written_out(left: str, arrays: int) -> None:
    (kernel,) = lost(scatter_of(left))
    elements = 16384 * 14336
    assert kernel.hbm == arrays * elements * 2
    assert kernel.vector == elements


@pytest.mark.parametrize(
    ("left", "also"),
    [
        (f"%l = {WIDE}{{1,0}} copy(%a)", ""),
        (f"%p = {WIDE}{{1,0}} multiply(%a, %b)\n  %l = {WIDE}{{1,0}} copy(%p)", READ_TWICE.replace("NAME", "p")),
    ],
)
def test_a_copy_is_done_in_every_reader(left: str, also: str) -> None:
    (kernel,) = lost(scatter_of(left, also=also))
    assert kernel.hbm == 2 * 16384 * 14336 * 2
    assert kernel.vector == 0


@pytest.mark.parametrize(
    ("left", "also"),
    [
        (f"%l = {WIDE}{{1,0}} bitcast(%a)", ""),  # nothing to do
        (PRODUCT, READ_TWICE.replace("NAME", "l")),  # in memory anyway
        (f"%l = {WIDE}{{1,0}} copy(%a)", READ_TWICE.replace("NAME", "l")),
    ],
)
def test_what_comes_from_memory_as_loaded_is_not_lost(left: str, also: str) -> None:
    assert lost(scatter_of(left, also=also)) == []


def test_a_slice_reads_what_it_keeps() -> None:
    left = f"%f = bf16[65536,14336]{{1,0}} parameter(3)\n  %l = {WIDE}{{1,0}} slice(%f), slice={{[0:16384], [0:14336]}}"
    (kernel,) = lost(scatter_of(left))
    assert kernel.hbm == 2 * 16384 * 14336 * 2


def test_what_sinks_into_the_loop_is_not_lost() -> None:
    right = f"%d = {NARROW}{{1,0}} parameter(2)\n  %c = {NARROW}{{1,0}} multiply(%d, %d)"
    assert lost(scatter_of(f"%l = {WIDE}{{1,0}} bitcast(%a)", right)) == []


@pytest.mark.parametrize("left", [PRODUCT, f"%l = {WIDE}{{1,0}} copy(%a)"])
def test_the_gate_and_the_simulator_agree_on_what_is_lost(left: str) -> None:
    """A loop that would gain on a line of chips, where a scatter takes long, were it not for an operand that has to be
    written out."""
    line = MachineSpec(topology="1x1x16")
    plain = Evaluator(scatter_of(f"%l = {WIDE}{{1,0}} bitcast(%a)"), line)
    lossy = Evaluator(scatter_of(left), line)
    gains, predicted = [], []
    for evaluator in (plain, lossy):
        base = evaluator.evaluate(plain_plan(evaluator.module)).metrics.makespan
        forced = evaluator.evaluate(Plan("decompose{force=sum,form=rolled},async-permute,fuse", "bottom-up"))
        (gate,) = (c.gate for c in forced.candidates)
        assert gate is not None
        predicted.append(gate.gain)
        gains.append(base - forced.metrics.makespan)
    assert gains[0] > 0 > gains[1]
    assert predicted == pytest.approx(gains, abs=2_000_000)  # of 9 ms: one launch or two
    assert predicted[0] - predicted[1] <= sum(work_time(w, load_chip("tpu-v4")) for w in lost(lossy.module))
    assert predicted[0] - predicted[1] == pytest.approx(gains[0] - gains[1], rel=0.1)


GATHER = """HloModule m, num_partitions=4
ENTRY %main {
  %a = bf16[256,128]{1,0} parameter(0)
  %w = bf16[128,512]{1,0} parameter(1)
  %g = bf16[1024,128]{1,0} all-gather(%a), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, use_global_device_ids=true
  %dot = bf16[1024,512]{1,0} dot(%g, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  OTHER
  ROOT %out = bf16[1024,512]{1,0} FOLLOWS
}
"""  # noqa: E501  # one instruction a line, as HLO is printed


@pytest.mark.parametrize(
    ("other", "follows", "moved"),
    [
        ("", "exponential(%dot)", 0),  # follows into the loop
        (
            "%e = bf16[1024,512]{1,0} dot(%g, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "add(%dot, %e)",
            0,
        ),
        ("%e = bf16[1024,512]{1,0} all-reduce(%h), to_apply=%add", "add(%dot, %e)", 3 * 1024 * 512 * 2),
    ],
)
def test_what_follows_a_gathers_einsum(other: str, follows: str, moved: int) -> None:
    reducer = "%add (x: bf16[], y: bf16[]) -> bf16[] {\n %x = bf16[] parameter(0)\n %y = bf16[] parameter(1)\n"
    reducer += " ROOT %s = bf16[] add(%x, %y)\n}\n"
    before = "%v = bf16[128,512]{1,0} parameter(2)\n"
    before += " %h = bf16[1024,512]{1,0} dot(%g, %v), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n "
    text = GATHER.replace("ENTRY", reducer + "ENTRY").replace("OTHER", before + other).replace("FOLLOWS", follows)
    module = read_here(text.encode())
    use = EinsumUse(module.by_name["dot"].id, Case.NON_CONTRACTING, 0, 0, None, 0)
    behind = put_behind(Flow(module), Editor(module), use)
    assert (behind.hbm if behind is not None else 0) == moved
