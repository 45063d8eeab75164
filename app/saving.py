"""Saves the session, asks about work that is in no file before it goes, and says in the title when there is some."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog, QMessageBox

from app import kept
from app.endings import ended
from engine.errors import LapstrakeError
from engine.session import files

if TYPE_CHECKING:
    from app.explorer import Explorer

_Button = QMessageBox.StandardButton


class Saving:
    """What File → Save does, and what happens before a session is replaced or the window closes."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._documents = explorer.documents
        self._left = False
        explorer.documents.may_go = self.may_go
        explorer.documents.kept.connect(self._mark)
        explorer.store.subscribe(lambda session, changed: self._mark())
        self._mark()

    def save(self) -> None:
        path = self._documents.session_path
        if not path:
            self.ask_save()
        elif not self._documents.overtaken or self._may_overwrite(path):
            self.save_to(path)

    def _may_overwrite(self, path: str) -> bool:
        """Ask whether what another window has saved may go."""
        answer = QMessageBox.question(
            self._explorer.window,
            "Saved elsewhere",
            f"{Path(path).name} was written by another window or program since it was opened here. Overwrite it? "
            "“Save session as …” keeps both.",
            _Button.Save | _Button.Cancel,
            _Button.Cancel,
        )
        return answer == _Button.Save

    def ask_save(self) -> None:
        name = str(Path(self._explorer.store.state.path).with_suffix(files.SUFFIX))
        filters = f"Sessions (*{files.SUFFIX})"
        path, _ = QFileDialog.getSaveFileName(self._explorer.window, "Save session", name, filters)
        path = path and ended(self._explorer.window, path, files.SUFFIX)
        if path:
            self.save_to(path)

    def save_to(self, path: str) -> None:
        """Save, with recordings that the window made beside it; a failure is said until it is dismissed."""
        trouble = self._keep_beside(path) or self._documents.save(path)
        notices = self._explorer.window.notices
        if trouble:
            said = f"The session was not saved. {trouble}"
            notices.say("saving", said, (("Save elsewhere …", self.ask_save),))
        else:
            notices.dismiss("saving")
            self._explorer.say(f"saved {Path(path).name}")
        self._mark()

    def may_go(self) -> bool:
        """Whether what is open may be replaced or closed: it is saved, gets saved now, or is given up."""
        if self._left or not self._documents.unsaved:
            return True
        answer = QMessageBox.question(
            self._explorer.window,
            "Not saved",
            "The variants, marks and modules of the open session were not saved. Save them first?",
            _Button.Save | _Button.Discard | _Button.Cancel,
            _Button.Save,
        )
        if answer == _Button.Save:
            self.save()
            return not self._documents.unsaved
        return answer == _Button.Discard

    def leave(self) -> None:
        """Nobody is asked any more."""
        self._left = True

    def _mark(self) -> None:
        self._explorer.window.name_session(self._documents.session_path)
        self._explorer.window.setWindowModified(self._documents.unsaved)

    def _keep_beside(self, path: str) -> str:
        """Copy recordings that the window made to where the session is saved. Returns what went wrong."""
        store = self._explorer.store
        try:
            moved = kept.moved_beside(store.state, path, self._explorer.settings.folder / kept.FOLDER)
        except (OSError, LapstrakeError) as error:
            return str(error)
        store.settle(entries=moved.entries, modules=moved.modules)
        return ""
