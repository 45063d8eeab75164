"""Reads protobuf's text format message by message, without a schema.

Schedule dumps hold a whole module of which a few fields are wanted: what is not asked for is skipped at the speed of a
regular expression, where protobuf's own parser takes minutes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

from engine.errors import InputError, Place

_SPACE = r"(?:\s|\#[^\n]*(?:\n|$))*"
_STRING = r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
_SCALAR = r"[^\s;,{}<>\"']+"
_VALUE = rf"(?:{_STRING})(?:{_SPACE}(?:{_STRING}))*|\[[^\]]*\]|{_SCALAR}"
_FIELD = re.compile(
    rf"{_SPACE}(?:(?P<end>[}}>])[;,]?|(?P<name>\w+|\[[^\]\n]*\]){_SPACE}"
    rf"(?::?{_SPACE}(?P<open>[{{<])|:{_SPACE}(?P<value>{_VALUE})[;,]?))"
)
_NESTING = re.compile(rf"[{{}}<>]|{_STRING}|\#[^\n]*")
_LAST = re.compile(rf"{_SPACE}\Z")


class TextMessage:
    """A place inside a text: fields of the message that is open there are read in order."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self._text = text
        self._at = 0

    def fields(self) -> Iterator[tuple[str, str | None]]:
        """Names and values of the open message's fields up to its end; None stands for a message.

        After a message's name the caller reads it with another call of `fields`, or leaves it with `skip`.
        Raises InputError with the place where the text is no text format.
        """
        top = self._at == 0
        while True:
            found = _FIELD.match(self._text, self._at)
            if found is None:
                if top and _LAST.match(self._text, self._at):
                    return
                raise self.error("a field, 'name: value' or 'name { … }', was expected")
            if found["end"]:
                if top:
                    raise self.error("this brace closes nothing")
                self._at = found.end()
                return
            self._at = found.end()
            yield found["name"], None if found["open"] else found["value"]

    def skip(self) -> None:
        """Leave the message that was just opened."""
        depth = 1
        for found in _NESTING.finditer(self._text, self._at):
            if found[0] in "{<":
                depth += 1
            elif found[0] in "}>":
                depth -= 1
                if depth == 0:
                    self._at = found.end()
                    return
        raise self.error("this message is never closed")

    def error(self, message: str) -> InputError:
        """An InputError about the present place."""
        space = re.compile(r"\s*").match(self._text, self._at)
        at = min(space.end() if space else self._at, max(0, len(self._text) - 1))
        line = bisect_right(self._lines, at)
        start = self._lines[line - 1]
        end = self._text.find("\n", start)
        shown = self._text[start : end if end >= 0 else len(self._text)]
        return InputError(message, Place(self.path, line, at - start + 1, shown))

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self._text))]


def unquoted(value: str) -> str:
    """The text of a quoted value; escapes that names do not need are left as they are."""
    return value[1:-1].replace('\\"', '"').replace("\\'", "'") if value[:1] in "\"'" else value
