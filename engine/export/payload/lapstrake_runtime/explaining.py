"""How much of a plan's order and fusions stands in what the compiler made, read from the compiled text."""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping, Sequence

from .order import TAG, rank_in_line


def order_in_words(text: str, ranks: Mapping[str, int]) -> str:
    """How much of the order."""
    in_order, elsewhere, fused, gone = standing(text, ranks)
    total = in_order + elsewhere + fused + gone
    if not in_order:
        return "order: not applied, the compiled text has none of the plan's instructions"
    if in_order == total:
        return f"order: applied ({total} of {total})"
    rest = ((elsewhere, "elsewhere"), (fused, "fused away"), (gone, "replaced by the compiler"))
    return f"order: partly applied ({in_order} of {total}, {', '.join(f'{n} {what}' for n, what in rest if n)})"


def standing(text: str, ranks: Mapping[str, int]) -> tuple[int, int, int, int]:
    """How many of the plan's instructions a compiled text has in the plan's order, elsewhere, inside fusions, not."""
    by_name, fused = computations(text)
    outside: set[int] = set()
    inside: set[int] = set()
    in_order = 0
    for name, lines in by_name.items():
        places = [place for line in lines if (place := rank_in_line(line, ranks)) is not None]
        if name in fused:
            inside.update(places)
            continue
        ends: list[int] = []  # of the longest increasing runs
        for place in dict.fromkeys(places):
            if place not in outside:
                at = bisect.bisect_left(ends, place)
                ends[at : at + 1] = [place]
        outside.update(places)
        in_order += len(ends)
    # Where the compiler has no asynchronous transfers, a done is part of its start, and counts no more.
    whole = {r for t, r in ranks.items() if t.endswith("/done") and ranks.get(t[:-5] + "/start") in outside} - outside
    gone = len(ranks) - len(outside | inside | whole)
    return in_order, len(outside) - in_order, len(inside - outside - whole), gone


def fusion_in_words(text: str, wanted: Sequence[Sequence[str]]) -> str:
    """How many of the plan's fusions the compiler made too; it decides them itself."""
    if not wanted:
        return "fusion: the plan has none"
    by_name, fused = computations(text)
    made = [set(TAG.findall("\n".join(by_name[name]))) for name in fused if name in by_name]
    kept = sum(any(set(tags) <= tagged for tagged in made) for tags in wanted)
    how = "applied" if kept == len(wanted) else "partly" if kept else "not applied"
    return f"fusion: {how} ({kept} of {len(wanted)}, by the compiler's own choice)"


def computations(text: str) -> tuple[dict[str, list[str]], set[str]]:
    """Instruction lines of each computation of a module's text, and which computations are fusions' insides."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if header := re.match(r"(?:ENTRY )?%?([\w.\-]+) \(.*\{$", line):
            lines = found.setdefault(header[1], [])
        elif " = " in line:
            lines.append(line)
    return found, set(re.findall(r" fusion\(.*?calls=%?([\w.\-]+)", text))
