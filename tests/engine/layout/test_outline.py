from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.ir.module import Module
from engine.layout import around
from engine.layout.around import neighbourhood, part_of, paths_between
from engine.layout.dot import dot_text
from engine.layout.outline import Kind, Outline, Side
from engine.layout.outlining import MOST_CHILDREN, outline_of
from engine.layout.picture import MOST, Picture, picture_of
from tests.engine.layout.modules import module_of, modules


def chain(count: int, path: str = "op") -> Module:
    return module_of([(path, [n - 1] if n else []) for n in range(count)])


def groups_of(outline: Outline) -> list[int]:
    return [i for i in range(1, len(outline)) if outline.is_group(i)]


@given(modules())
@settings(max_examples=60)
def test_every_instruction_is_there_once_under_its_computation(module: Module) -> None:
    outline = outline_of(module)
    ids = outline.instruction[outline.instruction >= 0]
    assert sorted(ids.tolist()) == sorted(module.instructions)
    for item in range(1, len(outline)):
        parent = int(outline.parent[item])
        assert parent < item < outline.end[item] <= outline.end[parent]
    for item in groups_of(outline):
        assert len(outline.children(item)) <= MOST_CHILDREN
    assert outline.children(0).size <= MOST_CHILDREN


@given(modules())
@settings(max_examples=60)
def test_every_wire_is_in_one_sibling_edge(module: Module) -> None:
    outline = outline_of(module)
    assert int(outline.edge_wires.sum()) == len(outline.source)
    assert (outline.parent[outline.edge_source] == outline.parent[outline.edge_target]).all()
    pairs = set(zip(outline.edge_source.tolist(), outline.edge_target.tolist(), strict=True))
    assert len(pairs) == len(outline.edge_source)
    for source, target in zip(outline.source.tolist(), outline.target.tolist(), strict=True):
        one, two = {source, *outline.ancestors(source)}, {target, *outline.ancestors(target)}
        assert any(a in one and b in two for a, b in pairs)


@given(modules(), st.data())
@settings(max_examples=40)
def test_pictures_nest_and_siblings_do_not_touch(module: Module, data: st.DataObject) -> None:
    outline = outline_of(module)
    groups = groups_of(outline)
    opened = frozenset(data.draw(st.sets(st.sampled_from(groups)))) if groups else frozenset()
    picture = picture_of(outline, opened)
    shown = picture.items.tolist()
    assert shown == outline.shown(opened).tolist()
    right, bottom = picture.left + picture.width, picture.top + picture.height
    for at, item in enumerate(shown[1:], 1):
        parent = picture.position(int(outline.parent[item]))
        assert parent is not None
        assert picture.opened[parent]
        assert picture.left[parent] < picture.left[at]
        assert picture.top[parent] < picture.top[at]
        assert right[at] < right[parent] + 1e-6
        assert bottom[at] < bottom[parent] + 1e-6
        for other in range(1, at):
            if outline.parent[shown[other]] == outline.parent[item]:
                apart_x = right[at] <= picture.left[other] or right[other] <= picture.left[at]
                apart_y = bottom[at] <= picture.top[other] or bottom[other] <= picture.top[at]
                assert apart_x or apart_y
    down = np.where(picture.turned, picture.target, picture.source)
    up = np.where(picture.turned, picture.source, picture.target)
    assert (bottom[down] < picture.top[up]).all()


@given(modules())
@settings(max_examples=40)
def test_opening_a_group_keeps_the_order_of_what_was_in_place(module: Module) -> None:
    outline = outline_of(module)
    groups = [g for g in outline.children(0).tolist() if outline.is_group(g)]
    before = picture_of(outline)
    for group in groups[:3]:
        after = picture_of(outline, frozenset({group}))
        one, two = (p.position(group) for p in (before, after))
        assert one is not None
        assert two is not None
        kept = before.items[1:].tolist()
        where = np.array([after.position(i) for i in kept])
        same = before.top[1:] == before.top[one]
        order = np.argsort(before.left[1:][same], kind="stable")
        assert (np.diff(after.left[where][same][order]) > 0).all()


