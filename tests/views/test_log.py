from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from tests.views.fake_host import FakeHost
from views.jobs.log import JobLog
from views.ports import JobState
from views.status import StatusBar


class TestLog:
    def test_a_running_job_has_progress_and_can_be_cancelled(self, qtbot: QtBot) -> None:
        host = FakeHost()
        pane = JobLog(host)
        qtbot.addWidget(pane)
        pane.show()
        assert pane.empty.isVisible()
        host.set_jobs(JobState(7, "planning B", 0.5, "scheduling"))
        assert not pane.grab().isNull()
        pane.table.cellClicked.emit(0, 0)
        assert host.cancelled == []
        pane.table.cellClicked.emit(0, 3)
        assert host.cancelled == [7]
        host.set_jobs(JobState(7, "planning B", 0.5, "", "failed", "no order fits a budget of 1"))
        item = pane.table.item(0, 1)
        assert item is not None
        assert item.text() == "no order fits a budget of 1"
        pane.grab()
        pane.table.cellClicked.emit(0, 3)
        assert host.cancelled == [7]
        pane.close()

    def test_the_status_bar_shows_the_oldest_job(self, qtbot: QtBot) -> None:
        host = FakeHost()
        bar = StatusBar(host)
        qtbot.addWidget(bar)
        host.set_jobs(JobState(2, "planning C"), JobState(1, "planning B", 0.25))
        assert bar.title.text() == "planning B (+1)"
        QTest.mouseClick(bar.cancel, Qt.MouseButton.LeftButton)
        assert host.cancelled == [1]
