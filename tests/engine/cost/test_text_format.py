"""Fields come in order, whole messages can be left out, and errors know their place."""

from __future__ import annotations

import pytest

from engine.cost.text_format import TextMessage, unquoted
from engine.errors import InputError


def tree(text: str) -> list[tuple[str, object]]:
    message = TextMessage(text, "t")

    def read() -> list[tuple[str, object]]:
        return [(name, read() if value is None else value) for name, value in message.fields()]

    return read()


def test_every_way_to_write_a_field() -> None:
    text = """
# a comment
a: 1, b: -2.5e3; c: "x { \\" } # no comment"  d { e: TRUE f: { } } g < h: 'y' >
i: [1, 2] k: "one " "two"
[extension.name]: 3
"""
    assert tree(text) == [
        ("a", "1"), ("b", "-2.5e3"), ("c", '"x { \\" } # no comment"'), ("d", [("e", "TRUE"), ("f", [])]),
        ("g", [("h", "'y'")]), ("i", "[1, 2]"), ("k", '"one " "two"'), ("[extension.name]", "3"),
    ]  # fmt: skip


def test_nothing_is_an_empty_message() -> None:
    assert tree("") == tree("  # only this\n") == []


def test_skipping_sees_through_strings_and_comments() -> None:
    message = TextMessage('a { b: "}" # }\n c { } } d: 1', "t")
    found = []
    for name, value in message.fields():
        found.append((name, value))
        if value is None:
            message.skip()
    assert found == [("a", None), ("d", "1")]


@pytest.mark.parametrize(
    ("text", "place"),
    [("a: 1\nb c", "t:2:1"), ("a {\n", "t:1:4"), ("}", "t:1:1"), ("a: 1\n  ?", "t:2:3"), ('a: "x', "t:1:1")],
)
def test_errors_have_a_place(text: str, place: str) -> None:
    with pytest.raises(InputError, match=place):
        tree(text)


def test_a_message_that_never_ends_cannot_be_skipped() -> None:
    message = TextMessage("a { b { }", "t")
    fields = message.fields()
    assert next(fields) == ("a", None)
    with pytest.raises(InputError, match="never closed"):
        message.skip()


def test_unquoted() -> None:
    assert unquoted('"fusion.1"') == unquoted("'fusion.1'") == unquoted("fusion.1") == "fusion.1"
    assert unquoted('"a\\"b"') == 'a"b'
