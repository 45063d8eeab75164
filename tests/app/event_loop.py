"""Runs a script of a sitting beside the event loop, never in its place, and measures how long the loop is blocked."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QObject, Qt, QTimer

BEAT_MS = 4
Condition = Callable[[], bool]
Script = Generator[tuple[str, Condition], None, None]
"""A generator: each thing it yields is what it does and the condition on which it goes on."""


@dataclass
class Step:
    """A part of a sitting by its name."""

    name: str
    seconds: float = 0.0
    blocked: float = 0.0
    """Seconds by the clock of the longest time in which the event loop served no timer."""
    busy: float = 0.0
    """Processor time of the GUI's thread in the busiest of them: other work on the machine counts for little."""


class Sitting(QObject):
    """A timer's beats carry the script on. Between two beats the event loop was at work, or blocked."""

    def __init__(self, script: Script, between: Callable[[], None], limit: float = 60.0) -> None:
        """`between` is called at every beat; `limit`: seconds after which a condition counts as never coming true."""
        super().__init__()
        self.steps: list[Step] = []
        self._script = script
        self._between = between
        self._limit = limit
        self._until = time.monotonic() + limit
        self._met: Condition = lambda: True
        self._error: BaseException | None = None
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(BEAT_MS)
        self._timer.timeout.connect(self._beat)
        self._last = time.perf_counter(), time.thread_time()

    def run(self) -> None:
        """Returns at the script's end; raises what that raised, AssertionError for a condition not met in time."""
        self._timer.start()
        QCoreApplication.exec()
        if self._error is not None:
            raise self._error

    def _beat(self) -> None:
        now, own = time.perf_counter(), time.thread_time()
        if self.steps:
            step = self.steps[-1]
            step.seconds += now - self._last[0]
            step.blocked = max(step.blocked, now - self._last[0] - BEAT_MS / 1000)
            step.busy = max(step.busy, own - self._last[1])
        self._last = now, own
        self._between()
        try:
            self._go_on()
        except StopIteration:
            self._end()
        except BaseException as error:
            self._error = error
            self._end()

    def _go_on(self) -> None:
        if self._met():
            name, self._met = next(self._script)
            self._until = time.monotonic() + self._limit
            if not self.steps or self.steps[-1].name != name:
                self.steps.append(Step(name))
        elif time.monotonic() > self._until:
            name = self.steps[-1].name
            # Raised at the place in the script that waits.
            self._script.throw(AssertionError(f"{name}: what it waits for did not come within {self._limit:g} s"))

    def _end(self) -> None:
        self._timer.stop()
        QCoreApplication.exit()