def test_a_picture_has_a_limit_and_says_so() -> None:
    outline = outline_of(chain(MOST + 500))
    with pytest.raises(UsageError, match="close some groups"):
        picture_of(outline, frozenset(groups_of(outline)))
    assert len(picture_of(outline)) < MOST_CHILDREN


def test_long_computations_are_folded_into_even_stretches() -> None:
    outline = outline_of(chain(5000))
    tops = outline.children(0)
    assert len(tops) == 71
    assert outline.kind[tops[0]] == Kind.RUN
    assert outline.details[int(tops[0])] == "71 instructions"


def test_paths_become_groups_without_the_part_that_all_share() -> None:
    rows = [(f"jit(f)/jvp(a/b)/layer_{n % 3}/op", [n - 1] if n else []) for n in range(60)]
    outline = outline_of(module_of(rows))
    tops = outline.children(0).tolist()
    assert [outline.names[t] for t in tops] == ["layer_0", "layer_1", "layer_2"]
    assert outline.paths[tops[0]] == "jit(f)/jvp(a/b)/layer_0"
    picture = picture_of(outline)
    assert picture.turned.any()  # layer_2 feeds layer_0 again


def test_small_computations_are_shown_as_they_are() -> None:
    outline = outline_of(module_of([("a/b/op", [n - 1] if n else []) for n in range(20)]))
    assert not groups_of(outline)


def test_a_fusion_is_a_group_that_opens() -> None:
    outline = outline_of(module_of([("", []), ("", [0]), ("", [1])], (1,)))
    fusion = outline.item_of(101)
    assert fusion is not None
    assert outline.is_group(fusion)
    assert [outline.names[c] for c in outline.children(fusion).tolist()] == ["p.1", "neg.1"]
    assert outline.standing_for(outline.shown(frozenset()), np.array([fusion + 1])).tolist() == [fusion]


def without(module: Module, instruction: int) -> Module:
    proto = HloModuleProto()
    proto.CopyFrom(module.proto)
    entry = proto.computations[-1]
    kept = [i for i in entry.instructions if i.id != instruction]
    del entry.instructions[:]
    entry.instructions.extend(kept)
    return Module(proto, origins={105: (instruction,)})


def test_two_modules_in_one_outline_say_what_is_in_which() -> None:
    before = module_of([("", []), ("", [0]), ("", [1]), ("", [0, 2])])
    after = without(before, 102)
    after.proto.computations[-1].instructions[2].operand_ids[:] = [100, 101]
    after.proto.computations[-1].instructions.add(id=105, name="new", opcode="negate", operand_ids=[101])
    outline = outline_of(after, before)
    sides = {outline.names[i]: Side(int(outline.sides[i])) for i in range(1, len(outline))}
    assert sides == {
        "parameter.0": Side.BOTH,
        "add.1": Side.BOTH,
        "add.2": Side.BEFORE,
        "add.3": Side.BOTH,
        "new": Side.AFTER,
    }
    assert [outline.names[i] for i in np.flatnonzero(outline.changed)] == ["add.3"]
    wires = {
        (outline.names[s], outline.names[t]): Side(int(bits))
        for s, t, bits in zip(
            outline.source.tolist(), outline.target.tolist(), outline.wire_sides.tolist(), strict=True
        )
    }
    assert wires[("add.2", "add.3")] == Side.BEFORE
    assert wires[("add.1", "add.3")] == Side.AFTER
    assert wires[("parameter.0", "add.3")] == Side.BOTH
    assert outline.origins[105] == (102,)


def test_a_module_against_itself_has_no_marks() -> None:
    module = module_of([("", []), ("", [0]), ("", [0, 1])])
    outline = outline_of(module, module)
    assert not outline.changed.any()
    assert (outline.sides[1:] == Side.BOTH).all()
    assert (outline.wire_sides == Side.BOTH).all()


def names(outline: Outline, items: np.ndarray | Sequence[int]) -> list[str]:
    return [outline.names[int(i)] for i in items]


