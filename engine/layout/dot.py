"""What the graph view shows as text for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from engine.layout.outline import Outline, Side
from engine.layout.picture import Picture

_MARKS = {Side.BEFORE: "#B3261E", Side.AFTER: "#1B6E3C"}


def dot_text(outline: Outline, picture: Picture) -> str:
    """A digraph with the shown nodes, open groups as clusters."""
    return "\n".join(_lines(outline, picture)) + "\n"


def _lines(outline: Outline, picture: Picture) -> Iterator[str]:
    yield f"digraph {_quoted(outline.names[0])} {{"
    yield "  node [shape=box];"
    yield "  compound=true;"
    ends: list[int] = []
    first: dict[int, int] = {}
    for position, item in enumerate(picture.items.tolist()):
        while ends and item >= ends[-1]:
            ends.pop()
            yield f"{'  ' * (len(ends) + 1)}}}"
        indent = "  " * (len(ends) + 1)
        name = _quoted(outline.names[item])
        if picture.opened[position]:
            if item:
                yield f"{indent}subgraph cluster_{item} {{"
                yield f"{indent}  label={name};"
                ends.append(int(outline.end[item]))
            continue
        for frame in (item, *outline.ancestors(item)):
            first.setdefault(frame, item)
        label = _quoted(f"{outline.names[item]}\n{outline.details[item]}")
        colour = _MARKS.get(Side(int(outline.sides[item])))
        mark = f' color="{colour}"' if colour else ""
        yield f"{indent}n{item} [label={label}{mark}];"
    while ends:
        ends.pop()
        yield f"{'  ' * (len(ends) + 1)}}}"
    for one, two in zip(picture.source.tolist(), picture.target.tolist(), strict=True):
        a, b = int(picture.items[one]), int(picture.items[two])
        if a not in first or b not in first:
            continue
        tail = f"ltail=cluster_{a} " if picture.opened[one] else ""
        head = f"lhead=cluster_{b}" if picture.opened[two] else ""
        options = f" [{(tail + head).strip()}]" if tail or head else ""
        yield f"  n{first[a]} -> n{first[b]}{options};"
    yield "}"


def _quoted(text: str) -> str:
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inner}"'
