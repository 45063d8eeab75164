"""The gate's bars end with what decomposing gains, which can be read where the inspector is narrow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtGui import QFontMetrics
from pytestqt.qtbot import QtBot

from engine.passes.candidate import GateTerms
from tests.views.fake_host import FakeHost
from views.inspector.gate_bars import GateBars, gained
from views.theme import axis_font

NARROW = 250
"""Pixels for bars in a window of 1280."""


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        (0, ("saves 4.00 µs each time",)),
        (500_000, ("saves 4.50 µs each time", "other work hides 500 ns more of the ring")),
        (-5_500_000, ("costs 1.50 µs each time", "other work hides 5.50 µs less of the ring")),
    ],
)
def test_what_is_gained_fits_and_says_what_no_bar_shows(qtbot: QtBot, beside: int, said: tuple[str, ...]) -> None:
    terms = GateTerms(comp=10_000_000, comm=5_000_000, ring=4_000_000, extra=1_000_000, beside=beside)
    assert gained(terms) == said
    assert all(QFontMetrics(axis_font()).horizontalAdvance(line) <= NARROW for line in said)
    bars = GateBars(FakeHost())
    qtbot.addWidget(bars)
    bars.set_terms(replace(terms, beside=0))
    plain = bars.sizeHint().height()
    bars.set_terms(terms)
    assert (bars.sizeHint().height() > plain) == (beside != 0)
