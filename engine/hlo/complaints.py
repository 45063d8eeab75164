"""Turns what XLA's parser says, or how it died, into an error that points into the user's text."""

from __future__ import annotations

import re

from engine.errors import InputError, Place
from engine.hlo.header import value_end

_PLACE = re.compile(r"was parsing (\d+):(\d+): error: (.*)")
_MLIR_PLACE = re.compile(r"-:(\d+):(\d+): error: (.*)")
_ATTRIBUTE = re.compile(r'unexpected attribute "([\w.\-]+)"')
_OPCODE = re.compile(r"=\s*(?:\([^=]*?\)|\S+)\s+([a-z][a-z0-9\-]*)\(")
_COMPUTATION = re.compile(r"^\s*(ENTRY\s+)?%?[\w.\-]+\s*(\(.*)?\{\s*$")
_PARAMETER = re.compile(r"=\s.*\bparameter\((\d+)\)")
_MESH_AXES = re.compile(r"mesh\[([^\]]*)\]\s*\{([^}]*)\}")
_NEGATIVE_TILE = re.compile(r":[^}]*T\([^)]*-\d")
_DEVICE_ID = re.compile(r"=\s*(\S+)\s+(partition-id|replica-id)\(\)")


def lines_of(text: str) -> list[str]:
    """Lines as XLA and editors count them: names may hold what else Python ends a line at, such as form feeds."""
    return text.removesuffix("\n").split("\n") if text else []


def explain(said: str, text: str, path: str) -> InputError:
    """XLA's message as an error with the place it names."""
    found = _PLACE.search(said)
    if found is None or not text:  # what XLA parses inside of a proto has no place in the file
        return InputError(
            f"{path}: XLA cannot read it: {said.strip().splitlines()[0] if said.strip() else 'no reason'}"
        )
    line, column, message = int(found[1]), int(found[2]), found[3].strip()
    lines = lines_of(text)
    if line > len(lines):
        line, column = len(lines), len(lines[-1]) + 1
    if not "\n".join([lines[line - 1][max(column, 1) - 1 :], *lines[line:]]).strip():
        message = f"the text ends too early: a computation with instructions was expected ({message})"
    elif line > 1 and _ends_within(lines, line):
        message = f"the text ends too early, within an instruction: was the file cut off? ({message})"
    elif message == "expects name" and lines[line - 1].strip() == "}":
        message = f"a computation without instructions: at least one was expected ({message})"
    if sum(begun.startswith("HloModule") for begun in lines[:line]) > 1 and lines[line - 1].startswith("HloModule"):
        message = f"a second module begins here; give them one by one ({message})"
    return InputError(message, Place(path, line, max(column, 1), lines[line - 1]))


def _ends_within(lines: list[str], line: int) -> bool:
    """Whether a module's text ends in its line `line` without the brace that closes a computation."""
    return not "".join(lines[line:]).strip() and not lines[line - 1].rstrip().endswith("}")


def explain_mlir(said: str, text: str, path: str) -> InputError:
    """MLIR's message (``-:LINE:COLUMN: error: …``) about StableHLO as an error with its place."""
    found = _MLIR_PLACE.search(said)
    lines = lines_of(text)
    if found is None or not 0 < int(found[1]) <= len(lines):
        first = next((line for line in said.splitlines() if line.strip()), "no reason given")
        return InputError(f"{path}: XLA cannot read it as StableHLO: {first}")
    line, column = int(found[1]), int(found[2])
    return InputError(found[3].strip(), Place(path, line, max(column, 1), lines[line - 1]))


def explain_death(said: str, text: str, path: str) -> InputError:
    """An error for text on which XLA's parser aborted; looks for the causes that are known to make it."""
    known = _known_cause(text, path)
    quoted = f"XLA's parser aborted on it{f': {said}' if said else ''}"
    if known is None:
        return InputError(f"{path}: {quoted}")
    message, place = known
    return InputError(f"{message} ({quoted})", place)


def without_unknown_attribute(said: str, text: str) -> tuple[str, str] | None:
    """`text` without the attribute that XLA does not know, on every line of that opcode, and its name.

    None when XLA complained about something else.
    """
    place, attribute = _PLACE.search(said), _ATTRIBUTE.search(said)
    if place is None or attribute is None:
        return None
    lines = text.split("\n")
    line = int(place[1]) - 1
    name = attribute[1]
    if not 0 <= line < len(lines) or name not in lines[line]:
        return None
    opcode = _OPCODE.search(lines[line])
    shorter = [_without(other, name) if _alike(other, opcode, lines[line]) else other for other in lines]
    return ("\n".join(shorter), name) if shorter != lines else None


def _alike(line: str, opcode: re.Match[str] | None, reference: str) -> bool:
    if opcode is None:
        return line == reference
    found = _OPCODE.search(line)
    return found is not None and found[1] == opcode[1]


def _without(line: str, name: str) -> str:
    """The line without ``, name=value``, values in braces and strings included."""
    found = re.search(rf",\s*{re.escape(name)}=", line)
    if found is None:
        return line
    return line[: found.start()] + line[value_end(line, found.end()) :]


def _known_cause(text: str, path: str) -> tuple[str, Place] | None:
    numbers: dict[int, int] = {}
    lines = lines_of(text)
    for count, line in enumerate(lines, 1):
        if _COMPUTATION.match(line):
            numbers = {}
        elif (found := _PARAMETER.search(line)) is not None:
            numbers[int(found[1])] = count
        elif line.strip().startswith("}") and (gap := _gap(numbers)) is not None:
            where = numbers[max(numbers)]
            shown = lines[where - 1]
            message = f"parameter numbers have a gap: there is a parameter({max(numbers)}) but no parameter({gap})"
            return message, Place(path, where, shown.index("parameter(") + 1, shown)
        for pattern, describe in _LINE_CAUSES:
            match = pattern.search(line)
            if match is not None and (said := describe(match)) is not None:
                return said, Place(path, count, match.start() + 1, line)
    return None


def _gap(numbers: dict[int, int]) -> int | None:
    return next((k for k in range(max(numbers, default=-1)) if k not in numbers), None)


def _mesh_axis(match: re.Match[str]) -> str | None:
    named = set(re.findall(r"'([^']*)'\s*=", match[1]))
    for axis in re.findall(r"'([^']*)'", match[2]):
        if axis not in named:
            return f"the mesh has no axis '{axis}' (it has {', '.join(sorted(named)) or 'none'})"
    return None


def _negative_tile(match: re.Match[str]) -> str:
    return "a tile of a layout has a negative dimension"


def _device_id(match: re.Match[str]) -> str | None:
    return None if match[1].startswith("u32[]") else f"{match[2]} has the shape u32[], not {match[1]}"


_LINE_CAUSES = ((_MESH_AXES, _mesh_axis), (_NEGATIVE_TILE, _negative_tile), (_DEVICE_ID, _device_id))
