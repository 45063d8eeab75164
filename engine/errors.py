"""Errors that are meant for the user: what was expected, what came, where, and what to do."""

from __future__ import annotations

from dataclasses import dataclass


class LapstrakeError(Exception):
    """Base of every error that is shown to the user as a sentence, never as a traceback. Exit code 2."""


class UsageError(LapstrakeError):
    """An option, a plan or a name that cannot be used."""


class UnsupportedError(LapstrakeError):
    """Something well-formed that this version, or this machine, cannot do; says so by name."""


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a text that was read. Lines and columns count from 1."""

    path: str
    line: int
    column: int
    text: str
    """The line itself, without its newline."""

    def __str__(self) -> str:
        text = self.text.expandtabs(1)
        first = max(0, self.column - 80)
        shown = text[first : first + 160]
        return f"{self.path}:{self.line}:{self.column}\n  {shown}\n  {' ' * (self.column - 1 - first)}^"


class InputError(LapstrakeError):
    """A file that cannot be read as what it should be."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(message if place is None else f"{place.path}:{place.line}:{place.column}: {message}")
        self.message = message
        self.place = place


class WorkerError(LapstrakeError):
    """A worker process died, or did not answer before its deadline; quotes what it said last."""


class OutOfMemory(WorkerError):
    """Memory, of the machine or of a device, was not enough for what a worker was at; quotes who said so."""
