"""Colours by role for light and dark, and the widget palette made from them.

Views ask for a role (`theme.exposed.fill`), never for a colour. The distances between the roles that stand for kinds
of work, and every contrast, are computed by tests/views/test_theme.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QStyle

from engine.timeline.timeline import Category

GRID = 4
"""Every margin, gap and height is a multiple of this many pixels."""

_INK = "#1B1F24"
_WHITE = "#FFFFFF"


@dataclass(frozen=True, slots=True)
class Role:
    """A fill, and the colour of a label that lies on it."""

    fill: str
    label: str


@dataclass(frozen=True, slots=True)
class Theme:
    """One set of colours. Fields that are plain strings are used as text or line colours on `base` and `pane`."""

    name: str
    base: str
    pane: str
    text: str
    muted: str
    """Secondary text and axes: at least 4.5:1 on base and pane."""
    border: str
    """Between regions; what can be operated is told by `outline`."""
    outline: str
    """Of check boxes, fields and buttons: at least 3:1 on base and pane (WCAG 2.2, 1.4.11)."""
    band: str
    """Background of sticky headers and of the row under the mouse."""
    focus: str
    error: str
    warning: str
    gain: str
    loss: str
    waiting: str
    """Exposed time as text: darker or lighter than its fill, which is too faint for letters on a band."""
    in_flight: str
    budget: str
    """The line that a counter must not pass: budget, memory cap."""
    critical: str
    added: str
    removed: str
    changed: str
    einsum: Role
    elementwise: Role
    copy: Role
    permute: Role
    collective: Role
    exposed: Role
    memory: Role

    def of(self, category: Category) -> Role:
        """The role that a slice of `category` is drawn in."""
        return getattr(self, _ROLE_OF[category])  # type: ignore[no-any-return] # every value names a Role field


_ROLE_OF = {
    Category.EINSUM: "einsum",
    Category.ELEMENTWISE: "elementwise",
    Category.COPY: "copy",
    Category.PERMUTE: "permute",
    Category.COLLECTIVE: "collective",
    Category.EXPOSED: "exposed",
    Category.LOOP: "elementwise",
}

LIGHT = Theme(
    name="light",
    base="#FFFFFF",
    pane="#F5F7F9",
    text=_INK,
    muted="#5B6470",
    border="#C9D0D8",
    outline="#737D89",
    band="#E9EDF1",
    focus="#1F5FBF",
    error="#B3261E",
    warning="#8A5A00",
    gain="#1B6E3C",
    loss="#B3261E",
    waiting="#BA1650",
    in_flight="#4A5568",
    budget="#B3261E",
    critical="#111418",
    added="#1B6E3C",
    removed="#B3261E",
    changed="#8A5A00",
    einsum=Role("#316EBF", _WHITE),
    elementwise=Role("#818CA1", _INK),
    copy=Role("#732062", _WHITE),
    permute=Role("#BA8106", _INK),
    collective=Role("#770000", _WHITE),
    exposed=Role("#DD2869", _WHITE),
    memory=Role("#30634A", _WHITE),
)

DARK = Theme(
    name="dark",
    base="#16191D",
    pane="#1E2329",
    text="#E6EAEE",
    muted="#9AA5B1",
    border="#39414A",
    outline="#7C8792",
    band="#262C33",
    focus="#7FB2FF",
    error="#FF8A80",
    warning="#F0B429",
    gain="#6FCF97",
    loss="#FF8A80",
    waiting="#FF8A80",
    in_flight="#B8C2CC",
    budget="#FF8A80",
    critical="#FFFFFF",
    added="#6FCF97",
    removed="#FF8A80",
    changed="#F0B429",
    einsum=Role("#A5C2FE", _INK),
    elementwise=Role("#9FA9AC", _INK),
    copy=Role("#A470C7", _INK),
    permute=Role("#EB9E16", _INK),
    collective=Role("#FBDBAE", _INK),
    exposed=Role("#C84620", _WHITE),
    memory=Role("#3C986E", _INK),
)


def system_theme() -> Theme:
    """Light or dark, as the system asks for."""
    scheme = QGuiApplication.styleHints().colorScheme()
    return DARK if scheme == Qt.ColorScheme.Dark else LIGHT


def chosen_theme(choice: str) -> Theme:
    """The theme of a setting: ``light``, ``dark``, or ``system``."""
    return {"light": LIGHT, "dark": DARK}.get(choice) or system_theme()


def palette_of(theme: Theme) -> QPalette:
    """The colours of the platform's own widgets under `theme`."""
    palette = QPalette()
    group = QPalette.ColorRole
    for role, colour in (
        (group.Window, theme.pane),
        (group.WindowText, theme.text),
        (group.Base, theme.base),
        (group.AlternateBase, theme.pane),
        (group.Text, theme.text),
        (group.Button, theme.pane),
        (group.ButtonText, theme.text),
        (group.ToolTipBase, theme.base),
        (group.ToolTipText, theme.text),
        (group.PlaceholderText, theme.muted),
        (group.BrightText, theme.error),
        (group.Link, theme.focus),
        (group.LinkVisited, theme.focus),
        (group.Highlight, theme.focus),
        (group.HighlightedText, theme.base),
        (group.Accent, theme.focus),
        (group.Light, theme.base if theme is LIGHT else theme.band),
        (group.Midlight, theme.band),
        (group.Mid, theme.border),
        (group.Dark, theme.border),
        (group.Shadow, theme.border),
    ):
        palette.setColor(role, QColor(colour))
    for role in (group.WindowText, group.Text, group.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(theme.muted))
    palette.setColor(QPalette.ColorGroup.Disabled, group.Highlight, QColor(theme.border))
    return palette


