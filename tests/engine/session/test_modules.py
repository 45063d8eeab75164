"""Several modules in one session: added, named, removed, and matched with each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.hlo.dump import module_title
from engine.hlo.reading import read_here
from engine.ir.module import Module
from engine.session import edits
from engine.session.correspondence import correspond
from engine.session.evaluation import Evaluator
from engine.session.lookup import lookup
from engine.session.matching import Match, loaded_in, match_of, shown_in
from engine.session.plan import AS_LOADED, MachineSpec, Plan
from engine.session.session import Facts, ModuleFile, Session, labels
from engine.timeline.difference import differences
from tests.places import SAMPLES

BEST = Plan("decompose{gate=off},async-permute", "bottom-up")


def facts(sha256: str = "", partitions: int = 4) -> Facts:
    return Facts("m", 10, 1, partitions, scheduled=False, sha256=sha256)


def opened(partitions: int = 4) -> Session:
    """A session on one module, as many devices as given."""
    made = edits.opened("before.hlo", [("as loaded", AS_LOADED), ("", BEST)], MachineSpec("tpu-v5p", "2x2x1"))
    return edits.informed(replace(made, reading=False), "1", facts("a", partitions))


def with_another(session: Session, partitions: int = 4) -> Session:
    plans = [("as loaded", AS_LOADED), ("", BEST)]
    return edits.module_added(session, ModuleFile("2", "after.hlo", facts("b", partitions)), plans)


def test_an_added_module_brings_variants_of_its_own() -> None:
    made = with_another(opened())
    assert [(e.key, e.module, e.plan) for e in made.entries[2:]] == [("C", "2", AS_LOADED), ("D", "2", BEST)]
    assert (made.base, made.active) == ("A", "D")
    assert made.path == "after.hlo"
    assert edits.activated(made, "A").path == "before.hlo"
    assert [e.module for e in edits.added(made, BEST).entries[-1:]] == ["2"]


@pytest.mark.parametrize(("partitions", "topology"), [(4, "2x2x1"), (8, None)])
def test_the_machine_is_shared_as_far_as_the_devices_are(partitions: int, topology: str | None) -> None:
    made = with_another(opened(), partitions)
    assert made.entries[2].machine == MachineSpec("tpu-v5p", topology)
    moved = edits.on_machine(edits.activated(made, "A"), MachineSpec("tpu-v4", "4x1x1"))
    assert {e.machine for e in moved.entries[:2]} == {MachineSpec("tpu-v4", "4x1x1")}
    assert {e.machine for e in moved.entries[2:]} == {MachineSpec("tpu-v4", "4x1x1" if topology else None)}
    same_chip = edits.on_machine(edits.activated(made, "A"), MachineSpec("tpu-v5p", "4x1x1"))
    assert same_chip.entries[2].machine == MachineSpec("tpu-v5p", "4x1x1" if topology else None)


def test_a_removed_module_takes_its_variants_with_it() -> None:
    made = edits.selected(with_another(opened()), "D", (7,))
    left = edits.module_removed(made, "2")
    assert [e.key for e in left.entries] == ["A", "B"]
    assert (left.base, left.active) == ("A", "B")
    assert not left.selection
    other = edits.module_removed(made, "1")
    assert (other.base, other.active) == ("C", "D")
    assert edits.module_removed(other, "2") is other
    assert edits.module_removed(made, "9") is made


def test_a_removed_last_variant_leaves_its_module_open() -> None:
    made = with_another(opened())
    left = edits.removed(edits.removed(made, "C"), "D")
    assert [m.key for m in left.modules] == ["1"]


def test_names_tell_modules_apart() -> None:
    def files(*paths: str) -> list[str]:
        return list(labels([ModuleFile(str(n), path) for n, path in enumerate(paths)]).values())

    assert files("/a/before.hlo", "/a/after.hlo.gz") == ["before", "after"]
    assert files("/a/step.hlo", "/b/step.hlo") == ["a/step", "b/step"]
    assert files("/a/x/step.hlo", "/b/x/step.hlo") == ["a/…/step", "b/…/step"]
    assert files("/old/partitioned.hlo", "/new/partitioned.hlo", "other.pb") == [
        "old/partitioned",
        "new/partitioned",
        "other",
    ]
    assert files("/a/step.hlo", "/a/step.pb", "/b/step.hlo") == ["a/step.hlo", "step.pb", "b/step.hlo"]
    named = edits.module_named(with_another(opened()), "2", " with remat ")
    assert (named.label("1"), named.label("2")) == ("before", "with remat")
    entry = named.entries[0]
    assert named.title_of(entry) == "before · as loaded"
    assert opened().title_of(entry) == "as loaded"


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("d/module_0004.jit_f.0001.spmd.after_spmd-partitioning.before_x.txt", "jit_f after spmd-partitioning"),
        ("d/module_0007.jit_step.sm_9.0_gpu_after_optimizations.txt.gz", "jit_step sm 9.0 gpu after optimizations"),
        ("step.hlo.pb", "step"),
        ("-", "-"),
        (".hlo", ".hlo"),
    ],
)
def test_a_file_is_called_by_what_tells_it_apart(path: str, title: str) -> None:
    assert module_title(path) == title


@pytest.fixture(scope="module")
def session() -> Session:
    """A forward pass and its training step, each as loaded and decomposed."""
    modules = [read(f"mlp_fig2_{name}_4_f32.hlo") for name in ("forward", "train")]
    made = edits.opened("forward.hlo", [("", AS_LOADED), ("", BEST)], MachineSpec())
    hashes = [module.source.sha256 for module in modules if module.source is not None]
    made = edits.informed(made, "1", facts(hashes[0]))
    train = ModuleFile("2", "train.hlo", facts(hashes[1]))
    made = edits.module_added(made, train, [("", AS_LOADED), ("", BEST)])
    for entry in made.entries:
        module = modules[int(entry.module) - 1]
        made = edits.arrived(made, entry.key, Evaluator(module, entry.machine).evaluate(entry.plan))
    found = correspond(modules[0], modules[1])
    matches = {(hashes[0], hashes[1]): found, (hashes[1], hashes[0]): found.turned()}
    return replace(made, matches=matches)


def read(name: str) -> Module:
    return read_here((SAMPLES / name).read_bytes(), name)


def names(session: Session, key: str) -> set[str]:
    entry = session.entry(key)
    assert entry is not None
    assert entry.variant is not None
    return {lookup(entry.variant).name(i) for i in shown_in(session, key)}


def select(session: Session, key: str, name: str) -> Session:
    entry = session.entry(key)
    assert entry is not None
    assert entry.variant is not None
    found = lookup(entry.variant).by_name(name)
    assert found is not None
    return edits.selected(session, key, (found,))


def test_a_selection_goes_through_to_what_passes_made_in_the_other_module(session: Session) -> None:
    chosen = select(session, "A", "all-gather")
    there = names(chosen, "C")
    assert len(there) == 1
    made = names(chosen, "D")
    assert any("permute" in name for name in made), made
    back = select(session, "D", sorted(n for n in made if "permute" in n)[0])
    assert "all-gather" in names(back, "A")
    entry = chosen.entry("D")
    assert entry is not None
    assert entry.variant is not None
    assert loaded_in(chosen, "D") & {c.collective for c in entry.variant.candidates}
    assert loaded_in(chosen, "B") == frozenset(chosen.selection.instructions)


def test_what_the_other_module_does_not_have_is_shown_nowhere_in_it(session: Session) -> None:
    base, other = session.entry("C"), session.entry("A")
    assert base is not None
    assert other is not None
    match = match_of(session, base, other)
    assert match is not None
    assert match.across is not None
    alone = [i for i in match.base.program.module.instructions if not match.across.one.rows_of(i)]
    assert alone
    assert match.counterparts(alone) == frozenset()
    keys = [key for i in alone for key in match.base_keys(i)]
    assert all(match.in_other(key) == () for key in keys)
    assert {i for key in keys for i in match.in_base(key)} == set(alone)


def test_differences_across_modules_add_up(session: Session) -> None:
    one, two = session.entry("B"), session.entry("D")
    assert one is not None
    assert two is not None
    match = match_of(session, one, two)
    assert match is not None
    found = differences(match.base.timeline, match.base_keys, match.other.timeline, match.other_keys)
    total = match.other.metrics.makespan - match.base.metrics.makespan
    assert sum(d.stream for d in found) == pytest.approx(total, abs=len(found))
    both = [d for d in found if match.in_base(d.key) and match.in_other(d.key)]
    alone = [d for d in found if not match.in_base(d.key)]
    assert both
    assert alone
    assert all(d.base.stream == 0 for d in alone)


def test_modules_that_are_not_matched_yet_show_nothing_of_each_other(session: Session) -> None:
    chosen = select(replace(session, matches={}), "A", "all-gather")
    assert names(chosen, "B")
    assert shown_in(chosen, "C") == frozenset()
    assert loaded_in(chosen, "C") == frozenset()


def test_the_same_file_twice_is_matched_by_provenance(session: Session) -> None:
    first = session.modules[0]
    twice = replace(session, modules=(first, replace(first, key="2", path="copy.hlo")), matches={})
    entries = tuple(replace(e, variant=session.entries[n % 2].variant) for n, e in enumerate(session.entries))
    chosen = select(replace(twice, entries=entries), "A", "all-gather")
    assert names(chosen, "D") == names(chosen, "B")
    one, two = entries[0], entries[3]
    assert one.variant is not None
    assert two.variant is not None
    assert match_of(chosen, one, two) == Match(one.variant, two.variant)
