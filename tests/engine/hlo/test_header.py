"""The header line survives a trip through the proto."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.hlo.header import fields, insert_header, parse_header
from engine.ir.module import Header

names = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
values = st.recursive(
    st.from_regex(r"[\w\-<>=;:]{1,6}", fullmatch=True) | st.from_regex(r'"([a-z,={} ]|\\["\\])*"', fullmatch=True),
    lambda inner: st.lists(inner, max_size=3).map(lambda parts: "{" + ", ".join(parts) + "}"),
    max_leaves=5,
)


@given(st.lists(st.tuples(names, values), max_size=5))
def test_fields_are_split_at_their_own_commas(pairs: list[tuple[str, str]]) -> None:
    line = "HloModule m" + "".join(f", {name}={value}" for name, value in pairs)
    assert fields(line) == pairs


@given(
    st.integers(1, 9999),
    st.integers(1, 9),
    st.lists(st.tuples(names.map(lambda n: f"x_{n}"), values), max_size=3, unique_by=lambda pair: pair[0]),
)
def test_what_is_inserted_is_parsed_again(partitions: int, replicas: int, rest: list[tuple[str, str]]) -> None:
    header = Header(partitions, replicas, tuple(rest))
    text = insert_header("HloModule m, is_scheduled=true\n\nENTRY …", header)
    line, _, body = text.partition("\n")
    assert parse_header(line) == header
    assert body == "\nENTRY …"


def test_what_is_there_is_not_inserted_again() -> None:
    text = "HloModule m, num_partitions=4\nbody"
    assert insert_header(text, Header(num_partitions=4)) == text


def test_fields_of_the_proto_are_not_kept_twice() -> None:
    line = (
        "HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }, "
        "entry_computation_layout={(f32[4]{0:T(256)}, /*index=1*/s32[])->f32[4]{0}}, replica_count=2, "
        'frontend_attributes={a="x,y={"}'
    )
    assert parse_header(line) == Header(replica_count=2)
