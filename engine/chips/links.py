"""Topologies given as a list of links, for wiring that is neither a torus nor a switch."""

from __future__ import annotations

import tomllib
from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from engine.chips.chip import Rate
from engine.chips.figures import Figures
from engine.chips.topology import Classes, Floats, Link, Load
from engine.errors import InputError, UsageError
from engine.ir.graph import Ints


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

    @cached_property
    def _wire_of(self) -> Ints:
        """Number of the wire from each chip to each chip, -1 where there is none."""
        table = np.full((self.size, self.size), -1, np.int64)
        for number, wire in enumerate(self.wires):
            table[wire.source, wire.target] = number
        return table

    @cached_property
    def _next(self) -> Ints:
        """Chip after `row` on the way to `column`; among equally short ways the one over the lowest number."""
        before: list[list[int]] = [[] for _ in range(self.size)]
        for wire in self.wires:
            before[wire.target].append(wire.source)
        table = np.full((self.size, self.size), -1, np.int64)
        for target in range(self.size):
            table[target, target] = target
            queue = deque([target])
            while queue:
                here = queue.popleft()
                for source in sorted(before[here]):
                    if table[source, target] < 0:
                        table[source, target] = here
                        queue.append(source)
        return table

    def reaches_all(self) -> bool:
        """Whether every chip has a way to every other."""
        return bool((self._next >= 0).all())

    def carry(self, sources: Ints, targets: Ints, size: Floats) -> Load:
        carried = np.zeros(len(self.wires))
        latency = np.zeros(len(sources), np.int64)
        delays = np.array([wire.latency for wire in self.wires], np.int64)
        at, moving = sources.copy(), np.flatnonzero(sources != targets)
        while len(moving):
            onward = self._next[at[moving], targets[moving]]
            wires = self._wire_of[at[moving], onward]
            carried += np.bincount(wires, weights=size[moving], minlength=len(self.wires))
            latency[moving] += delays[wires]
            at[moving] = onward
            moving = moving[onward != targets[moving]]
        return Load(carried, int(latency.max(initial=0)))


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
