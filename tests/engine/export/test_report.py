"""The report and its picture: self-contained, escaped, and honest about what is predicted."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from engine.cost.costs import Origin
from engine.errors import UsageError
from engine.export.report_html import report_html
from engine.export.svg import COLOURS, Strip, timelines_svg
from engine.export.writing import check_writable, write_atomically
from engine.hlo.reading import read_here
from engine.quantities import time_text
from engine.session.evaluation import Evaluator
from engine.session.plan import Plan, plain_plan
from engine.timeline.timeline import Category
from tests.engine.export.test_texts import LOOP
from views.theme import LIGHT


@cache
def evaluated() -> Evaluator:
    return Evaluator(read_here(LOOP.encode()))


def test_colours_are_the_window_s() -> None:
    assert all(LIGHT.of(category).fill == colour for category, colour in COLOURS.items())


def test_report_is_one_file_that_fetches_nothing() -> None:
    evaluator = evaluated()
    variants = [
        evaluator.evaluate(plain_plan(evaluator.module), "as <loaded>"),
        evaluator.evaluate(Plan("fuse", "top-down")),
    ]
    html = report_html(evaluator.module, evaluator.machine, variants)
    assert "as &lt;loaded&gt;" in html
    assert "<script" not in html
    assert not re.search(r'(src|href)="', html)
    assert html.count("<td>model</td>") == 2
    assert "Predicted" in html


def test_a_plan_that_does_not_fit_into_the_chip_says_so() -> None:
    evaluator = evaluated()
    fits = evaluator.evaluate(plain_plan(evaluator.module))
    chip = replace(fits.program.machine.chip, hbm_bytes=fits.metrics.peak_memory - 1)
    large = replace(fits, program=replace(fits.program, machine=replace(fits.program.machine, chip=chip)))
    assert "▲" not in report_html(evaluator.module, evaluator.machine, [fits])
    assert large.memory_warning in report_html(evaluator.module, evaluator.machine, [fits, large])


def test_what_says_the_same_is_one_row_and_many_notes_of_one_kind_are_folded() -> None:
    evaluator = evaluated()
    base = evaluator.evaluate(plain_plan(evaluator.module), "as loaded")
    notes = tuple(f"while.{n} has no trip count that is known: {n} was assumed." for n in range(20))
    alike = [
        replace(base, name=name, plan=Plan("fuse", name), notes=notes) for name in ("bottom-up", "top-down", "memory")
    ]
    html = report_html(evaluator.module, evaluator.machine, [base, *alike])
    (row,) = [row for row in html.split("<tr>") if "bottom-up" in row and "<svg" not in row]
    assert "<td>bottom-up; top-down; memory<br>" in row
    assert "fuse | bottom-up; top-down; memory" in row
    assert html.count("<summary>and 18 more like these</summary>") == 1
    assert all(html.count(note) == 1 for note in notes)


def test_what_a_profile_does_not_tell_is_left_empty() -> None:
    evaluator = evaluated()
    base = evaluator.evaluate(plain_plan(evaluator.module))
    metrics = replace(base.metrics, makespan=base.metrics.makespan * 2, peak_memory=0, max_in_flight=0, lower_bound=0)
    timeline = replace(base.timeline, source=Origin.MEASURED)
    measured = replace(base, name="run", timeline=timeline, metrics=metrics)
    html = report_html(evaluator.module, evaluator.machine, [base, measured])
    row = next(row for row in html.split("<tr>") if "<td>run" in row)
    cells = re.findall(r"<td.*?>(.*?)</td>", row)
    assert cells[1] == time_text(metrics.makespan)
    assert (cells[2], *cells[6:]) == ("", "", "", "", "measured")


def test_picture_is_well_formed_and_keeps_every_exposed_gap() -> None:
    variant = evaluated().evaluate(plain_plan(evaluated().module))
    picture = timelines_svg([Strip("a & b", variant.timeline)], width=400)
    root = ElementTree.fromstring(picture)
    gaps = [p for p in root.iter() if p.get("fill") == "url(#wait)" and p.tag.endswith("path")]
    assert bool(gaps) == bool((variant.timeline.category == Category.EXPOSED).any())
    assert "a &amp; b" in picture


def test_files_appear_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "out.html"
    write_atomically(target, b"first")
    target.chmod(0o640)
    write_atomically(target, b"second")
    assert target.read_bytes() == b"second"
    assert target.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir()] == ["out.html"]
    with pytest.raises(UsageError, match="cannot write"):
        write_atomically(tmp_path / "missing" / "out.html", b"")
    with pytest.raises(UsageError, match="cannot write"):
        write_atomically(tmp_path, b"")
    assert [p.name for p in tmp_path.iterdir()] == ["out.html"]


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs a pipe with a name")
def test_a_device_is_written_into_and_not_replaced() -> None:
    reader, writer = os.pipe()
    try:
        write_atomically(f"/dev/fd/{writer}", b"through")
        os.close(writer)
        assert os.read(reader, 99) == b"through"
    finally:
        os.close(reader)


def test_a_place_is_tried_before_the_work(tmp_path: Path) -> None:
    check_writable(tmp_path / "new.html")
    check_writable(tmp_path / "a" / "b" / "new.bundle", makes_folders=True)
    (tmp_path / "file").write_bytes(b"")
    for place, folders in (
        ("none/new.html", False),
        ("file/new.html", False),
        ("file/a/new.bundle", True),
        ("", False),
    ):
        with pytest.raises(UsageError, match="cannot write"):
            check_writable(tmp_path / place, makes_folders=folders)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="only Linux has a folder that takes no files from anybody")
def test_a_folder_that_takes_no_files_is_not_said_to_be_missing() -> None:
    with pytest.raises(UsageError, match="nothing can be made in the folder /proc; name another"):
        check_writable("/proc/x.hlo")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    target = tmp_path / "none" / "report.html"
    said = f"there is no folder {target.parent}; make it"
    with pytest.raises(UsageError, match=re.escape(said)):
        check_writable(target)
    with pytest.raises(UsageError, match=re.escape(said)):
        write_atomically(target, b"")
