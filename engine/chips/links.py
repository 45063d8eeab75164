"""Topologies given as a list of links, for wiring that is neither a torus nor a switch."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.chips.chip import Rate
from engine.chips.figures import Figures
from engine.chips.topology import Classes, Floats, Link, Load
from engine.errors import InputError, UsageError
from engine.ir.graph import Csr, Ints

_TOGETHER = 1 << 22
"""Entries of the table of ways that are filled together: what is in hand meanwhile takes tens of bytes for each."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One link in one direction."""

    source: int
    target: int
    link: int
    """Number of its class."""
    latency: int
    """Picoseconds."""


@dataclass(frozen=True, eq=False)
class LinkList:
    """Chips joined by the links of a list; transfers take the way with the fewest hops."""

    size: int
    kinds: tuple[Link, ...]
    wires: tuple[Wire, ...]
    """The physical links, by number."""
    text: str
    refined: Classes | None = None

    def with_classes(self, refined: Classes) -> LinkList:
        return replace(self, refined=refined)

    @cached_property
    def alike(self) -> Classes:
        """As the list names them."""
        return Classes(self.kinds, np.array([wire.link for wire in self.wires], np.int64))

    def __str__(self) -> str:
        return self.text

    def reaches_all(self) -> bool:
        """Whether every chip has a way to every other: to the first one, and from it."""
        after: list[list[int]] = [[] for _ in range(self.size)]
        before: list[list[int]] = [[] for _ in range(self.size)]
        for wire in self.wires:
            after[wire.source].append(wire.target)
            before[wire.target].append(wire.source)
        return all(len(_reached(onward)) == self.size for onward in (after, before))

    def carry(self, sources: Ints, targets: Ints, size: Floats) -> Load:
        """Among equally short ways each takes the one whose chips, told from the target, come first by number."""
        carried = np.zeros(len(self.wires))
        latency = np.zeros(len(sources), np.int64)
        delays = np.array([wire.latency for wire in self.wires], np.int64)
        ends, rows = np.unique(targets, return_inverse=True)
        by_end = np.argsort(rows, kind="stable")
        step = max(1, _TOGETHER // self.size)
        for first in range(0, len(ends), step):
            some = np.sort(by_end[slice(*np.searchsorted(rows[by_end], (first, first + step)))])
            table = self._ways(ends[first : first + step], sources[some], rows[some] - first)
            at, moving = sources.copy(), some[sources[some] != targets[some]]
            while len(moving):
                onward = table[rows[moving] - first, at[moving]].astype(np.int64)
                wires = self._wires_between(at[moving], onward)
                carried += np.bincount(wires, weights=size[moving], minlength=len(self.wires))
                latency[moving] += delays[wires]
                at[moving] = onward
                moving = moving[onward != targets[moving]]
        return Load(carried, int(latency.max(initial=0)))

    def _ways(self, ends: Ints, sources: Ints, rows: Ints) -> npt.NDArray[np.int32]:
        """The chip after each chip (column) on the way to each of `ends` (row), -1 where no source needs it; `rows` are
        those of the sources' ends.

        Searched back from the ends level by level, and no further than to the sources: neighbours are found at once
        among however many chips.
        """
        table = np.full((len(ends), self.size), -1, np.int32)
        at, chips = np.arange(len(ends)), ends
        table[at, chips] = chips
        while len(chips) and (table[rows, sources] < 0).any():
            at, chips = self._step_back(table, at, chips)
        return table

    def _step_back(self, table: npt.NDArray[np.int32], rows: Ints, chips: Ints) -> tuple[Ints, Ints]:
        """Let the chips with a link to `chips` that are not in the rows yet come next, each to the first that it has
        a link to; their rows, and they."""
        counts = self._before.starts[chips + 1] - self._before.starts[chips]
        skipped = np.repeat(self._before.starts[chips] - np.cumsum(counts) + counts, counts)
        found = self._before.items[skipped + np.arange(len(skipped))]
        behind, rows = np.repeat(chips, counts), np.repeat(rows, counts)
        new = np.flatnonzero(table[rows, found] < 0)
        _, kept = np.unique(rows[new] * self.size + found[new], return_index=True)
        new = new[np.sort(kept)]
        table[rows[new], found[new]] = behind[new]
        return rows[new], found[new]

    @cached_property
    def _before(self) -> Csr:
        """By chip the chips with a link to it, by number."""
        ends = np.array([(wire.target, wire.source) for wire in self.wires], np.int64).reshape(-1, 2)
        ends = ends[np.lexsort((ends[:, 1], ends[:, 0]))]
        return Csr(np.searchsorted(ends[:, 0], np.arange(self.size + 1)).astype(np.int64), ends[:, 1])

    @cached_property
    def _numbered(self) -> tuple[Ints, Ints]:
        """Both ends of each wire as one number, ascending, and the wires' own numbers."""
        keys = np.array([wire.source * self.size + wire.target for wire in self.wires], np.int64)
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    def _wires_between(self, sources: Ints, targets: Ints) -> Ints:
        """Numbers of the wires from chips to chips; the last one where the list has several."""
        keys, numbers = self._numbered
        found: Ints = numbers[np.searchsorted(keys, sources * self.size + targets, side="right") - 1]
        return found


def _reached(onward: Sequence[Sequence[int]]) -> set[int]:
    """Chips that the first one has a way to, itself included."""
    seen, work = {0}, [0]
    while work:
        new = [chip for chip in onward[work.pop()] if chip not in seen]
        seen.update(new)
        work.extend(new)
    return seen


def read_links(path: str, devices: int) -> LinkList:
    """Read ``[[links]]`` tables: ``from``, ``to``, ``gigabytes_per_second``, and if wanted ``latency_nanoseconds``
    (1000), ``name`` of a class of alike links, ``both`` directions (true).

    Raises InputError for a file that is not that, UsageError where it does not connect `devices` chips.
    """
    try:
        values = tomllib.loads(Path(path).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: a TOML file that lists links was expected, but it cannot be read: {error}"
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: a TOML file that lists links was expected: {error}") from error
    tables = values.get("links")
    if not isinstance(tables, list) or not tables or set(values) != {"links"}:
        raise InputError(f"{path}: [[links]] tables and nothing else were expected")
    classes: dict[str, float] = {}
    wires: list[Wire] = []
    for number, table in enumerate(tables, start=1):
        if not isinstance(table, dict):
            raise InputError(f"{path}: links {number}: a table was expected, but {table!r} came")
        wires += _wires(Figures(table, f"{path}: links {number}: "), devices, classes)
    links = tuple(Link(name, Rate(rate, rate)) for name, rate in classes.items())
    found = LinkList(devices, links, tuple({(w.source, w.target): w for w in wires}.values()), Path(path).stem)
    if not found.reaches_all():
        raise UsageError(f"{path}: its links do not connect all {devices} devices of the module with each other")
    return found


def _wires(figures: Figures, devices: int, classes: dict[str, float]) -> list[Wire]:
    source, target = figures.whole("from", least=0), figures.whole("to", least=0)
    if not (source < devices and target < devices) or source == target:
        raise UsageError(
            f"{figures.where}two of devices 0..{devices - 1} were expected, but {source} and {target} came"
        )
    rate = figures.positive("gigabytes_per_second") * 1e9
    name = figures.text("name", f"links of {rate / 1e9:g} GB/s")
    if classes.setdefault(name, rate) != rate:
        raise InputError(f"{figures.where}links called '{name}' were {classes[name] / 1e9:g} GB/s before")
    latency = round(figures.number("latency_nanoseconds", 1000) * 1e3)
    both = figures.boolean("both", default=True)
    figures.finish()
    number = list(classes).index(name)
    ways = [(source, target), (target, source)] if both else [(source, target)]
    return [Wire(a, b, number, latency) for a, b in ways]
