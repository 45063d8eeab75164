"""What is remembered between runs: layout, theme, recent files. Kept in one file in the platform's place for it."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

import platformdirs
from PySide6.QtCore import QByteArray, QSettings

_MOST_RECENT = 12
_ADDRESS = "file://"


def state_folder() -> Path:
    """Where settings and autosaved sessions live; made when missing."""
    return Path(platformdirs.user_state_dir("lapstrake", appauthor=False, ensure_exists=True))


class Settings:
    """Typed access to the settings file."""

    def __init__(self, path: Path | None = None) -> None:
        place = path if path is not None else state_folder() / "window.ini"
        self.folder = place.parent
        """Where else what is remembered may be kept."""
        self._file = QSettings(str(place), QSettings.Format.IniFormat)

    @property
    def theme(self) -> str:
        """``system``, ``light`` or ``dark``."""
        value = self._file.value("theme", "system")
        return value if value in ("system", "light", "dark") else "system"

    @theme.setter
    def theme(self, value: str) -> None:
        self._file.setValue("theme", value)

    @property
    def recent(self) -> tuple[str, ...]:
        """Paths opened before, newest first."""
        value = self._file.value("recent", [])
        paths = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        return tuple(_path(str(kept)) for kept in paths if kept)

    def remember(self, path: str) -> None:
        """Put a path at the front of the recent ones."""
        paths = [path, *(p for p in self.recent if p != path)]
        self._file.setValue("recent", [_kept(p) for p in paths[:_MOST_RECENT]])

    @property
    def geometry(self) -> QByteArray | None:
        return self._bytes("geometry")

    @geometry.setter
    def geometry(self, value: QByteArray) -> None:
        self._file.setValue("geometry", value)

    @property
    def layout(self) -> QByteArray | None:
        return self._bytes("layout")

    @layout.setter
    def layout(self, value: QByteArray) -> None:
        self._file.setValue("layout", value)

    @property
    def guided(self) -> bool:
        """Whether the first-start guide was seen."""
        return self._file.value("guided", "no") == "yes"

    @guided.setter
    def guided(self, value: bool) -> None:
        self._file.setValue("guided", "yes" if value else "no")

    def sync(self) -> None:
        """Write now."""
        self._file.sync()

    def _bytes(self, key: str) -> QByteArray | None:
        value = self._file.value(key)
        return value if isinstance(value, QByteArray) and not value.isEmpty() else None


def _kept(path: str) -> str:
    """A path as text that a file can hold: as an address where its bytes are not UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return _ADDRESS + quote_from_bytes(os.fsencode(path))
    return path


def _path(kept: str) -> str:
    """The path that `_kept` gave this text."""
    return os.fsdecode(unquote_to_bytes(kept.removeprefix(_ADDRESS))) if kept.startswith(_ADDRESS) else kept
