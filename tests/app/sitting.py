"""A whole sitting by mouse and keyboard: open, explain, decompose otherwise, compare, change budget and fusion, save a
picture and the session, open that again.

python -m tests.app.sitting [--limit SECONDS] [FILE]

Runs on the display at hand, by the X server's own mouse and keyboard where that is Qt's platform; `benchmarks.sitting`
starts a virtual display for it. Prints how long each step took and the longest block of the event loop in it.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QPoint, QRectF, Qt, QtMsgType, qInstallMessageHandler
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QDialogButtonBox,
    QFileDialog,
    QLineEdit,
    QMenu,
    QPushButton,
    QStyle,
    QStyleOptionSlider,
    QTabBar,
    QWidget,
)

from app.explorer import Explorer
from app.settings import Settings
from engine.session import edits
from engine.session.variant import Variant
from engine.timeline.timeline import Category
from tests.app.event_loop import Condition, Script, Sitting, Step
from tests.app.hands import Hands, QtHands, XHands
from tests.places import ROOT, SAMPLES
from views.timeline.overlay import Hit, slice_rect
from views.timeline.scene import AXIS, GUTTER

SAMPLE = SAMPLES / "mlp_fig3_train_8x8_large.hlo"
LIMIT_S = 60.0
_STEPS = 8
"""So many steps that take as long as they may are the whole script's limit."""
_HARMLESS = "This plugin does not support "
"""What the offscreen platform says of any window."""
Waits = Generator[Condition, None, None]


