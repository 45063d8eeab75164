"""Where a plan's peak memory exceeds the chip's HBM, every place that shows the peak says so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from app.cli.schema import report
from app.cli.tables import show_variants
from engine.cost.costs import Origin
from engine.session.variant import Variant
from tests.views.fake_host import host_of
from tests.views.synthetic import variant
from views.compare.compare import ComparePane
from views.inspector.inspector import Inspector
from views.theme import LIGHT
from views.timeline import paint_counters
from views.timeline.axis import TimeRange
from views.timeline.paint_header import OVER, figures_of, peak_text
from views.timeline.view import TimelineView


def with_room(made: Variant, room: int) -> Variant:
    machine = replace(made.program.machine, chip=replace(made.program.machine.chip, hbm_bytes=room))
    return replace(made, program=replace(made.program, machine=machine))


def pair() -> tuple[Variant, Variant]:
    made = variant(name="fits")
    peak = made.metrics.peak_memory
    return with_room(made, peak), with_room(variant(name="too large"), peak - 1)


def test_a_peak_is_over_from_the_first_byte_that_does_not_fit() -> None:
    fits, large = pair()
    assert (fits.over_memory, fits.memory_warning) == (0, "")
    assert large.over_memory == 1
    assert "as simulated" in large.memory_warning
    assert "TPU v4" in large.memory_warning
    assert OVER not in peak_text(fits)
    assert peak_text(large).startswith(OVER)


def test_the_report_on_a_terminal_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    fits, large = pair()
    show_variants([fits, large])
    said = " ".join(capsys.readouterr().out.split())
    assert f"▲ too large: {large.memory_warning}" in said
    assert "▲ fits" not in said


def test_the_report_for_programs_has_it_in_bytes() -> None:
    fits, large = pair()
    run = replace(large, timeline=replace(large.timeline, source=Origin.MEASURED))
    content = report(large.program.module, large.program.machine, [fits, large, run])
    assert content["schema"] == 1
    assert [row["over_hbm_bytes"] for row in content["variants"]] == [0, 1, None]


@pytest.mark.parametrize(("part", "lines"), [(0.5, ["HBM"]), (2.0, ["HBM"]), (100.0, [])])
def test_the_memory_lane_has_the_line_where_it_is_in_sight(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, part: float, lines: list[str]
) -> None:
    made = variant(name="one")
    host = host_of(with_room(made, round(made.metrics.peak_memory * part)))
    view = TimelineView(host, TimeRange())
    qtbot.addWidget(view)
    view.resize(1000, 400)
    drawn: list[str] = []

    def limit(painter: object, scene: object, row: object, curve: object, limit: int, top: int, text: str) -> None:
        if limit <= top:
            drawn.append(text.split()[0])

    monkeypatch.setattr(paint_counters, "_paint_limit", limit)
    view.grab()
    assert [text for text in drawn if text == "HBM"] == lines


def test_header_inspector_and_table_mark_it(qtbot: QtBot) -> None:
    host = host_of(*pair())
    session = host.store.state
    roles = [next(f for f in figures_of(session, e) if f.caption == "peak").role for e in session.entries]
    assert roles == ["text", "loss"]
    inspector = Inspector(host)
    qtbot.addWidget(inspector)
    assert "more than the" in inspector.above.text()
    assert "HBM" in inspector.above.text()
    compare = ComparePane(host)
    qtbot.addWidget(compare)
    texts = [
        [
            (item.text(), item.foreground().color())
            for c in range(compare.table.columnCount())
            if (item := compare.table.item(row, c))
        ]
        for row in range(2)
    ]
    over = [[colour for text, colour in row if text.startswith(OVER)] for row in texts]
    assert over == [[], [QColor(LIGHT.loss)]]
