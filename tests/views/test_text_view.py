"""Another text in the same place shows what was read there before."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from tests.views.fake_host import FakeHost
from views.hlo_text.lines import printed
from views.hlo_text.text_view import TextView


def text(*names: str) -> list[str]:
    return ["HloModule m", "ENTRY %main () -> f32[] {", *(f"  %{name} = f32[] x()" for name in names), "}"]


def test_what_is_read_stays_in_sight_when_the_text_is_another(qtbot: QtBot, host: FakeHost) -> None:
    view = TextView(host)
    qtbot.addWidget(view)
    view.resize(500, 200)
    view.show()
    qtbot.waitExposed(view)
    names = [f"a.{n}" for n in range(100)]
    view.set_text(printed(text(*names)).text)
    bar = view.verticalScrollBar()
    bar.setValue(50)
    read = view.side.lines[50]
    view.set_text(printed(text("new.1", "new.2", *names[:20], *names[25:])).text)
    assert view.side.lines[bar.value()] == read
    bar.setValue(0)
    view.set_text(printed(text(*names)).text)
    assert bar.value() == 0
    view.close()
