"""The text form of parts with options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import options
from engine.errors import UsageError


@dataclass(frozen=True)
class Part:
    name: ClassVar[str] = "part"
    ring: Literal["auto", "one", "both"] = "auto"
    unroll: Literal["auto", 1, 2] = "auto"
    gate: bool = True
    depth: int = 3
    seconds: float = 1.5
    force: tuple[str, ...] = ()
    limit: int | None = None


def parsed(text: str) -> Part:
    ((name, given_options),) = options.split(text)
    return options.build(Part, name, given_options)


ids = st.from_regex(r"[a-z][a-z0-9.:-]{0,8}", fullmatch=True)


@given(
    st.builds(
        Part,
        ring=st.sampled_from(["auto", "one", "both"]),
        unroll=st.sampled_from(["auto", 1, 2]),
        gate=st.booleans(),
        depth=st.integers(),
        seconds=st.floats(allow_nan=False),
        force=st.lists(ids).map(tuple),
        limit=st.none() | st.integers(),
    )
)
def test_text_form_round_trips(part: Part) -> None:
    assert parsed(options.show(part)) == part


def test_defaults_are_not_printed() -> None:
    assert options.show(Part()) == "part"
    assert options.show(Part(ring="both", force=("a", "b"))) == "part{ring=both,force=a;b}"


def test_several_parts_keep_their_order() -> None:
    assert [name for name, _ in options.split("b{x=1}, a ,c{ y = z;w }")] == ["b", "a", "c"]
    assert dict(options.split("b{x=1}, a ,c{ y = z;w }"))["c"] == {"y": "z;w"}
    assert list(options.split("  ")) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("part{ring=three}", "part{ring} is one of auto, one, both, but 'three' came"),
        ("part{unroll=3}", "part{unroll} is one of auto, 1, 2"),
        ("part{gate=yes}", "on or off"),
        ("part{depth=x}", "a number"),
        ("part{rnig=one}", "did you mean 'ring'?"),
        ("part{ring=one,ring=both}", "given twice at column"),
        ("part{ring}", "name=value at column 6"),
        ("part{ring=one", "never closed at column 5"),
        ("part part", "a comma was expected at column 6"),
        ("part,,part", "a name was expected at column 6"),
    ],
)
def test_mistakes_are_named(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        built(text)
    assert said in str(caught.value)


def built(text: str) -> list[Part]:
    return [options.build(Part, name, given_options) for name, given_options in options.split(text)]


def test_fields_describe_themselves_for_forms() -> None:
    fields = {f.name: f for f in options.fields_of(Part)}
    assert fields["unroll"] == options.OptionField("unroll", "auto", ("auto", "1", "2"), "choice")
    assert fields["gate"].choices == ("on", "off")
    assert fields["limit"].default == "none"
    assert fields["limit"].kind == "int"
    assert fields["force"].kind == "list"
