"""Stops a production compiler once it has scheduled: what follows takes ten times as long and predicts nothing."""

from __future__ import annotations


class Stop:
    """A function for behind the scheduler that ends the compilation there, while `wanted`."""

    SAID = "lapstrake: scheduled, as far as was asked"
    """Part of the error that the compilation ends with."""

    def __init__(self) -> None:
        self.wanted = False

    def __call__(self, serialised: bytes) -> None:
        """Raises RuntimeError, which the compiler takes as its own, where the compilation is to end."""
        if self.wanted:
            raise RuntimeError(self.SAID)
