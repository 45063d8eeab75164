from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QSpinBox,
    QWidget,
)
from pytestqt.qtbot import QtBot

from engine.timeline.timeline import Category
from tests.views.colour_difference import SIGHTS, ciede2000, contrast, difference
from views.theme import DARK, LIGHT, Role, Theme, chosen_theme, dress, palette_of

FILLS = ("einsum", "elementwise", "copy", "permute", "collective", "exposed", "memory")
"""Roles that are told apart by colour."""

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)


def role(theme: Theme, name: str) -> Role:
    found = getattr(theme, name)
    assert isinstance(found, Role)
    return found


def test_ciede2000_gives_published_values() -> None:
    # Rows 1, 7 and 17 of table 1 in Sharma, Wu, Dalal 2005.
    for one, two, wanted in (
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 0.0, 0.0), (50.0, -1.0, 2.0), 2.3669),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
    ):
        assert ciede2000(np.array(one), np.array(two)) == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize(("theme", "least"), [(LIGHT, 13.3), (DARK, 14.4)], ids=["light", "dark"])
def test_roles_can_be_told_apart_with_any_sight(theme: Theme, least: float) -> None:
    for sight in SIGHTS:
        for one, two in combinations(FILLS, 2):
            apart = difference(role(theme, one).fill, role(theme, two).fill, sight)
            assert apart >= least, f"{one} and {two}, {sight}"


@THEMES
def test_every_fill_stands_out_and_carries_its_label(theme: Theme) -> None:
    for name in FILLS:
        fill = role(theme, name)
        assert contrast(fill.fill, theme.base) >= 3.1, name
        assert contrast(fill.fill, theme.pane) >= 3.1, name
        assert contrast(fill.fill, fill.label) >= 4.5, name


@THEMES
def test_text_colours_can_be_read_on_base_pane_and_band(theme: Theme) -> None:
    lines = ("in_flight", "budget", "critical")
    for name in ("text", "muted", "focus", "error", "warning", "gain", "loss", "waiting", *lines):
        for ground in (theme.base, theme.pane, theme.band):
            assert contrast(getattr(theme, name), ground) >= 4.5, name
    assert all(contrast(theme.outline, ground) >= 3.0 for ground in (theme.base, theme.pane))


@THEMES
@pytest.mark.parametrize("kind", [QCheckBox, QLineEdit, QComboBox, QSpinBox, QPushButton, QListWidget])
def test_what_can_be_operated_has_an_outline_that_is_seen(qtbot: QtBot, theme: Theme, kind: type[QWidget]) -> None:
    if QApplication.style().name() != "fusion":
        pytest.skip("the platform's own style draws its own outlines")
    dress(theme)
    widget = kind()
    qtbot.addWidget(widget)
    if isinstance(widget, QListWidget):
        item = QListWidgetItem("unchecked", widget)
        item.setCheckState(Qt.CheckState.Unchecked)
        middle = widget.visualItemRect(item).center().y()
    else:
        widget.resize(widget.sizeHint())
        middle = widget.height() // 2
    picture = widget.grab().toImage()
    seen = [picture.pixelColor(x, middle).name() for x in range(8)]
    # Both halves of a check box: the outline against what is inside and what is around.
    assert max(min(contrast(hue, theme.base), contrast(hue, theme.pane)) for hue in seen) >= 3.0


@THEMES
def test_every_category_has_a_role(theme: Theme) -> None:
    assert all(isinstance(theme.of(category), Role) for category in Category)


@THEMES
def test_the_palette_has_no_colour_of_its_own(theme: Theme) -> None:
    palette = palette_of(theme)
    assert palette.color(QPalette.ColorRole.Window).name().upper() == theme.pane
    assert palette.color(QPalette.ColorRole.Text).name().upper() == theme.text


def test_the_setting_overrides_the_system() -> None:
    assert chosen_theme("dark") is DARK
    assert chosen_theme("light") is LIGHT
