"""What surrounds an einsum in real modules: paths, shared and rebuilt gathers, padding, position maps, loops, types.

Each program is written as text; the finder says where its sites are; original and decomposed run on the same inputs.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from engine.ir import shapes
from engine.ir.edit import Editor
from engine.passes.decompose.emit.emit import emit, why_not
from engine.passes.decompose.rings.variants import Variant
from engine.passes.decompose.site import Case, EinsumUse, Groups, Mode, ScatterSite
from tests.engine.passes.decompose.cases import variants
from tests.engine.passes.decompose.programs import (
    ADD,
    DOT,
    EVERYBODY,
    PAIRS,
    inputs_of,
    module,
    opcodes,
    same_results,
    sites,
)
from tests.engine.passes.decompose.running import reloaded, run

STRAIGHT = [Variant(), Variant(ring="both")]
SOME = [Variant(ring="both"), Variant("rolled", 2), Variant(unroll=2, chains="halves")]


def test_paths_are_redone_on_blocks() -> None:
    """Convert, scale by a broadcast scalar, transpose, reshape and broadcast between gather and einsum."""
    program = module(f"""
  x = bf16[2,6] parameter(0)
  w = f32[3,5] parameter(1)
  scale = f32[] parameter(2)
  g = bf16[8,6] all-gather(x), {EVERYBODY}, dimensions={{0}}
  c = f32[8,6] convert(g)
  scales = f32[8,6] broadcast(scale), dimensions={{}}
  m = f32[8,6] multiply(scales, c)
  t = f32[6,8] transpose(m), dimensions={{1,0}}
  r = f32[2,3,8] reshape(t)
  k = f32[2,3,8] copy(r)
  ROOT d = f32[2,8,5] dot(k, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
""")
    for after in same_results(program, SOME, expect=1):
        permuted = [i.shape for i in after.instructions.values() if i.opcode == "collective-permute"]
        assert {shapes.text(s) for s in permuted} == {"bf16[2,6]"}


def test_a_bitcast_that_only_renames_dimensions_becomes_a_reshape() -> None:
    program = module(f"""
  x = f32[2,6] parameter(0)
  w = f32[6,5] parameter(1)
  g = f32[8,6] all-gather(x), {EVERYBODY}, dimensions={{0}}
  b = f32[4,2,6] bitcast(g)
  ROOT d = f32[4,2,5] dot(b, w), lhs_contracting_dims={{2}}, rhs_contracting_dims={{0}}
""")
    editor = Editor(program)
    emit(editor, next(sites(program)), Variant("rolled"))
    after = reloaded(editor.finish())
    assert "bitcast" not in opcodes(after)
    assert {shapes.text(i.shape) for i in after.instructions.values() if i.opcode == "reshape"} == {"f32[1,2,6]"}
    inputs = inputs_of(program)
    whole = np.concatenate([device[0] for device in inputs]).reshape(4, 2, 6)
    for (outputs,), (_, w) in zip(run(after, inputs), inputs, strict=True):
        np.testing.assert_allclose(outputs, whole @ w, rtol=1e-5, atol=1e-5)


def test_paths_after_an_einsum() -> None:
    program = module(f"""
  x = f32[8,6] parameter(0)
  w = f32[6,4] parameter(1)
  d = f32[8,4] dot(x, w), {DOT}
  t = f32[4,8] transpose(d), dimensions={{1,0}}
  n = f32[4,8] negate(t)
  r = f32[2,2,8] reshape(n)
  ROOT s = f32[2,2,2] reduce-scatter(r), {EVERYBODY}, dimensions={{2}}, to_apply=add
""")
    same_results(program, [v for v in SOME if not v.halved], expect=1)
    reason = why_not(Editor(program), next(sites(program)), Variant(unroll=2, chains="halves"))
    assert reason is not None
    assert "t stands between" in reason


def test_halves_through_a_convert() -> None:
    program = module(
        f"""
  x = bf16[8,6] parameter(0)
  w = bf16[6,3] parameter(1)
  d = bf16[8,3] dot(x, w), {DOT}
  c = f32[8,3] convert(d)
  ROOT s = f32[2,3] reduce-scatter(c), {EVERYBODY}, dimensions={{0}}, to_apply=add
"""
    )
    same_results(program, SOME, expect=1, tolerance=2e-2)


def test_einsums_share_one_loop() -> None:
    """q, k and v read one gather, through one convert; two equal gathers are one."""
    program = module(f"""
  x = f32[2,6] parameter(0)
  a = f32[6,3] parameter(1)
  b = f32[5,6] parameter(2)
  c = f32[8,7] parameter(3)
  g = f32[8,6] all-gather(x), {EVERYBODY}, dimensions={{0}}
  h = f32[8,6] all-gather(x), {EVERYBODY.replace("=1,", "=2,")}, dimensions={{0}}
  n = f32[8,6] negate(g)
  q = f32[8,3] dot(n, a), {DOT}
  k = f32[5,8] dot(b, n), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  v = f32[6,7] dot(h, c), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  ROOT t = (f32[8,3], f32[5,8], f32[6,7]) tuple(q, k, v)
""")
    for after in same_results(program, SOME, expect=1):
        assert "all-gather" not in opcodes(after)
        negations = opcodes(after).count("negate")
        assert negations <= 8
        if after.entry.instructions and "while" not in opcodes(after):
            assert opcodes(after).count("collective-permute") == 3


def test_a_gather_that_others_read_is_put_together_again() -> None:
    program = module(
        f"""
  x = f32[2,6] parameter(0)
  w = f32[6,3] parameter(1)
  g = f32[8,6] all-gather(x), {EVERYBODY}, dimensions={{0}}
  d = f32[8,3] dot(g, w), {DOT}
  s = f32[6,8] sort(g), dimensions={{0}}, to_apply=less
  ROOT t = (f32[8,3], f32[8,6]) tuple(d, g)
""".replace("  s = f32[6,8] sort(g), dimensions={0}, to_apply=less\n", "")
    )
    for after in same_results(program, SOME, expect=1):
        assert "all-gather" not in opcodes(after)


@pytest.mark.parametrize(
    ("x", "w", "dims", "out"),
    [
        ("f32[3,6]", "f32[6,4]", (0, 1, 0), "f32[10,4]"),
        ("f32[6,3]", "f32[10,4]", (1, 1, 0), "f32[6,4]"),
    ],
)
def test_padded_gathers(x: str, w: str, dims: tuple[int, int, int], out: str) -> None:
    """Ten elements on four devices: three each, two of them padding that the einsum must not see."""
    at, lhs, rhs = dims
    whole, cut = ("f32[12,6]", "f32[10,6]") if at == 0 else ("f32[6,12]", "f32[6,10]")
    ranges = "[0:10], [0:6]" if at == 0 else "[0:6], [0:10]"
    program = module(f"""
  x = {x} parameter(0)
  w = {w} parameter(1)
  g = {whole} all-gather(x), {EVERYBODY}, dimensions={{{at}}}
  c = {cut} slice(g), slice={{{ranges}}}
  ROOT d = {out} dot(c, w), lhs_contracting_dims={{{lhs}}}, rhs_contracting_dims={{{rhs}}}
""")
    same_results(program, SOME, expect=1)


def test_padding_that_is_not_a_number_stays_out() -> None:
    program = module(f"""
  x = f32[6,3] parameter(0)
  w = f32[10,4] parameter(1)
  g = f32[6,12] all-gather(x), {EVERYBODY}, dimensions={{1}}
  c = f32[6,10] slice(g), slice={{[0:6], [0:10]}}
  ROOT d = f32[6,4] dot(c, w), {DOT}
""")
    inputs = inputs_of(program)
    inputs[3][0][:, 1:] = np.nan
    for variant in SOME:
        editor = Editor(program)
        site = next(sites(program))
        if why_not(editor, site, variant) is None:
            emit(editor, site, variant)
            for device in run(reloaded(editor.finish()), inputs):
                assert np.isfinite(device[0]).all()


def test_padded_batches() -> None:
    program = module(f"""
  x = f32[2,3,4] parameter(0)
  w = f32[7,4,5] parameter(1)
  g = f32[8,3,4] all-gather(x), {EVERYBODY}, dimensions={{0}}
  c = f32[7,3,4] slice(g), slice={{[0:7], [0:3], [0:4]}}
  ROOT d = f32[7,3,5] dot(c, w), lhs_batch_dims={{0}}, rhs_batch_dims={{0}},
    lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
""")
    same_results(program, SOME, expect=1)


def test_padded_scatters() -> None:
    program = module(f"""
  x = f32[10,6] parameter(0)
  w = f32[6,4] parameter(1)
  d = f32[10,4] dot(x, w), {DOT}
  zero = f32[] constant(0)
  p = f32[12,4] pad(d, zero), padding=0_2x0_0
  ROOT s = f32[3,4] reduce-scatter(p), {EVERYBODY}, dimensions={{0}}, to_apply=add
""")
    same_results(program, [v for v in SOME if not v.halved], expect=1)


SLICED = """
  starts = s32[4] constant({{{starts}}})
  id = u32[] partition-id()
  at = s32[1] dynamic-slice(starts, id), dynamic_slice_sizes={{1}}
  start = s32[] reshape(at)
  zero = s32[] constant(0)
"""


def test_all_reduce_with_reshape_and_slice() -> None:
    """The position map is no identity, and a reshape and a convert come before the slice."""
    starts = SLICED.format(starts="2,0,1,3")
    program = module(f"""
  x = f32[8,6] parameter(0)
  w = f32[6,3] parameter(1)
  d = f32[8,3] dot(x, w), {DOT}
  a = f32[8,3] all-reduce(d), {EVERYBODY}, to_apply=add
  r = f32[4,2,3] reshape(a)
  c = bf16[4,2,3] convert(r)
  {starts}
  ROOT s = bf16[1,2,3] dynamic-slice(c, start, zero, zero), dynamic_slice_sizes={{1,2,3}}
""")
    chosen = [v for v in variants() if not v.halved][::2]
    for after in same_results(program, chosen, expect=1, tolerance=1e-2):
        assert "all-reduce" not in opcodes(after)


def test_whole_all_reduce_between_einsums() -> None:
    program = module(f"""
  x = f32[8,6] parameter(0)
  w = f32[6,3] parameter(1)
  v = f32[3,5] parameter(2)
  d = f32[8,3] dot(x, w), {DOT}
  a = f32[8,3] all-reduce(d), {EVERYBODY}, to_apply=add
  e = f32[8,5] dot(a, v), {DOT}
  ROOT t = (f32[8,3], f32[8,5]) tuple(a, e)
""")
    for after in same_results(program, variants()[::3], expect=1):
        assert not {"all-reduce", "all-gather"} & set(opcodes(after))


def test_all_reduce_becomes_a_scatter_and_a_gather() -> None:
    """Whatever order the ring has, the shards are gathered by block."""
    program = module(f"""
  x = f32[8,6] parameter(0)
  w = f32[6,3] parameter(1)
  d = f32[8,3] dot(x, w), {DOT}
  ROOT a = f32[8,3] all-reduce(d), {EVERYBODY}, to_apply=add
""")
    dot, whole = (program.by_name[name].id for name in ("d", "a"))
    use = EinsumUse(dot, Case.SCATTER, 0, 0, None, 0)
    groups = Groups(((2, 0, 3, 1),), Mode.PARTITION)
    site = ScatterSite(program.entry.id, whole, whole, groups, (2, 0, 3, 1), 0, use, gathered=True)
    inputs = inputs_of(program)
    before = run(program, inputs)
    for variant in SOME:
        editor = Editor(program)
        emit(editor, site, variant)
        after = editor.finish()
        assert opcodes(after).count("all-gather") == 1
        for was, now in zip(before, run(reloaded(after), inputs), strict=True):
            np.testing.assert_allclose(now[0], was[0], rtol=1e-5, atol=1e-5)


def test_one_decomposition_feeds_another() -> None:
    """The shard that the second gather starts from is what the first scatter gives."""
    program = module(f"""
  x = f32[8,6] parameter(0)
  w = f32[6,3] parameter(1)
  v = f32[3,5] parameter(2)
  d = f32[8,3] dot(x, w), {DOT}
  s = f32[2,3] reduce-scatter(d), {EVERYBODY}, dimensions={{0}}, to_apply=add
  g = f32[8,3] all-gather(s), {EVERYBODY.replace("=1,", "=2,")}, dimensions={{0}}
  ROOT e = f32[8,5] dot(g, v), {DOT}
""")
    for after in same_results(program, SOME, expect=2):
        assert not {"reduce-scatter", "all-gather"} & set(opcodes(after))


def test_inside_a_loop_and_a_call() -> None:
    loop = f"""
body {{
  state = (s32[], f32[2,6], f32[6,6]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  x = f32[2,6] get-tuple-element(state), index=1
  w = f32[6,6] get-tuple-element(state), index=2
  g = f32[8,6] all-gather(x), {EVERYBODY}, dimensions={{0}}
  d = f32[8,6] dot(g, w), {DOT}
  h = f32[8,6] tanh(d)
  e = f32[8,6] dot(h, w), {DOT}
  y = f32[2,6] reduce-scatter(e), {EVERYBODY.replace("=1,", "=2,")}, dimensions={{0}}, to_apply=add
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT out = (s32[], f32[2,6], f32[6,6]) tuple(next, y, w)
}}

condition {{
  state.1 = (s32[], f32[2,6], f32[6,6]) parameter(0)
  i.1 = s32[] get-tuple-element(state.1), index=0
  limit = s32[] constant(3)
  ROOT less = pred[] compare(i.1, limit), direction=LT
}}

called {{
  start = (s32[], f32[2,6], f32[6,6]) parameter(0)
  ROOT loop = (s32[], f32[2,6], f32[6,6]) while(start), condition=condition, body=body
}}
"""
    program = module(
        """
  x0 = f32[2,6] parameter(0)
  w0 = f32[6,6] parameter(1)
  zero = s32[] constant(0)
  start0 = (s32[], f32[2,6], f32[6,6]) tuple(zero, x0, w0)
  done = (s32[], f32[2,6], f32[6,6]) call(start0), to_apply=called
  ROOT r = f32[2,6] get-tuple-element(done), index=1
""",
        ADD + loop,
    )
    for after in same_results(program, SOME, expect=2, tolerance=1e-5):
        assert not {"reduce-scatter", "all-gather"} & set(opcodes(after))


def test_branches() -> None:
    branch = "\n".join(
        f"""
branch{k} {{
  p{k} = (f32[2,6], f32[6,3]) parameter(0)
  x{k} = f32[2,6] get-tuple-element(p{k}), index=0
  w{k} = f32[6,3] get-tuple-element(p{k}), index=1
  g{k} = f32[8,6] all-gather(x{k}), {EVERYBODY.replace("=1,", f"={k + 1},")}, dimensions={{0}}
  {"n0 = f32[8,6] negate(g0)" if k == 0 else "n1 = f32[8,6] copy(g1)"}
  ROOT d{k} = f32[8,3] dot(n{k}, w{k}), {DOT}
}}
"""
        for k in (0, 1)
    )
    program = module(
        """
  x = f32[2,6] parameter(0)
  w = f32[6,3] parameter(1)
  given = (f32[2,6], f32[6,3]) tuple(x, w)
  which = s32[] constant(1)
  ROOT r = f32[8,3] conditional(which, given, given), branch_computations={branch0, branch1}
""",
        ADD + branch,
    )
    same_results(program, SOME, expect=2)


def test_replica_groups() -> None:
    """Cross-replica collectives: no channel, positions from replica-id, permutes without a channel."""
    program = module(
        f"""
  x = f32[2,6] parameter(0)
  w = f32[6,3] parameter(1)
  v = f32[3,4] parameter(2)
  g = f32[8,6] all-gather(x), replica_groups={{{{0,1,2,3}}}}, dimensions={{0}}
  d = f32[8,3] dot(g, w), {DOT}
  e = f32[8,4] dot(d, v), {DOT}
  ROOT s = f32[2,4] reduce-scatter(e), replica_groups={{{{3,1,0,2}}}}, dimensions={{0}}, to_apply=add
""",
        devices="replica_count=4",
    )
    for after in same_results(program, SOME, expect=2):
        permutes = [i for i in after.instructions.values() if i.opcode == "collective-permute"]
        assert not any(p.channel_id for p in permutes)
        assert "partition-id" not in opcodes(after)


def test_asynchronous_forms() -> None:
    program = module(
        f"""
  x = f32[2,6] parameter(0)
  w = f32[6,3] parameter(1)
  start = (f32[2,6], f32[8,6]) all-gather-start(x), {EVERYBODY}, dimensions={{0}}
  g = f32[8,6] all-gather-done(start)
  ROOT d = f32[8,3] dot(g, w), {DOT}
"""
    )
    for after in same_results(program, SOME, expect=1):
        assert not {"all-gather-start", "all-gather-done"} & set(opcodes(after))


def test_control_edges_move_to_the_loop() -> None:
    program = module(f"""
  x = f32[2,6] parameter(0)
  w = f32[6,3] parameter(1)
  before = f32[6,3] negate(w)
  g = f32[8,6] all-gather(x), {EVERYBODY}, dimensions={{0}}, control-predecessors={{before}}
  d = f32[8,3] dot(g, w), {DOT}
  after = f32[6,3] exponential(w), control-predecessors={{d}}
  ROOT t = (f32[8,3], f32[6,3], f32[6,3]) tuple(d, before, after)
""")
    for variant, after in zip(STRAIGHT, same_results(program, STRAIGHT, expect=1), strict=True):
        by_name = after.by_name
        before, last = by_name["before"].id, by_name["after"]
        permutes = [i for i in after.instructions.values() if i.opcode == "collective-permute"]
        assert all(before in p.control_predecessor_ids for p in permutes), variant
        (waits_for,) = last.control_predecessor_ids
        assert after.instructions[waits_for].opcode == "dynamic-update-slice"


def test_control_edges_of_a_start_move_to_the_loop() -> None:
    """What an asynchronous gather waited for, the permutes that replace it wait for too."""
    program = module(f"""
  x = f32[2,6] parameter(0)
  w = f32[6,3] parameter(1)
  before = f32[6,3] negate(w)
  s = (f32[2,6], f32[8,6]) all-gather-start(x), {EVERYBODY}, dimensions={{0}}, control-predecessors={{before}}
  g = f32[8,6] all-gather-done(s)
  d = f32[8,3] dot(g, w), {DOT}
  ROOT t = (f32[8,3], f32[6,3]) tuple(d, before)
""")
    for variant, after in zip(STRAIGHT, same_results(program, STRAIGHT, expect=1), strict=True):
        before = after.by_name["before"].id
        permutes = [i for i in after.instructions.values() if i.opcode == "collective-permute"]
        assert permutes, variant
        assert all(before in p.control_predecessor_ids for p in permutes), variant


def test_groups_along_two_axes() -> None:
    """A gather along one mesh axis and a scatter along the other; groups of two, not consecutive."""
    program = module(f"""
  x = f32[3,6] parameter(0)
  w = f32[6,8] parameter(1)
  g = f32[6,6] all-gather(x), channel_id=1, {PAIRS}, dimensions={{0}}
  d = f32[6,8] dot(g, w), {DOT}
  h = f32[6,8] tanh(d)
  v = f32[8,4] parameter(2)
  e = f32[6,4] dot(h, v), {DOT}
  ROOT s = f32[6,2] reduce-scatter(e), channel_id=2, replica_groups={{{{0,1}},{{2,3}}}}, use_global_device_ids=true,
    dimensions={{1}}, to_apply=add
""")
    same_results(program, SOME, expect=2)


@pytest.mark.parametrize(("side", "dims"), list(product((0, 1), (0, 1))))
def test_convolutions_that_are_matrix_products(side: int, dims: int) -> None:
    """The form the TPU compiler gives a dot: features contracted, a batch of rows, one spatial dimension."""
    shard = [["f32[2,6]", "f32[8,2]"], ["f32[2,5]", "f32[6,2]"]][side][dims]
    whole = [["f32[8,6]", "f32[8,8]"], ["f32[8,5]", "f32[6,8]"]][side][dims]
    other = [["f32[6,5]", "f32[8,5]"], ["f32[4,8]", "f32[4,6]"]][side][dims]
    out = [["f32[8,5]", "f32[8,5]"], ["f32[4,5]", "f32[4,8]"]][side][dims]
    operands = "g, w" if side == 0 else "w, g"
    program = module(f"""
  x = {shard} parameter(0)
  w = {other} parameter(1)
  g = {whole} all-gather(x), {EVERYBODY}, dimensions={{{dims}}}
  ROOT d = {out} convolution({operands}), dim_labels=bf_io->bf
""")
    same_results(program, SOME, expect=1)


def test_convolutions_with_a_batch_in_the_window() -> None:
    program = module(f"""
  x = f32[2,3,4] parameter(0)
  w = f32[8,4,5] parameter(1)
  g = f32[8,3,4] all-gather(x), {EVERYBODY}, dimensions={{0}}
  ROOT d = f32[8,3,5] convolution(g, w), window={{size=8 stride=7 lhs_dilate=8}}, dim_labels=0bf_0io->0bf
""")
    same_results(program, SOME, expect=1)


def test_new_instructions_point_back() -> None:
    program = module(f"""
  x = f32[2,6] parameter(0)
  w = f32[6,3] parameter(1)
  gather.7 = f32[8,6] all-gather(x), {EVERYBODY}, dimensions={{0}}, metadata={{op_name="model/x"}}
  dot.9 = f32[8,3] dot(gather.7, w), {DOT}, operand_precision={{highest,default}}, metadata={{op_name="model/dot"}},
    frontend_attributes={{mark="1"}}
  ROOT n = f32[8,3] negate(dot.9)
""")
    gather, dot = program.by_name["gather.7"].id, program.by_name["dot.9"].id
    for after in same_results(program, SOME, expect=1):
        for id_, instruction in after.instructions.items():
            if id_ in program.instructions:
                continue
            assert set(after.origins_of(id_)) <= set(program.instructions)
            if instruction.opcode == "dot":
                assert instruction.name.startswith("dot.9.")
                assert instruction.metadata.op_name == "model/dot"
                assert dict(instruction.frontend_attributes.map) == {"mark": "1"}
                assert list(instruction.precision_config.operand_precision) == [2, 0]
                assert after.origins_of(id_) == (dot,)
            if instruction.opcode == "collective-permute":
                assert instruction.name.startswith("gather.7.")
                assert instruction.metadata.op_name == "model/x"
                assert after.origins_of(id_) == (gather,)
