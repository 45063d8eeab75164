"""Printing in this process and in a worker."""

from __future__ import annotations

from engine.hlo.printing import print_here
from engine.hlo.reading import read_here
from tests.engine.hlo.texts import BIG_CONSTANT, GATHER, SCHEDULED


def test_the_header_is_whole() -> None:
    line = print_here(read_here(GATHER.encode())).split("\n")[0]
    assert line.startswith("HloModule gather, entry_computation_layout=")
    assert "allow_spmd_sharding_propagation_to_parameters={false,false}" in line
    assert line.endswith("num_partitions=4")


def test_constants_are_printed_in_full() -> None:
    assert "{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}" in print_here(read_here(BIG_CONSTANT.encode()))


def test_a_schedule_is_printed() -> None:
    assert "is_scheduled=true" in print_here(read_here(SCHEDULED.encode()))
