"""Keys of modules: none is given twice in one window, so that what is known of a module by its key is never taken for
what is known of a later one."""

from __future__ import annotations

from dataclasses import replace

from app.succession import Wanted
from engine.session import edits
from engine.session.session import FIRST


class Keys:
    """Counts up over all modules so far."""

    def __init__(self) -> None:
        self._last = int(FIRST) - 1

    def new(self) -> str:
        self._last += 1
        return str(self._last)

    def given(self, wanted: Wanted) -> Wanted:
        """What is wanted, with keys for its modules that none had before."""
        keys = {module.key: self.new() for module in wanted.session.modules}
        hashes = {keys[key]: found for key, found in wanted.hashes.items()}
        return replace(wanted, session=edits.rekeyed(wanted.session, keys), hashes=hashes)