class Person:
    """Finds things in the window as the eye does, and uses them with mouse and keyboard."""

    def __init__(self, explorer: Explorer, hands: Hands) -> None:
        self.explorer = explorer
        self.window = explorer.window
        self.view = explorer.window.timelines.view
        self.hands = hands

    def menu(self, title: str, action: str) -> Waits:
        """Choose from a menu with the mouse."""
        bar, chosen = self.window.menus, self.explorer.actions[action]
        head = next(found for found in bar.actions() if found.text() == title)
        menu = head.menu()
        assert isinstance(menu, QMenu)
        yield chosen.isEnabled
        self.hands.click(bar, bar.actionGeometry(head).center())
        yield menu.isVisible
        self.hands.click(menu, menu.actionGeometry(chosen).center())

    def answer(self, path: Path) -> Waits:
        """Type the name of a file into the dialog that has opened in its folder, and press Return."""
        yield lambda: _dialog() is not None
        dialog = _dialog()
        line = dialog.findChild(QLineEdit, "fileNameEdit") if dialog is not None else None
        buttons = dialog.findChild(QDialogButtonBox) if dialog is not None else None
        assert line is not None
        assert buttons is not None
        button = next(b for b in buttons.buttons() if buttons.buttonRole(b) == buttons.ButtonRole.AcceptRole)
        assert isinstance(button, QPushButton)
        yield line.hasFocus
        self.hands.key("Ctrl+a")
        self.hands.write(path.name)
        # It looks at folders beside its event loop, and takes no answer while it does.
        yield lambda: line.text() == path.name and button.isEnabled()
        self.hands.key("Return")
        yield lambda: QApplication.activeModalWidget() is None and self.window.isActiveWindow()

    def choose(self, box: QComboBox, text: str) -> Waits:
        """Open a list with the mouse and click a line of it."""
        yield box.isEnabled
        self.hands.click(box, box.rect().center())
        view = box.view()
        yield view.isVisible
        place = view.visualRect(view.model().index(box.findText(text), 0))
        self.hands.click(view.viewport(), QPoint(place.height() // 2, place.center().y()))
        yield lambda: not view.isVisible() and box.currentText() == text

    def slide(self, to_value: int) -> Waits:
        """Drag the handle of the budget's slider."""
        slider = self.window.plan_line.budget
        option = QStyleOptionSlider()
        slider.initStyleOption(option)
        style, control = slider.style(), QStyle.ComplexControl.CC_Slider
        handle = style.subControlRect(control, option, QStyle.SubControl.SC_SliderHandle, slider)
        span = slider.width() - handle.width()
        low, high = slider.minimum(), slider.maximum()
        way = QStyle.sliderPositionFromValue(low, high, to_value, span)
        self.hands.drag(slider, handle.center(), QPoint(way + handle.width() // 2, handle.center().y()))
        yield lambda: slider.value() == to_value

    def show(self, pane: str) -> Waits:
        """Click the tab of a pane."""
        bar, number = next(
            (bar, at)
            for bar in self.window.findChildren(QTabBar)
            for at in range(bar.count())
            if bar.tabText(at) == pane and bar.isVisible()
        )
        self.hands.click(bar, bar.tabRect(number).center())
        yield lambda: bar.currentIndex() == number

    def press_in_timelines(self, keys: str) -> Waits:
        """Press a key whose action belongs to the timelines, which get the focus first, as by a click."""
        self.view.setFocus()
        yield self.view.hasFocus
        self.hands.key(keys)

    def click_at(self, at: QPoint) -> None:
        self.hands.click(self.view.viewport(), at)

    def settled(self) -> bool:
        state = self.explorer.store.state
        return state.facts is not None and not any(entry.pending for entry in state.entries)

    def variant(self, number: int) -> Variant:
        found = self.explorer.store.state.entries[number].variant
        assert found is not None
        return found

    def longest_gap(self, number: int) -> QRectF:
        """Where the longest exposed transfer of a variant is drawn."""
        timeline = self.variant(number).timeline
        gaps = np.flatnonzero(timeline.category == Category.EXPOSED)
        place = slice_rect(self.view.scene(), Hit(number, int(gaps[np.argmax(timeline.duration[gaps])])))
        assert place is not None
        return place


def whole_sitting(person: Person, file: Path, folder: Path) -> Script:
    """The script. `folder` holds `file`, and is where it saves."""
    store, view, line = person.explorer.store, person.view, person.window.plan_line

    def doing(name: str, waits: Waits) -> Script:
        for condition in waits:
            try:
                yield name, condition
            except AssertionError as error:
                waits.throw(error)  # raised where it waits

    yield "start", person.window.isActiveWindow
    yield from doing("open a file", person.menu("File", "open"))
    yield from doing("open a file", person.answer(file))
    yield "plan it", lambda: bool(store.state.entries) and person.settled()
    assert [entry.error for entry in store.state.entries] == ["", "", ""]

    person.click_at(person.longest_gap(0).center().toPoint())
    yield "explain a gap", lambda: bool(store.state.selection)
    assert store.state.active == "A"
    yield "explain a gap", lambda: "Why exposed" in person.window.inspector.below.text()
    person.hands.wheel(view.viewport(), person.longest_gap(0).center().toPoint(), 4)
    yield "zoom", lambda: view.range.span < view.range.limit
    yield from doing("zoom", person.press_in_timelines("0"))
    yield "zoom", lambda: view.range.start == 0 and view.range.span >= view.range.limit

    top, _ = view.stack.span_of(1)
    person.click_at(QPoint(GUTTER + 60, AXIS + top + 8))
    yield "decompose otherwise", lambda: store.state.active == "B"
    before = person.variant(1)
    yield from doing("decompose otherwise", person.choose(line.choices["ring"], "one"))
    yield "decompose otherwise", lambda: person.settled() and person.variant(1) is not before
    yield from doing("change the budget", person.slide(1))
    yield "change the budget", lambda: person.settled() and person.variant(1).timeline.in_flight.peak <= 1
    fused = person.variant(1)
    yield from doing("change the fusion", person.choose(line.choices["fusion"], "none"))
    yield "change the fusion", lambda: person.settled() and "policy=none" in person.variant(1).plan.passes
    person.hands.key("Ctrl+z")
    yield "undo", lambda: person.settled() and person.variant(1).plan == fused.plan

    yield from doing("compare", person.show("Compare"))
    compare = person.explorer.compare
    yield "compare", lambda: compare.isVisible() and compare.table.rowCount() == 3
    assert [shown.key for shown in compare.lines()] == ["A", "B", "C"]
    yield from doing("sweep budgets", person.show("Budget"))
    jobs = person.explorer.jobs
    yield "sweep budgets", lambda: not any(job.state == "running" for job in jobs())
    yield from doing("graph", person.show("Graph"))
    yield "graph", lambda: not any(job.state == "running" for job in jobs())
    yield from doing("add a variant", person.menu("Plan", "duplicate"))
    yield "add a variant", lambda: len(store.state.entries) == 4 and person.settled()
    assert [entry.key for entry in store.state.entries] == ["A", "B", "C", "D"]
    yield from doing("mark", person.press_in_timelines("b"))
    yield "mark", lambda: store.state.base == "D"
    person.hands.key("m")
    yield "mark", lambda: len(store.state.marks) == 1
    person.hands.key("Ctrl+f")
    search = person.window.timelines.search.line
    yield "search", search.hasFocus
    person.hands.write("dot")
    yield "search", lambda: search.text() == "dot"
    person.hands.key("Return")
    yield "search", lambda: store.state.selection.entry == "D"
    person.hands.key("Escape")
    yield "search", lambda: not search.isVisible()

    for picture in (folder / "timelines.png", folder / "timelines.svg"):
        person.hands.key("Ctrl+e")
        yield from doing("save a picture", person.answer(picture))
        yield "save a picture", picture.is_file
        assert picture.stat().st_size > 1000
    assert QImage(str(folder / "timelines.png")).width() == 2 * view.viewport().width()
    session = folder / "step.lapstrake"
    person.hands.key("Ctrl+s")
    yield from doing("save the session", person.answer(session))
    assert session.is_file()
    saved = store.state
    person.hands.key("Ctrl+o")
    yield from doing("open the session", person.answer(session))
    yield "open the session", lambda: store.state is not saved and bool(store.state.entries) and person.settled()
    opened = store.state
    assert [(e.key, e.plan) for e in opened.entries] == [(e.key, e.plan) for e in saved.entries]
    assert (opened.base, opened.marks) == (saved.base, saved.marks)
    makespans = [e.variant.metrics.makespan if e.variant else 0 for e in opened.entries]
    assert makespans == [e.variant.metrics.makespan if e.variant else 0 for e in saved.entries]
    assert edits.options_of(opened.entries[1].plan, "decompose") == {"ring": "one"}


def _dialog() -> QFileDialog | None:
    """The file dialog that is open and has the keyboard."""
    found = QApplication.activeModalWidget()
    return found if isinstance(found, QFileDialog) and found.isActiveWindow() else None


def _give_focus(window: QWidget) -> None:
    """Give the keyboard to the window on top: on a bare X server there is no window manager that would."""
    top = QApplication.activeModalWidget() or window
    if QApplication.activePopupWidget() is None and not top.isActiveWindow():
        top.activateWindow()


def sit(file: Path, folder: Path, limit: float) -> tuple[list[Step], list[str]]:
    """Do it. The steps, and what Qt warned of; raises AssertionError where something is not as it should be.

    Works in `folder`, with a copy of the file there: Qt's own file dialog takes in each folder that is typed on the way
    to another in one go, which is 0.1 s of the GUI's thread for one that holds a thousand folders, as that of temporary
    files may.
    """
    os.chdir(folder)
    file = Path(shutil.copy(file, folder))
    warnings: list[str] = []

    def heard(kind: QtMsgType, context: Any, message: str) -> None:
        if kind not in (QtMsgType.QtDebugMsg, QtMsgType.QtInfoMsg) and not message.startswith(_HARMLESS):
            warnings.append(message)

    qInstallMessageHandler(heard)
    application = QApplication(sys.argv[:1])
    application.setAttribute(Qt.ApplicationAttribute.AA_DontUseNativeDialogs)
    application.setDoubleClickInterval(1)  # clicks follow each other faster than a person's
    explorer = Explorer(Settings(folder / "window.ini"))
    explorer.show()
    explorer.window.setGeometry(0, 0, 1440, 900)
    hands: Hands = XHands() if QGuiApplication.platformName() == "xcb" else QtHands()
    script = whole_sitting(Person(explorer, hands), file, folder)
    sitting = Sitting(script, lambda: _give_focus(explorer.window), limit)
    try:
        sitting.run()
    finally:
        explorer.window.close()
    return sitting.steps, warnings


def main(argv: list[str] | None = None) -> int:
    """Exit status 0 when the sitting went through. The report's last line is JSON, for whoever started this."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("file", nargs="?", type=Path, default=SAMPLE, metavar="FILE")
    parser.add_argument(
        "--limit", type=float, default=LIMIT_S, help="seconds that a step may take; default %(default)g"
    )
    options = parser.parse_args(argv)
    faulthandler.enable()
    faulthandler.dump_traceback_later(_STEPS * options.limit, exit=True)  # whatever hangs ends, and says where
    with tempfile.TemporaryDirectory(prefix="lapstrake-sitting-") as folder:
        steps, warnings = sit(options.file.resolve(), Path(folder), options.limit)
        os.chdir(ROOT)  # what is worked in cannot be removed everywhere
    print(f"{'step':<24}{'seconds':>9}{'block':>9}{'cpu':>9}   (block of the event loop, and processor time in it; ms)")
    for step in steps:
        print(f"{step.name:<24}{step.seconds:>9.2f}{step.blocked * 1e3:>9.1f}{step.busy * 1e3:>9.1f}")
    blocked = max(steps, key=lambda step: step.blocked)
    busy = max(steps, key=lambda step: step.busy)
    print(f"longest block of the event loop: {blocked.blocked * 1e3:.1f} ms by the clock ({blocked.name}), ", end="")
    print(f"{busy.busy * 1e3:.1f} ms of processor time ({busy.name})")
    for warning in warnings:
        print(f"Qt warned: {warning}")
    platform = QGuiApplication.platformName()
    said = {"platform": platform, "blocked": blocked.blocked, "busy": busy.busy, "warnings": warnings}
    print(json.dumps(said))
    faulthandler.cancel_dump_traceback_later()
    return 0


if __name__ == "__main__":
    sys.exit(main())
