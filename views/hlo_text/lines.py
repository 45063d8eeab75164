"""Lines of HLO text: what defines what, and which part of a line is of which kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache

_DEFINITION = re.compile(r"^\s*(?:ROOT\s+)?%?([\w.\-]+) = ")
_COMPUTATION = re.compile(r"^(?:ENTRY\s+)?%?([\w.\-]+) .*\{$")
_NAME = re.compile(r"%([\w.\-]+)")
_METADATA = re.compile(r", metadata=\{[^}]*\}")
_TABLE = re.compile(r'\d+ ["{]')
"""``3 "mlp"`` among FunctionNames, ``2 {file_name_id=1 …`` among FileLocations."""
_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*")
      | (?P<name>%[\w.\-]+)
      | (?P<shape>\b(?:pred|token|opaque|[suf]\d+|bf16|f8\w+|c64|c128)\[[^\]]*\](?:\{[^}]*\})?)
      | (?P<word>\b(?:HloModule|ENTRY|ROOT)\b)
      | (?P<attribute>\b[a-z_]+(?==))
      | (?P<opcode>(?<=\s)[a-z][a-z0-9\-]*(?=\())
    """,
    re.VERBOSE,
)
MOST_DIFFED = 300_000
"""Lines up to which two texts are compared."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a line and its kind: ``text``, ``name``, ``shape``, ``word``, ``attribute``, ``opcode`` or empty."""

    text: str
    kind: str


@lru_cache(maxsize=2_000)
def pieces(line: str) -> tuple[Piece, ...]:
    """A line cut into pieces of one kind each; together they are the line."""
    return tuple(_pieces(line))


def _pieces(line: str) -> Iterator[Piece]:
    at = 0
    for found in _TOKEN.finditer(line):
        if found.start() > at:
            yield Piece(line[at : found.start()], "")
        yield Piece(found[0], found.lastgroup or "")
        at = found.end()
    if at < len(line):
        yield Piece(line[at:], "")


def defined(line: str) -> str:
    """Name of the instruction that a line defines, empty where it defines none."""
    found = _DEFINITION.match(line)
    return found[1] if found is not None else ""


def definitions(lines: Sequence[str]) -> Mapping[str, int]:
    """Name of each instruction → its line."""
    return {name: number for number, line in enumerate(lines) if (name := defined(line))}


@dataclass(frozen=True, slots=True)
class Pair:
    """A row of two texts side by side: line numbers, -1 where a side has no line, and whether they are equal."""

    left: int
    right: int
    equal: bool
    elsewhere: int = -1
    """Line of the missing side that says the same, or defines the same, at another place; -1 for none."""
    moved: bool = False
    """Whether that line says the same."""

    @property
    def tint(self) -> str:
        """How the line that is there differs; empty where it does not. A row with two lines is not asked."""
        if self.moved:
            return "moved"
        if self.equal:
            return ""
        return "changed" if self.elsewhere >= 0 else "removed" if self.left >= 0 else "added"


@dataclass(frozen=True)
class Side:
    """A text as it is shown."""

    lines: tuple[str, ...]
    numbers: tuple[int, ...]
    """Line numbers from 0; -1 where the line only keeps the place of one on the other side."""
    where: Mapping[str, int]
    """Name of each instruction → the row that defines it."""
    tints: Mapping[int, str]
    """Rows that differ → ``added``, ``removed``, ``changed`` or ``moved``."""
    widest: int
    """Letters in the longest line."""


@dataclass(frozen=True)
class Printed:
    """A module's text, and that of another one aligned with it where one was asked for."""

    text: Side
    beside: Side | None = None
    differences: tuple[range, ...] = ()
    """Rows that differ, neighbours together, from the first; none where there is one text."""
    compared: bool = True
    """False where the two are so long that they only stand beside each other."""