_OUTLINED = (
    "QAbstractSpinBox",
    "QCheckBox",
    "QComboBox",
    "QGroupBox",
    "QLineEdit",
    "QListWidget",
    "QProgressBar",
    "QPushButton",
    "QRadioButton",
    "QSlider",
    "QToolButton",
)
"""Widgets whose outline tells that they can be operated, or have boxes to check."""

_FUSION = 140
"""Qt's Fusion style outlines a widget in its window colour made darker by this, in per cent: unseen in dark."""


def dress(theme: Theme) -> None:
    """Give every widget of the application the colours of `theme`."""
    QApplication.setPalette(palette_of(theme))
    outlined = palette_of(theme)
    outlined.setColor(QPalette.ColorRole.Window, QColor(theme.outline).lighter(_FUSION))
    outlined.setColor(QPalette.ColorGroup.Disabled, QPalette.ColorRole.Window, QColor(theme.border).lighter(_FUSION))
    for widget in _OUTLINED:
        QApplication.setPalette(outlined, widget)  # type: ignore[arg-type] # PySide takes str; its stub says bytes


@cache
def colour(text: str, alpha: int = 255) -> QColor:
    """A QColor of a role's text form; shared, so it must not be changed."""
    made = QColor(text)
    made.setAlpha(alpha)
    return made


def text_font() -> QFont:
    """The one font of text, with figures of equal width where the font has them."""
    return tabular(QApplication.font())


def axis_font() -> QFont:
    """One size smaller: axes, lane names, labels on slices."""
    font = tabular(QApplication.font())
    font.setPointSizeF(max(7.0, font.pointSizeF() - 1.0))
    return font


def code_font() -> QFont:
    """The platform's fixed-width font at the size of text."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPointSizeF(QApplication.font().pointSizeF())
    return font


def tabular(font: QFont) -> QFont:
    """`font` with tabular figures."""
    made = QFont(font)
    made.setFeature(QFont.Tag("tnum"), 1)
    return made


def motion_allowed() -> bool:
    """False where the style says that widgets do not animate, which is how platforms pass on "reduce motion"."""
    return QApplication.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration) > 0
