"""Notices that files changed on disk, also those that are removed first and come again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from PySide6.QtCore import QFileSystemWatcher, QObject, Signal

from engine.hlo.zipped import archive_of


class FileWatch(QObject):
    """Watches files, and for one that is not there its folder."""

    changed = Signal(str)
    """The file of that path is another one, or is there again."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._wanted: Mapping[str, tuple[str, ...]] = {}
        """What is watched for each file on disk: itself, or files in it, where it is a .zip."""
        self._missing: frozenset[str] = frozenset()
        self._watcher = QFileSystemWatcher(self)
        self._watcher.fileChanged.connect(self._file_changed)
        self._watcher.directoryChanged.connect(lambda _: self._look())

    def watch(self, paths: Iterable[str]) -> None:
        """Watch these files instead of those before."""
        wanted: dict[str, tuple[str, ...]] = {}
        for path in dict.fromkeys(paths):
            held = str(archive_of(path) or path)
            wanted[held] = (*wanted.get(held, ()), path)
        self._wanted = wanted
        self._missing = frozenset(path for path in self._wanted if not Path(path).is_file())
        self._follow()

    def _file_changed(self, path: str) -> None:
        if path not in self._wanted:
            return
        if Path(path).is_file():
            self._follow()  # editors replace files: the new one must be watched again
            self._tell(path)
        else:
            self._missing |= {path}
            self._follow()
            self._look()  # it may have come again meanwhile

    def _look(self) -> None:
        """Tell of files that are there again."""
        for path in sorted(self._missing):
            if Path(path).is_file():
                self._missing -= {path}
                self._follow()
                self._tell(path)

    def _tell(self, file: str) -> None:
        for path in self._wanted.get(file, ()):
            self.changed.emit(path)

    def _follow(self) -> None:
        files = {path for path in self._wanted.keys() - self._missing if Path(path).is_file()}
        folders = {str(Path(path).absolute().parent) for path in self._missing}
        wanted = files | {folder for folder in folders if Path(folder).is_dir()}
        watched = {*self._watcher.files(), *self._watcher.directories()}
        if watched - wanted:
            self._watcher.removePaths(list(watched - wanted))
        if wanted - watched:
            self._watcher.addPaths(list(wanted - watched))