def printed(
    text: Sequence[str], beside: Sequence[str] | None = None, names: Mapping[str, str] | None = None
) -> Printed:
    """Texts made ready to be shown: everything that takes time for many lines.

    `names` are those of `beside` → those of `text` of what is one and the same; None where that has one name in both.
    """
    if beside is None:
        return Printed(_side(text, range(len(text)), {}))
    if _too_long(beside, text):
        count = range(max(len(text), len(beside)))
        return Printed(_beside(text, count), _beside(beside, count), compared=False)
    rows = paired(beside, text, shared(beside, text) if names is None else names)
    changed = [(n, row) for n, row in enumerate(rows) if not row.equal]
    both = {n: "changed" for n, row in changed if row.left >= 0 and row.right >= 0}
    alone = [(n, row) for n, row in enumerate(rows) if row.tint and (row.left < 0 or row.right < 0)]
    removed = both | {n: row.tint for n, row in alone if row.left >= 0}
    added = both | {n: row.tint for n, row in alone if row.right >= 0}
    return Printed(
        _side([text[r.right] if r.right >= 0 else "" for r in rows], [r.right for r in rows], added),
        _side([beside[r.left] if r.left >= 0 else "" for r in rows], [r.left for r in rows], removed),
        _together([n for n, _ in changed]),
    )


def _too_long(left: Sequence[str], right: Sequence[str]) -> bool:
    return len(left) + len(right) > MOST_DIFFED


def _beside(lines: Sequence[str], rows: range) -> Side:
    """A text in as many rows as the longer one has."""
    missing = len(rows) - len(lines)
    return _side([*lines, *[""] * missing], [*range(len(lines)), *[-1] * missing], {})


def _together(rows: Sequence[int]) -> tuple[range, ...]:
    """Ascending rows as ranges of neighbours."""
    found: list[range] = []
    for row in rows:
        if found and found[-1].stop == row:
            found[-1] = range(found[-1].start, row + 1)
        else:
            found.append(range(row, row + 1))
    return tuple(found)


def _side(lines: Sequence[str], numbers: Sequence[int], tints: Mapping[int, str]) -> Side:
    return Side(tuple(lines), tuple(numbers), definitions(lines), tints, max(map(len, lines), default=0))


def shared(left: Sequence[str], right: Sequence[str]) -> Mapping[str, str]:
    """Names of what both texts define → the same."""
    mine, theirs = ({defined(line) or opens(line) for line in lines} - {""} for lines in (left, right))
    return {name: name for name in mine & theirs}


def paired(left: Sequence[str], right: Sequence[str], names: Mapping[str, str]) -> tuple[Pair, ...]:
    """Two texts aligned by what `names` of the left are on the right; equal is what says the same but for names and
    metadata, whose tables of files and functions are numbered anew with every change. A computation that stands at
    another place is no difference, an instruction that does is: that is the order of a schedule."""
    known = set(names.values())
    renamed = [_renamed(line, names) for line in left]
    bare = [_METADATA.sub("", line) for line in right]
    mine, theirs = [_key(line, known) for line in renamed], [_key(line, known) for line in bare]

    def alike(one: int, two: int) -> bool:
        return renamed[one].strip() == bare[two].strip()

    found: list[Pair] = []
    apart: list[Pair] = []
    for row in _by_computation(mine, theirs, _blocks(left), _blocks(right)):
        if row.left >= 0 and row.right >= 0 and mine[row.left] == theirs[row.right]:
            found += apart
            apart = []
            found.append(replace(row, equal=alike(row.left, row.right)))
            continue
        # Lines that only stand at the same place have nothing to do with each other.
        if row.left >= 0:
            there = row.elsewhere if row.right < 0 else -1
            same = there >= 0 and alike(row.left, there)
            found.append(Pair(row.left, -1, same or _tells_nothing(left[row.left]), there, same))
        if row.right >= 0:
            there = row.elsewhere if row.left < 0 else -1
            same = there >= 0 and alike(there, row.right)
            apart.append(Pair(-1, row.right, same or _tells_nothing(right[row.right]), there, same))
    return _found_elsewhere((*found, *apart), mine, theirs, alike)