def test_neighbourhoods_grow_by_hops() -> None:
    outline = outline_of(chain(9))
    start = outline.item_of(104)
    assert start is not None
    assert names(outline, neighbourhood(outline, [start], 1).items) == ["add.3", "add.4", "add.5"]
    found = neighbourhood(outline, [start], 2)
    assert len(found.items) == 5
    assert not found.capped
    assert "5 instructions within 2 hops" in found.said


def test_a_neighbourhood_that_is_too_large_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(around, "MOST_AROUND", 4)
    outline = outline_of(chain(30))
    start = outline.item_of(110)
    assert start is not None
    found = neighbourhood(outline, [start], 9)
    assert found.capped
    assert len(found.items) == 4
    assert "left out" in found.said


def test_all_paths_between_two_are_counted() -> None:
    diamond = module_of([("", []), ("", [0]), ("", [0]), ("", [1, 2]), ("", [3]), ("", [0])])
    outline = outline_of(diamond)
    one, two = outline.items_of((100, 104))
    found = paths_between(outline, two, one)
    assert len(found.items) == 5
    assert found.said.startswith("2 paths from parameter.0 to add.4")
    with pytest.raises(UsageError, match="no path"):
        paths_between(outline, *outline.items_of((105, 104)))


def test_paths_without_number_are_not_numbered() -> None:
    rows: list[tuple[str, list[int]]] = [("", [])]
    for _ in range(25):  # every diamond doubles the number
        top = len(rows) - 1
        rows += [("", [top]), ("", [top]), ("", [top + 1, top + 2])]
    outline = outline_of(module_of(rows))
    found = paths_between(outline, *outline.items_of((100, 99 + len(rows))))
    assert found.said.startswith("more than 1,000,000 paths from")


def test_too_many_paths_show_the_shortest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(around, "MOST_AROUND", 4)
    rows: list[tuple[str, list[int]]] = [("", [])] + [("", [n]) for n in range(10)] + [("", [10, 0])]
    outline = outline_of(module_of(rows))
    one, two = outline.items_of((100, 111))
    found = paths_between(outline, one, two)
    assert found.capped
    assert names(outline, found.items) == ["parameter.0", "add.11"]


def test_paths_cross_calls_through_the_callers() -> None:
    outline = outline_of(module_of([("", []), ("", [0]), ("", [1])], (1,)))
    inside, last = outline.items_of((5011, 102))
    found = paths_between(outline, inside, last)
    assert names(outline, found.items) == ["fusion.1", "add.2"]


@given(modules(60), st.data())
@settings(max_examples=40)
def test_a_part_is_an_outline_of_its_own(module: Module, data: st.DataObject) -> None:
    outline = outline_of(module)
    leaves = np.flatnonzero(outline.instruction >= 0).tolist()
    chosen = np.array(sorted(data.draw(st.sets(st.sampled_from(leaves), min_size=1))), np.int64)
    part = part_of(outline, chosen)
    wanted = set(outline.instruction[chosen].tolist())
    assert wanted <= set(part.instruction.tolist())
    picture: Picture = picture_of(part)
    assert len(picture.items) >= 2
    for source, target in zip(part.source.tolist(), part.target.tolist(), strict=True):
        assert int(part.instruction[source]) in module.instructions
        assert part.end[target] > target
    assert set(part.instruction[part.children(0)].tolist()) <= wanted


def test_dot_has_every_node_and_cluster() -> None:
    outline = outline_of(module_of([("", []), ("", [0]), ("", [1])], (1,)))
    fusion = outline.item_of(101)
    assert fusion is not None
    text = dot_text(outline, picture_of(outline, frozenset({fusion})))
    assert text.count("{") == text.count("}") == 2
    assert f"subgraph cluster_{fusion}" in text
    assert "lhead=cluster" in text
    assert 'label="neg.1\\nnegate f32[8]' in text


@given(modules(30))
@settings(max_examples=20)
def test_outlines_and_pictures_travel(module: Module) -> None:
    outline = outline_of(module)
    again = pickle.loads(pickle.dumps(outline))
    assert again.names == outline.names
    assert (picture_of(again).left == picture_of(outline).left).all()
