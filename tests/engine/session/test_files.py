from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.chips.budget import Budget, Kind
from engine.errors import InputError
from engine.session import edits, files
from engine.session.given import Recording, RecordingKind, take
from engine.session.plan import AS_LOADED, MachineSpec, Plan
from engine.session.session import FIRST, Mark, ModuleFile, Session
from tests.places import DATA

OLDER = DATA / "sessions"

OLDER = DATA / "sessions"

PLANS = st.builds(
    Plan,
    passes=st.sampled_from(["", "decompose{ring=both},async-permute", "fuse"]),
    scheduler=st.sampled_from(["bottom-up", "improve{seconds=2}"]),
    budget=st.sampled_from([None, Budget(), Budget(total=4), Budget(total=5, by_kind=((Kind.PERMUTE, 2),))]),
    memory_cap=st.none() | st.integers(1, 2**45),
)


def session(*plans: Plan) -> Session:
    made = edits.opened("step.hlo", [("", plan) for plan in plans], MachineSpec("tpu-v5p", "4x4x4", "x=8,y=8"))
    return replace(made, reading=False)


def test_a_session_of_the_first_version_is_still_read() -> None:
    saved = files.load(OLDER / "version_1.lapstrake")
    first, second = saved.session.entries
    assert saved.session.modules == (ModuleFile(FIRST, "/models/step.hlo"),)
    assert saved.hashes[FIRST].startswith("9f86d081")
    assert (first.module, first.plan, first.collapsed) == (FIRST, AS_LOADED, True)
    assert (second.module, second.title, second.plan.budget) == (FIRST, "ours", Budget(total=4))
    assert second.machine == MachineSpec("tpu-v5p", "4x4x4", "x=8,y=8")
    assert saved.session.marks == (Mark(1500, "here"),)
    assert saved.makespans == {"A": 13_310_000}


def several() -> Session:
    """Two modules with one variant each."""
    made = session(AS_LOADED)
    return replace(
        made,
        modules=(*made.modules, ModuleFile("2", "other/step.hlo")),
        entries=(*made.entries, replace(made.entries[0], key="B", module="2")),
    )


def test_every_module_is_kept_with_its_variants(tmp_path: Path) -> None:
    files.save(several(), tmp_path / "a.lapstrake")
    after = files.load(tmp_path / "a.lapstrake").session
    assert [(m.key, Path(m.path).name) for m in after.modules] == [("1", "step.hlo"), ("2", "step.hlo")]
    assert [(e.key, e.module) for e in after.entries] == [("A", "1"), ("B", "2")]


@pytest.mark.parametrize("change", [{"key": "1"}, {"key": "7"}, {"path": None, "beside": ""}])
def test_a_damaged_module_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    place = tmp_path / "a.lapstrake"
    files.save(several(), place)
    content = json.loads(place.read_text("utf-8"))
    content["modules"][1].update(change)
    place.write_text(json.dumps(content), "utf-8")
    with pytest.raises(InputError, match="cannot be used"):
        files.load(place)


@given(st.lists(PLANS, min_size=1, max_size=4), st.lists(st.integers(0, 2**60), max_size=3, unique=True))
def test_what_is_saved_reads_back(
    tmp_path_factory: pytest.TempPathFactory, plans: list[Plan], times: list[int]
) -> None:
    place = tmp_path_factory.mktemp("session") / "a.lapstrake"
    before = session(*plans)
    for time in times:
        before = edits.marked(before, time, "nöte")
    before = edits.renamed(edits.folded(before, "A"), "A", "mine")
    files.save(before, place)
    after = files.load(place).session
    assert after.entries == before.entries
    assert (after.active, after.base, after.marks) == (before.active, before.base, before.marks)


def test_the_module_is_found_beside_the_session_when_both_were_moved(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    (old / "step.hlo").write_text("HloModule m", "utf-8")
    made = edits.opened(str(old / "step.hlo"), [("", AS_LOADED)], MachineSpec())
    files.save(made, old / "a.lapstrake")
    old.rename(new)
    assert files.load(new / "a.lapstrake").session.path == str(new / "step.hlo")


def test_saving_replaces_in_one_step_and_leaves_no_draft(tmp_path: Path) -> None:
    place = tmp_path / "a.lapstrake"
    place.write_text("old", "utf-8")
    files.save(session(AS_LOADED), place)
    assert [p.name for p in tmp_path.iterdir()] == ["a.lapstrake"]
    with pytest.raises(OSError, match="nowhere"):
        files.save(session(AS_LOADED), tmp_path / "nowhere" / "a.lapstrake")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "JSON"),
        ("[1]", "another file"),
        ("{}", "another file"),
        ('{"lapstrake_session": 99}', "version 99"),
        ('{"lapstrake_session": 1}', "'module' is missing"),
        ('{"lapstrake_session": 2}', "'variants' is missing"),
        ('{"lapstrake_session": 2, "variants": [], "marks": []}', "keys that differ"),
    ],
)
def test_what_is_no_session_is_refused_with_a_reason(tmp_path: Path, text: str, said: str) -> None:
    place = tmp_path / "a.lapstrake"
    place.write_text(text, "utf-8")
    with pytest.raises(InputError, match=said):
        files.load(place)


