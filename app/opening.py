"""How files come in: opened, added beside what is open, dropped, picked from a dump folder; and how modules go again.

What was not saved is asked about before another file takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QFileDialog, QInputDialog, QMenu

from engine.export.captured import captured_file
from engine.hlo.dump import modules_in
from engine.session import edits, files
from engine.session.plan import MachineSpec
from engine.session.session import ModuleFile
from views.dump import DumpDialog
from views.menu_text import verbatim

if TYPE_CHECKING:
    from app.explorer import Explorer

SAMPLE = "mlp_fig3.hlo"
_FILTER = "HLO (*.hlo *.txt *.pb *.hlo.pb *.mlir *.mlirbc *.gz *.zip *.lapstrake);;All files (*)"


class Opening:
    """What File → Open, Add, Remove and files dropped on the window do."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._documents = explorer.documents
        self._store = explorer.store

    def open(self, *paths: str, machine: MachineSpec | None = None) -> None:
        """Open modules, a session, or what is picked of a dump folder, in place of what is open."""

        def replace(found: Sequence[str]) -> None:
            self._documents.open(*found, machine=machine)

        others = [path for path in self._files(paths) if not self._explorer.imports.take(path)]
        if others:
            self._resolved(others, replace)

    def _files(self, paths: Sequence[str]) -> list[str]:
        """Those that can be looked at as often as need be: not pipes, which would stop the window until they end."""
        pipes = [path for path in paths if Path(path).is_fifo()]
        for path in pipes:
            said = (
                f"{path} was not opened: a file was expected, but it is a pipe. Write what comes out of it into a file."
            )
            self._explorer.window.notices.say(path, said)
        return [path for path in paths if path not in pipes]

    def add(self, *paths: str) -> None:
        """Put modules beside those that are open."""
        self._resolved(self._files(paths), lambda found: self._documents.add(*found))

    def drop(self, paths: Sequence[str]) -> None:
        """Take files that were dropped on the window; where something is open, ask whether it stays."""
        others = [path for path in self._files(paths) if not self._explorer.imports.take(path)]
        if not others:
            return
        session = self._store.state
        if not session.entries or session.problem:
            self.open(*others)
            return
        menu = QMenu(self._explorer.window)
        menu.setObjectName("dropped")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        names = Path(others[0]).name if len(others) == 1 else f"{len(others)} files"
        if not any(files.is_session(path) for path in others):
            adding = menu.addAction(verbatim(f"Add {names} beside {session.label(session.modules[0].key)}"))
            adding.triggered.connect(lambda: self.add(*others))
            menu.setDefaultAction(adding)
        menu.addAction(verbatim(f"Open {names} instead")).triggered.connect(lambda: self.open(*others))
        menu.addSeparator()
        menu.addAction("Cancel")
        menu.popup(QCursor.pos())

    def ask_open(self) -> None:
        paths, _ = QFileDialog.getOpenFileNames(self._explorer.window, "Open modules", self._folder(), _FILTER)
        if paths:
            self.open(*paths)

    def ask_add(self) -> None:
        paths, _ = QFileDialog.getOpenFileNames(self._explorer.window, "Add modules", self._folder(), _FILTER)
        if paths:
            self.add(*paths)

    def ask_folder(self) -> None:
        title = "Open a folder: an XLA dump, a capture, or a bundle"
        path = QFileDialog.getExistingDirectory(self._explorer.window, title, self._folder())
        if path:
            self.open(path)

    def open_sample(self) -> None:
        self.open(str(Path(str(resources.files("app"))).parent / "samples" / SAMPLE))

    def recover(self) -> None:
        """Go on with the last session, as one that was never saved."""
        path = self._explorer.recoverable()
        if path:
            self._documents.recover(path)

    def remove(self) -> None:
        """Take the active module and its variants out of the session."""
        module = self._store.state.active_module
        if module is not None:
            self.remove_module(module)

    def remove_module(self, module: ModuleFile) -> None:
        session = self._store.state
        self._store.become(f"Remove {session.label(module.key)}", edits.module_removed(session, module.key))

    def ask_name(self) -> None:
        """Ask what the active module is to be called."""
        session = self._store.state
        module = session.active_module
        if module is None:
            return
        name, accepted = QInputDialog.getText(
            self._explorer.window,
            "Name",
            verbatim(f"Name of the module {Path(module.path).name}:"),
            text=session.label(module.key),
        )
        if accepted:
            self._store.become(f"Name {session.label(module.key)}", edits.module_named(session, module.key, name))

    def _resolved(self, paths: Sequence[str], take: Callable[[Sequence[str]], None]) -> None:
        """Have `take` called with files: those given, and what the user picks of a dump folder among them."""
        folder = next((path for path in paths if _is_dump(path)), None)
        if folder is None:
            take(paths)
            return
        found = modules_in(Path(folder))
        if len(found) == 1:
            self._resolved([str(found[0].path) if path == folder else path for path in paths], take)
            return
        dialog = DumpDialog(Path(folder), found, self._explorer.window)
        dialog.accepted.connect(
            lambda: self._resolved([*(p for p in paths if p != folder), *map(str, dialog.picked())], take)
        )
        dialog.open()

    def _folder(self) -> str:
        path = self._store.state.path
        return str(Path(path).parent) if path else ""


def _is_dump(path: str) -> bool:
    """Whether a folder holds an XLA dump, and is none that stands for one module."""
    if not Path(path).is_dir() or captured_file(path) != path:
        return False
    try:
        return bool(modules_in(Path(path)))
    except OSError:
        return False
