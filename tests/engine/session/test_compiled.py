"""A compiler's schedule beside ours: whose times it shows, and what it says of the compiler's own totals."""

from __future__ import annotations

import gzip

import pytest

from engine.cost.costs import Origin
from engine.cost.scheduled_module import read_scheduled_module
from engine.errors import InputError
from engine.session.compiled import predicted_variant
from engine.session.plan import MachineSpec
from tests.places import COMPILED

PATH = COMPILED / "we_v4-4x4x4_2d_8x8_d8192_L2_scan_offasync.schedule.txt.gz"


def test_the_compilers_schedule_is_a_variant_with_its_own_times() -> None:
    predicted = read_scheduled_module(gzip.decompress(PATH.read_bytes()).decode(), str(PATH))
    variant = predicted_variant(predicted, MachineSpec("tpu-v4"))
    assert variant.source is Origin.COMPILER
    assert variant.metrics.makespan == variant.timeline.makespan
    assert variant.metrics.makespan >= variant.metrics.lower_bound
    (said,) = (note for note in variant.notes if "total of" in note)
    assert "766,012 µs without the waits" in said
    assert "789,43" in said


def test_a_damaged_schedule_is_an_input_error() -> None:
    with pytest.raises(InputError, match="ScheduleProto"):
        read_scheduled_module("hlo_module {\n}\n", "a.txt")
