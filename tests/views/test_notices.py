"""Notices stay until they are dealt with, one about each thing, and not too many."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QLabel, QToolButton
from pytestqt.qtbot import QtBot

from tests.views.fake_host import FakeHost
from views.notices import MOST, Notices


def test_one_about_the_same_takes_the_place_of_the_one_before(qtbot: QtBot) -> None:
    notices = Notices(FakeHost())
    qtbot.addWidget(notices)
    assert notices.isHidden()
    done: list[str] = []
    notices.say("a", "first")
    notices.say("b", "second", (("Try again", lambda: done.append("b")),))
    notices.say("a", "third")
    assert notices.texts() == ("third", "second")
    notices.take("Try again")
    assert done == ["b"]
    assert notices.texts() == ("third",)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    (cross,) = notices.findChildren(QToolButton)
    cross.click()
    assert notices.isHidden()


def test_the_oldest_goes_and_the_place_has_lines_of_its_own(qtbot: QtBot) -> None:
    notices = Notices(FakeHost())
    qtbot.addWidget(notices)
    for number in range(MOST + 2):
        notices.say(str(number), f"{number}\n\nstep.hlo:{number}:1\n  text\n  ^")
    assert len(notices.texts()) == MOST
    assert notices.texts()[0].startswith(f"{MOST + 1}\n")
    shown = [label.text() for label in notices.findChildren(QLabel)]
    assert f"step.hlo:{MOST + 1}:1\n  text\n  ^" in shown
    notices.clear()
    assert notices.texts() == ()
