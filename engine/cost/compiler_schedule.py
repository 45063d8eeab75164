"""XLA's predicted schedule (ScheduleProto text, ``--xla_dump_latency_hiding_schedule``): an order with its cycles."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite, nan

import numpy as np

from engine.chips.topology import Floats
from engine.cost.text_format import TextMessage, unquoted
from engine.errors import InputError
from engine.quantities import PICOSECONDS

PREDICTED_TEXT = "# Predicted by Lapstrake: nothing in this file was measured, and no compiler said it."
"""First line of the text protos that are written here, by which they are known again."""
_BEGINS = re.compile(r"(?:\s|#[^\n]*\n)*(?:hlo_module|computation_schedules)\b")


@dataclass(frozen=True, eq=False)
class ScheduledComputation:
    """One computation in the order that the compiler chose; arrays over its n instructions are read-only."""

    name: str
    names: tuple[str, ...]
    opcodes: tuple[str, ...]
    start: Floats
    """Cycles from the start of the computation, shape [n]."""
    end: Floats
    total_cycles: float
    wasted_cycles: float
    """In which nothing ran because a transfer was waited for."""
    cycles_per_microsecond: float

    def picoseconds(self) -> tuple[int, ...]:
        """How long each instruction takes on the compute stream; for a done without what it waits."""
        scale = PICOSECONDS["µs"] / self.cycles_per_microsecond
        return tuple(round(float(cycles) * scale) for cycles in self.end - self.start)


@dataclass(frozen=True, eq=False)
class CompilerSchedule:
    """What a schedule dump holds. Only computations with asynchronous operations are in it."""

    module: str
    computations: tuple[ScheduledComputation, ...]


def is_schedule(text: str) -> bool:
    """Whether a text looks like a ScheduleProto."""
    return "computation_schedules" in text and _BEGINS.match(text) is not None


def is_predicted(text: str) -> bool:
    """Whether a text of costs, or a ScheduleProto, was written by Lapstrake."""
    return text.startswith(PREDICTED_TEXT)


def read_schedule(text: str, path: str) -> CompilerSchedule:
    """Read a ScheduleProto in text format. Raises InputError with the place of what is wrong."""
    message = TextMessage(text, path)
    known = _Names()
    schedules: list[tuple[int, _Rows]] = []
    for name, value in message.fields():
        if name == "hlo_module" and value is None:
            known.read_module(message)
        elif name == "computation_schedules" and value is None:
            rows = _Rows()
            rows.read(message)
            schedules.append((rows.computation, rows))
        elif value is None:
            message.skip()
    if not schedules:
        raise InputError(f"{path}: a ScheduleProto was expected, but it holds no computation_schedules")
    return CompilerSchedule(known.module, tuple(rows.build(known, path) for _, rows in schedules))


class _Names:
    """Names and opcodes of the dump's own module, by id."""

    def __init__(self) -> None:
        self.module = ""
        self.computations: dict[int, str] = {}
        self.instructions: dict[int, tuple[str, str]] = {}

    def read_module(self, message: TextMessage) -> None:
        for name, value in message.fields():
            if name == "name" and value is not None:
                self.module = unquoted(value)
            elif name == "computations" and value is None:
                self._read_computation(message)
            elif value is None:
                message.skip()

    def _read_computation(self, message: TextMessage) -> None:
        called, id_ = "", 0
        for name, value in message.fields():
            if name == "instructions" and value is None:
                self._read_instruction(message)
            elif name == "name" and value is not None:
                called = unquoted(value)
            elif name == "id" and value is not None:
                id_ = _integer(message, value)
            elif value is None:
                message.skip()
        self.computations[id_] = called

    def _read_instruction(self, message: TextMessage) -> None:
        called, opcode, id_ = "", "", 0
        for name, value in message.fields():
            if value is None:
                message.skip()
            elif name == "name":
                called = unquoted(value)
            elif name == "opcode":
                opcode = unquoted(value)
            elif name == "id":
                id_ = _integer(message, value)
        self.instructions[id_] = (called, opcode)


class _Rows:
    """One computation_schedules message; fields with the value 0 are left out of the text."""

    def __init__(self) -> None:
        self.computation = 0
        self.ids: list[int] = []
        self.start: list[float] = []
        self.end: list[float] = []
        self.statistics: dict[str, float] = {}
        self.clock = 0.0

    def read(self, message: TextMessage) -> None:
        for name, value in message.fields():
            if name == "instructions" and value is None:
                row = self._numbers(message)
                self.ids.append(int(row.get("id", 0.0)))
                self.start.append(row.get("start_timestamp_cycles", 0.0))
                self.end.append(row.get("end_timestamp_cycles", 0.0))
            elif name == "scheduler_statistics" and value is None:
                self.statistics = self._numbers(message)
            elif value is None:
                message.skip()
            elif name == "computation_id":
                self.computation = _integer(message, value)
            elif name == "cycles_per_microsecond":
                self.clock = _real(message, name, value)

    def _numbers(self, message: TextMessage) -> dict[str, float]:
        row: dict[str, float] = {}
        for name, value in message.fields():
            if value is None:
                message.skip()
            else:
                row[name] = _integer(message, value) if name == "id" else _real(message, name, value)
        return row

    def build(self, known: _Names, path: str) -> ScheduledComputation:
        if self.computation not in known.computations:
            raise InputError(f"{path}: it schedules computation {self.computation}, which its module does not have")
        missing = [id_ for id_ in self.ids if id_ not in known.instructions]
        if missing:
            raise InputError(f"{path}: it schedules instruction {missing[0]}, which its module does not have")
        if self.clock <= 0:
            raise InputError(f"{path}: cycles_per_microsecond above 0 was expected, but {self.clock:g} came")
        start, end = np.array(self.start), np.array(self.end)
        start.setflags(write=False)
        end.setflags(write=False)
        return ScheduledComputation(
            name=known.computations[self.computation],
            names=tuple(known.instructions[id_][0] for id_ in self.ids),
            opcodes=tuple(known.instructions[id_][1] for id_ in self.ids),
            start=start,
            end=end,
            total_cycles=self.statistics.get("total_cycles", 0.0),
            wasted_cycles=self.statistics.get("total_wasted_cycles", 0.0),
            cycles_per_microsecond=self.clock,
        )


def _integer(message: TextMessage, value: str) -> int:
    if not value.isdecimal():
        raise message.error(f"a number was expected, but {value} came")
    return int(value)


def _real(message: TextMessage, name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = nan
    if not isfinite(number):
        raise message.error(f"{name}: a number was expected, but {value} came")
    return number