def _found_elsewhere(
    rows: Sequence[Pair], mine: Sequence[str], theirs: Sequence[str], alike: Callable[[int, int], bool]
) -> tuple[Pair, ...]:
    """With the lines told that define the same, but stand where the order of instructions is another."""
    lone = [row for row in rows if (row.left < 0 or row.right < 0) and not row.equal and row.elsewhere < 0]
    here = {mine[row.left]: row.left for row in lone if row.left >= 0 and mine[row.left].startswith("%")}
    there = {theirs[row.right]: row.right for row in lone if row.right >= 0}
    both = {key: (at, there[key]) for key, at in here.items() if key in there}
    lefts, rights = dict(both.values()), {two: one for one, two in both.values()}

    def told(row: Pair) -> Pair:
        if row.left in lefts and row.right < 0:
            return replace(row, elsewhere=lefts[row.left], moved=alike(row.left, lefts[row.left]))
        if row.right in rights and row.left < 0:
            return replace(row, elsewhere=rights[row.right], moved=alike(rights[row.right], row.right))
        return row

    return tuple(map(told, rows))


def _blocks(lines: Sequence[str]) -> list[range]:
    """What comes before the first computation, and each computation with what follows it."""
    begins = [0, *(number for number, line in enumerate(lines) if number and opens(line))]
    return [range(begin, end) for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True)]


def _by_computation(
    mine: Sequence[str], theirs: Sequence[str], left: Sequence[range], right: Sequence[range]
) -> Iterator[Pair]:
    """Keys of two texts aligned, computations first and then the lines of each: together they would take minutes, for
    what stands in every computation stands in thousands."""
    heads = [mine[block.start] if block else "" for block in left], [theirs[b.start] if b else "" for b in right]
    steps = SequenceMatcher(None, *heads, autojunk=False).get_opcodes()
    apart = [(left[a:b], right[c:d]) for tag, a, b, c, d in steps if tag != "equal"]
    moved = dict(_moved_lines(mine, theirs, [b for one, _ in apart for b in one], [b for _, two in apart for b in two]))
    came = {there: here for here, there in moved.items()}
    for tag, a, b, c, d in steps:
        if tag == "equal":
            for one, two in zip(left[a:b], right[c:d], strict=True):
                yield from _aligned(mine, theirs, one, two)
            continue
        yield from (Pair(n, -1, equal=False, elsewhere=moved.get(n, -1)) for block in left[a:b] for n in block)
        yield from (Pair(-1, n, equal=False, elsewhere=came.get(n, -1)) for block in right[c:d] for n in block)


def _moved_lines(
    mine: Sequence[str], theirs: Sequence[str], left: Sequence[range], right: Sequence[range]
) -> Iterator[tuple[int, int]]:
    """Of computations that stand at another place in the other text, the lines with the same key in both."""
    there = {theirs[block.start]: block for block in right if block and theirs[block.start]}
    for one in left:
        two = there.get(mine[one.start]) if one else None
        for row in _aligned(mine, theirs, one, two) if two is not None else ():
            if row.left >= 0 and row.right >= 0 and mine[row.left] == theirs[row.right]:
                yield row.left, row.right


def _aligned(mine: Sequence[str], theirs: Sequence[str], one: range, two: range) -> Iterator[Pair]:
    """Keys of a computation of each text."""
    for row in side_by_side(mine[one.start : one.stop], theirs[two.start : two.stop]):
        at, beside = (n + of.start if n >= 0 else -1 for n, of in ((row.left, one), (row.right, two)))
        yield Pair(at, beside, equal=row.equal)


def _tells_nothing(line: str) -> bool:
    """Whether a line is of a table that metadata refer to, or empty."""
    return not line.strip() or _TABLE.match(line) is not None


def _renamed(line: str, names: Mapping[str, str]) -> str:
    """A line without metadata and with the names that its instructions have in the other text."""
    return _NAME.sub(lambda found: f"%{names.get(found[1], found[1])}", _METADATA.sub("", line))


def _key(line: str, known: Collection[str]) -> str:
    """What a line is aligned by: the name it defines where both texts have that, else all it says."""
    name = defined(line) or opens(line)
    return f"%{name}" if name in known else line.strip()


def opens(line: str) -> str:
    """Name of the computation that a line begins, empty where it begins none."""
    found = _COMPUTATION.match(line)
    return found[1] if found is not None else ""


def side_by_side(left: Sequence[str], right: Sequence[str]) -> tuple[Pair, ...]:
    """Two texts aligned."""
    rows: list[Pair] = []
    for tag, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        rows.extend(
            Pair(a + n if a + n < b else -1, c + n if c + n < d else -1, equal=tag == "equal")
            for n in range(max(b - a, d - c))
        )
    return tuple(rows)