@pytest.mark.parametrize(
    "change",
    [
        {"budget": "many"},
        {"passes": 3},
        {"passes": "\0"},
        {"memory_cap": "x"},
        {"memory_cap": -1},
        {"memory_cap": 1 << 70},
        {"makespan": float("inf")},
        {"makespan": True},
    ],
)
def test_a_damaged_variant_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    place = tmp_path / "a.lapstrake"
    files.save(session(AS_LOADED), place)
    content = json.loads(place.read_text("utf-8"))
    content["variants"][0].update(change)
    place.write_text(json.dumps(content), "utf-8")
    with pytest.raises(InputError, match="cannot be used"):
        files.load(place)


def test_a_session_is_known_by_its_content_too(tmp_path: Path) -> None:
    place = tmp_path / "renamed.json"
    files.save(session(AS_LOADED), place)
    assert files.is_session(place)
    (tmp_path / "other.json").write_text("{}", "utf-8")
    assert not files.is_session(tmp_path / "other.json")
    assert not files.is_session(tmp_path / "missing")


def test_costs_and_recordings_are_kept_by_place_and_hash(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    costs, _ = take(written(old / "costs.csv", "dot.1,5\n"))
    profile, _ = take(written(old / "run.xplane.pb", "p"))
    before = edits.with_costs(session(AS_LOADED), [costs])
    recording = Recording(RecordingKind.PROFILE, profile, "cpu")
    before = edits.recorded(before, AS_LOADED, MachineSpec(costs=(costs,)), recording, "measured")
    files.save(before, old / "a.lapstrake")
    assert "dot.1" not in (old / "a.lapstrake").read_text("utf-8")
    old.rename(new)
    after = files.load(new / "a.lapstrake").session
    assert after.entries == before.entries
    assert after.entries[0].machine.costs[0].path == str(new / "costs.csv")
    assert after.entries[1].recording is not None
    assert after.entries[1].recording.file.path == str(new / "run.xplane.pb")


def written(place: Path, text: str) -> str:
    place.write_text(text, "utf-8")
    return str(place)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"recording": {"kind": "dream", "path": "a", "beside": "", "sha256": "", "target": ""}}, "dream"),
        ({"recording": {"kind": "profile"}}, "missing"),
        ({"costs": [{"path": 3, "beside": "", "sha256": ""}]}, "text was expected"),
    ],
)
def test_a_damaged_recording_is_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    place = tmp_path / "a.lapstrake"
    files.save(session(AS_LOADED), place)
    content = json.loads(place.read_text("utf-8"))
    content["variants"][0].update(change)
    place.write_text(json.dumps(content), "utf-8")
    with pytest.raises(InputError, match=said):
        files.load(place)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("marks", [3], "an object was expected as number 1 of 'marks', but 3 came"),
        ("variants", 7, "a list was expected for 'variants', but 7 came"),
        ("modules", ["x"], "an object was expected as number 1 of 'modules', but \"x\" came"),
        ("lanes", [1], "an object was expected for 'lanes', but \\[1\\] came"),
        ("lanes", {"order": 4}, "a list was expected for 'order', but 4 came"),
    ],
)
def test_a_value_of_another_kind_is_named(tmp_path: Path, name: str, value: object, said: str) -> None:
    place = tmp_path / "a.lapstrake"
    files.save(edits.opened("step.hlo", [("", Plan())], MachineSpec()), place)
    content = json.loads(place.read_text("utf-8"))
    place.write_text(json.dumps({**content, name: value}), "utf-8")
    with pytest.raises(InputError, match=said):
        files.load(place)


@pytest.mark.skipif(sys.platform != "linux", reason="file names that are no text")
def test_a_file_whose_name_is_no_text_is_found_again(tmp_path: Path) -> None:
    path = os.fsdecode(os.path.join(os.fsencode(tmp_path), b"bad\xff.hlo"))
    Path(path).touch()
    made = edits.opened(path, [("", AS_LOADED)], MachineSpec("tpu-v5p", None, None))
    place = tmp_path / os.fsdecode(b"s\xfe.lapstrake")
    files.save(replace(made, reading=False), place)
    assert json.loads(place.read_text("utf-8"))["lapstrake_session"] == files.VERSION
    assert files.load(place).session.path == path
