"""Damaged files: whatever is done to them, reading ends with a module or with an error for the user, and in time."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from engine.errors import InputError, LapstrakeError
from engine.export.hlo import export_bytes
from engine.hlo.reading import read, read_here
from engine.ir.graphs import graphs_of
from engine.ir.module import Module
from engine.ir.trips import trips_of
from tests.engine.hlo.texts import BIG_CONSTANT, GATHER, LOOP, SCHEDULED

TEXTS = (GATHER, LOOP, SCHEDULED, BIG_CONSTANT)


@pytest.mark.parametrize("first", range(0, 150, 50))
def test_mutated_texts(first: int) -> None:
    ended = [attempt(mutate_text(random.Random(seed)).encode()) for seed in range(first, first + 50)]
    assert True in ended  # some mutations do no harm: else nothing behind the parser would be tried
    assert False in ended


@pytest.mark.parametrize("first", range(0, 50, 25))
def test_mutated_protos(first: int) -> None:
    ended = [attempt(mutate_proto(random.Random(seed))) for seed in range(first, first + 25)]
    assert False in ended


def attempt(data: bytes) -> bool:
    """Whether `data` could be read; everything that works on a module gets it."""
    try:
        module = read(data, name="mutant", deadline=20.0)
    except InputError as error:
        return not str(error).startswith("mutant:")
    examine(module)
    return True


def examine(module: Module) -> None:
    graphs = graphs_of(module)
    assert module.proto.entry_computation_id in graphs
    trips_of(module)
    try:
        export_bytes(module, "hlo")
    except LapstrakeError:
        return


def mutate_text(rng: random.Random) -> str:
    text = rng.choice(TEXTS)
    for _ in range(rng.randint(1, 4)):
        text = rng.choice(TEXT_MUTATIONS)(text, rng)
    return text


def cut(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + text[start + rng.randint(1, 12) :]


def repeat(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + text[start : start + rng.randint(1, 30)] * 2 + text[start:]


def drop_line(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    del lines[rng.randrange(len(lines))]
    return "\n".join(lines) or "\n"


def swap_lines(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def replace_number(text: str, rng: random.Random) -> str:
    return replace_match(r"\d+", text, rng, rng.choice(["0", "1", "7", "-1", "99999999999", "4294967296"]))


def replace_word(text: str, rng: random.Random) -> str:
    words = re.findall(r"[a-z][\w\-]+", text)
    return replace_match(r"[a-z][\w\-]+", text, rng, rng.choice(words) if words else "x")


def insert(text: str, rng: random.Random) -> str:
    start = rng.randrange(len(text) + 1)
    return (
        text[:start] + rng.choice(["(", ")", "{", "}", ",", "=", '"', "%", "\x00", "é", "ROOT ", "[]"]) + text[start:]
    )


INSERTED = ("(", ")", "{", "}", ",", "=", '"', "%", "\x00", "é", "ROOT ", "[]")


def replace_match(pattern: str, text: str, rng: random.Random, new: str) -> str:
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    match = rng.choice(found)
    return text[: match.start()] + new + text[match.end() :]


TEXT_MUTATIONS: tuple[Callable[[str, random.Random], str], ...] = (
    cut,
    repeat,
    drop_line,
    swap_lines,
    replace_number,
    replace_word,
    insert,
)


def mutate_proto(rng: random.Random) -> bytes:
    """Random bytes changed, or a field of a random instruction set to something that does not fit."""
    proto = read_here(rng.choice(TEXTS).encode()).proto
    if rng.random() < 0.4:
        data = bytearray(proto.SerializeToString())
        for _ in range(rng.randint(1, 5)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data)
    computation = rng.choice(proto.computations)
    instruction = rng.choice(computation.instructions)
    match rng.randrange(8):
        case 0:
            instruction.tuple_index = rng.choice([-1, 5, 1 << 40])
        case 1:
            instruction.operand_ids[:] = [rng.choice([0, 1 << 40, instruction.id])]
        case 2:
            instruction.opcode = rng.choice(["dot", "while", "get-tuple-element", "nonsense", "all-gather", "fusion"])
        case 3:
            instruction.shape.dimensions[:] = [rng.choice([-1, 0, 3, 1 << 62])]
        case 4:
            instruction.called_computation_ids[:] = [rng.choice([0, computation.id, 1 << 40])]
        case 5:
            proto.entry_computation_id = rng.choice([0, -1, 1 << 40])
        case 6:
            computation.root_id = rng.choice([0, -1, 1 << 40])
        case 7:
            instruction.dimensions[:] = [rng.choice([-1, 9, 1 << 40])]
    return proto.SerializeToString()
