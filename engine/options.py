"""The one-line text form of parts with options: ``decompose{unroll=2,ring=both}``.

A part is a frozen dataclass with a `name` and fields that are str (or a Literal of strs), bool, int, float,
tuple[str, ...], each with a default. Fields are written ``name=value`` between braces, separated by commas; an
underscore in a field's name may be written as ``-``; bools are ``on`` and ``off``; a tuple's items are separated by
``;``. What equals its default is not printed.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from engine.errors import UsageError

T = TypeVar("T")
_NAME = re.compile(r"\s*([A-Za-z][\w.-]*)\s*")


def split(text: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The parts of `text` in order as (name, option texts). Raises UsageError with the column of what is wrong."""
    at = 0
    while at < len(text) or at == 0:
        if not text.strip():
            return
        found = _NAME.match(text, at)
        if found is None:
            raise _wrong(text, at, "a name was expected")
        name, at = found[1], found.end()
        options: dict[str, str] = {}
        if text[at : at + 1] == "{":
            close = text.find("}", at)
            if close < 0:
                raise _wrong(text, at, "this brace is never closed")
            options = dict(_options(text, at + 1, close))
            at = close + 1
        yield name, options
        rest = text[at:].lstrip()
        if not rest:
            return
        if rest[0] != ",":
            raise _wrong(text, len(text) - len(rest), "a comma was expected")
        at = len(text) - len(rest) + 1


def _options(text: str, start: int, stop: int) -> Iterator[tuple[str, str]]:
    at = start
    seen: set[str] = set()
    for piece in text[start:stop].split(","):
        key, equals, value = (part.strip() for part in piece.partition("="))
        if not key and not equals and stop == start:
            return
        if not key or not equals:
            raise _wrong(text, at, "an option is written name=value")
        if key in seen:
            raise _wrong(text, at, f"option '{key}' is given twice")
        seen.add(key)
        yield key, value
        at += len(piece) + 1


def _wrong(text: str, at: int, what: str) -> UsageError:
    return UsageError(f"{what} at column {at + 1}:\n  {text}\n  {' ' * at}^")


def build(part: type[T], name: str, options: Mapping[str, str]) -> T:
    """An instance of `part` with `options` parsed by its fields' types. Raises UsageError."""
    if not dataclasses.is_dataclass(part):
        raise UsageError(f"'{name}' should be a dataclass, but {part!r} came")
    hints = get_type_hints(part)
    fields = {_key(f): f.name for f in dataclasses.fields(part) if f.init}
    values: dict[str, Any] = {}
    for written, text in options.items():
        key = written.replace("-", "_")
        if key not in fields:
            close = difflib.get_close_matches(key, fields, n=1)
            hint = f" (did you mean '{close[0]}'?)" if close else ""
            listed = ", ".join(fields) if fields else "none"
            raise UsageError(f"'{name}' has no option '{written}'{hint}; its options: {listed}")
        values[fields[key]] = _parse(hints[fields[key]], text, f"{name}{{{key}}}")
    return part(**values)


def _parse(kind: Any, text: str, where: str) -> Any:
    origin = get_origin(kind)
    if origin is Literal:
        by_text = {_show(choice): choice for choice in get_args(kind)}
        if text not in by_text:
            raise UsageError(f"{where} is one of {', '.join(by_text)}, but '{text}' came")
        return by_text[text]
    if origin is tuple:
        return tuple(item.strip() for item in text.split(";") if item.strip())
    if origin in (Union, types.UnionType):
        if text == "none":
            return None
        (kind,) = (k for k in get_args(kind) if k is not type(None))
        return _parse(kind, text, where)
    if kind is bool:
        if text not in ("on", "off"):
            raise UsageError(f"{where} is on or off, but '{text}' came")
        return text == "on"
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            raise UsageError(f"{where} is a number, but '{text}' came") from None
    return text


def _show(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ";".join(map(str, value))
    return "none" if value is None else str(value)


def show(part: Any) -> str:
    """The text form of a part; `build` of its `split` gives an equal one."""
    given = [
        f"{_key(f)}={_show(value)}"
        for f in dataclasses.fields(part)
        if f.init and (value := getattr(part, f.name)) != _default(f)
    ]
    return f"{part.name}{{{','.join(given)}}}" if given else str(part.name)


def _key(field: dataclasses.Field[Any]) -> str:
    """How an option is written: the field's name, or the ``key`` of its metadata where that is a Python keyword."""
    return str(field.metadata.get("key", field.name))


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default


@dataclasses.dataclass(frozen=True, slots=True)
class OptionField:
    """One option as a form or a help page shows it."""

    name: str
    default: str
    choices: tuple[str, ...]
    """Empty where any value of `kind` goes."""
    kind: str
    """``choice``, ``bool``, ``int``, ``float``, ``text`` or ``list``."""


def fields_of(part: type) -> tuple[OptionField, ...]:
    """The options of a part, in order."""
    hints = get_type_hints(part)
    return tuple(_field(f, hints[f.name]) for f in dataclasses.fields(part) if f.init)


def _field(field: dataclasses.Field[Any], kind: Any) -> OptionField:
    default = _show(_default(field))
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = (k for k in get_args(kind) if k is not type(None))
    if get_origin(kind) is Literal:
        return OptionField(_key(field), default, tuple(map(_show, get_args(kind))), "choice")
    if kind is bool:
        return OptionField(_key(field), default, ("on", "off"), "bool")
    names = {int: "int", float: "float", str: "text"}
    return OptionField(_key(field), default, (), names.get(kind, "list"))
