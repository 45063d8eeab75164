"""The header line of HLO text: the fields that HloModuleProto does not hold are kept from it and put back into it."""

from __future__ import annotations

from engine.ir.module import Header

KEPT_BY_PROTO = frozenset(
    {
        "buffer_donor",
        "entry_computation_layout",
        "frontend_attributes",
        "input_output_alias",
        "is_scheduled",
    }
)
"""Fields that XLA writes from the proto itself."""


def parse_header(line: str) -> Header:
    """Header fields that the proto loses, from the first line of XLA's print. Missing counts are 1."""
    partitions, replicas = 1, 1
    rest = []
    for name, value in fields(line):
        if name == "num_partitions":
            partitions = int(value)
        elif name == "replica_count":
            replicas = int(value)
        elif name not in KEPT_BY_PROTO:
            rest.append((name, value))
    return Header(partitions, replicas, tuple(rest))


def insert_header(text: str, header: Header) -> str:
    """`text` with the fields of `header` added to its first line, unless they are there."""
    line, newline, body = text.partition("\n")
    there = {name for name, _ in fields(line)}
    wanted = list(header.rest)
    if header.replica_count != 1:
        wanted.append(("replica_count", str(header.replica_count)))
    if header.num_partitions != 1:
        wanted.append(("num_partitions", str(header.num_partitions)))
    added = "".join(f", {name}={value}" for name, value in wanted if name not in there)
    return line + added + newline + body


def fields(line: str) -> list[tuple[str, str]]:
    """``name=value`` pairs of a header line, split at the commas outside of braces, parentheses and strings."""
    parts = []
    start = value_end(line, 0) + 1
    while start <= len(line):
        end = value_end(line, start)
        parts.append(line[start:end])
        start = end + 1
    pairs = (part.partition("=") for part in parts)
    return [(name.strip(), value.strip()) for name, equals, value in pairs if equals]


def value_end(line: str, start: int) -> int:
    """Where what begins at `start` ends: at a comma outside of its braces, parentheses and strings, or with the
    line."""
    depth, quoted, at = 0, False, start
    while at < len(line):
        character = line[at]
        if quoted:
            if character == "\\":
                at += 1
            quoted = character != '"'
        elif character == '"':
            quoted = True
        elif character in "{([":
            depth += 1
        elif character in "})]":
            depth -= 1
        elif character == "," and depth == 0:
            return at
        at += 1
    return len(line)
