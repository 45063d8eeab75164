"""Saves what is shown as pictures: asks where, has it drawn, and writes the file in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFileDialog

from app.endings import ended
from engine.errors import LapstrakeError
from engine.export.writing import write_atomically
from views.graph.export import graph_picture
from views.pictures import Encode, timelines_picture

if TYPE_CHECKING:
    from app.explorer import Explorer


class Picturing(QObject):
    """What the actions that save pictures do."""

    _ended = Signal(str, str)
    """A path, and why nothing was written there; empty where it was."""

    def __init__(self, explorer: Explorer) -> None:
        super().__init__(explorer)
        self._explorer = explorer
        self._threads: list[Thread] = []
        self._ended.connect(self._tell, Qt.ConnectionType.QueuedConnection)

    def ask_timelines(self) -> None:
        view = self._explorer.window.timelines.view
        self._ask("Save timelines", ".png", "Pictures (*.png *.svg)", lambda path: timelines_picture(view, path))

    def ask_graph(self) -> None:
        view = self._explorer.graph.view
        self._ask("Save graph", ".graph.png", "Graphs (*.png *.svg *.dot)", lambda path: graph_picture(view, path))

    def close(self) -> None:
        """Wait for what is being written."""
        for thread in self._threads:
            thread.join()

    def _ask(self, title: str, ending: str, filters: str, draw: Callable[[str], Encode]) -> None:
        name = f"{Path(self._explorer.store.state.path).stem}{ending}"
        path, _ = QFileDialog.getSaveFileName(self._explorer.window, title, name, filters)
        path = path and ended(self._explorer.window, path, ".png")
        if not path:
            return
        try:
            encode = draw(path)
        except LapstrakeError as error:
            self._tell(path, str(error))
            return
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = Thread(target=self._write, args=(path, encode), name=f"writing {path}")
        self._threads.append(thread)
        thread.start()

    def _write(self, path: str, encode: Encode) -> None:
        trouble = ""
        try:
            write_atomically(path, encode())
        except LapstrakeError as error:
            trouble = str(error)
        self._ended.emit(path, trouble)

    def _tell(self, path: str, trouble: str) -> None:
        notices = self._explorer.window.notices
        if trouble:
            notices.say("picture", f"The picture was not saved. {trouble}")
        else:
            notices.dismiss("picture")
            self._explorer.say(f"saved {Path(path).name}")
