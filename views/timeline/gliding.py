"""Moves the pictures of entries that got another plan from where slices were to where they are."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, QVariantAnimation, Signal

from engine.session.session import Session
from engine.session.variant import Variant
from views.theme import motion_allowed
from views.timeline.glide import MILLISECONDS, Glide, worthwhile
from views.timeline.scene import Positions


class Gliding(QObject):
    """Remembers which variant of each entry was seen last."""

    moved = Signal()
    """Slices are elsewhere than at the last frame."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._seen: dict[str, Variant] = {}
        self._glides: dict[str, Glide] = {}
        self._part = 1.0
        self._animation = QVariantAnimation(self)
        self._animation.setStartValue(0.0)
        self._animation.setEndValue(1.0)
        self._animation.setDuration(MILLISECONDS)
        self._animation.valueChanged.connect(self._went_on)
        self._animation.finished.connect(self._landed)

    def follow(self, session: Session, *, visible: bool) -> None:
        """Begin to move what has another timeline now, where it can be seen and motion is wanted."""
        began = False
        for entry in session.entries:
            old, new = self._seen.get(entry.key), entry.variant
            if new is None or old is new:
                continue
            self._seen[entry.key] = new
            if old is not None and motion_allowed() and visible and worthwhile(old.timeline, new.timeline):
                self._glides[entry.key] = Glide(old.timeline, new.timeline)
                began = True
        keys = {entry.key for entry in session.entries}
        self._seen = {key: value for key, value in self._seen.items() if key in keys}
        if began:
            self._animation.stop()
            self._animation.start()

    def positions(self, session: Session) -> Mapping[str, Positions]:
        """Entry key → where slices are drawn, for entries that move."""
        shown = {e.key: e.variant.timeline for e in session.entries if e.variant is not None}
        return {key: glide.at(self._part) for key, glide in self._glides.items() if shown.get(key) is glide.timeline}

    def _went_on(self, part: float) -> None:
        self._part = part
        self.moved.emit()

    def _landed(self) -> None:
        self._glides.clear()
        self._part = 1.0
        self.moved.emit()
