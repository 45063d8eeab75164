"""Where Tab goes, and a ring around what has the focus and does not show it by itself."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QPalette, QRegion
from PySide6.QtWidgets import QAbstractScrollArea, QDockWidget, QLabel, QWidget

_WIDTH = 2
"""Pixels of the ring."""


def is_behind(widget: QWidget) -> bool:
    """Whether a widget is in a pane that another tab covers. Qt calls these visible and lays them beside the screen."""
    inner: QWidget | None = widget
    while inner is not None and not inner.isWindow():
        if isinstance(inner, QDockWidget):
            return inner.visibleRegion().isEmpty()
        inner = inner.parentWidget()
    return False


def step(window: QWidget, forward: bool) -> bool:
    """Focus what Tab, or Shift+Tab, leads to in `window`; False where nothing else takes the focus."""
    focused: QWidget | None = window.focusWidget()
    start = focused if focused is not None else window
    reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
    found = _next(start, forward)
    while found is not None and found is not start:
        if found.window() is window and _takes_tab(found):
            found.setFocus(reason)
            return True
        found = _next(found, forward)
    return False


def _next(widget: QWidget, forward: bool) -> QWidget | None:
    return widget.nextInFocusChain() if forward else widget.previousInFocusChain()


def _takes_tab(widget: QWidget) -> bool:
    all_controls = QGuiApplication.styleHints().tabFocusBehavior() == Qt.TabFocusBehavior.TabFocusAllControls
    policy = Qt.FocusPolicy.TabFocus if all_controls else Qt.FocusPolicy.StrongFocus
    if widget.focusPolicy() & policy != policy or widget.focusProxy() is not None or not widget.isEnabled():
        return False
    if isinstance(widget, QLabel) and not widget.text():
        return False
    return widget.isVisible() and not widget.size().isEmpty() and not is_behind(widget)


class _Ring(QWidget):
    """Lies along the edge of a widget, of a scroll area within its bars and headings."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._around = widget.viewport() if isinstance(widget, QAbstractScrollArea) else widget
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._around.installEventFilter(self)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        passed = super().eventFilter(watched, event)
        if watched is self._around and event.type() in (QEvent.Type.Resize, QEvent.Type.Move):
            self._fit()
        return passed

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.fillRect(event.rect(), self.palette().color(QPalette.ColorRole.Accent))

    def _fit(self) -> None:
        whole = self._around is self.parentWidget()
        self.setGeometry(self._around.rect() if whole else self._around.geometry())
        # Nothing but the ring, so that what changes inside it is not drawn twice.
        inner = self.rect().adjusted(_WIDTH, _WIDTH, -_WIDTH, -_WIDTH)
        self.setMask(QRegion(self.rect()).subtracted(QRegion(inner)))


def ring(before: QWidget | None, now: QWidget | None) -> None:
    """Show by a ring that the keyboard has moved the focus to a scroll area or to text: of these, styles draw none."""
    if before is not None:
        for each in _rings(before):
            each.hide()
    if isinstance(now, QAbstractScrollArea | QLabel) and now.window().testAttribute(
        Qt.WidgetAttribute.WA_KeyboardFocusChange
    ):
        shown = next(iter(_rings(now)), None) or _Ring(now)
        shown.raise_()
        shown.show()


def _rings(widget: QWidget) -> list[_Ring]:
    return widget.findChildren(_Ring, options=Qt.FindChildOption.FindDirectChildrenOnly)
