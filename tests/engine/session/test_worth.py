"""When a plan is worth nothing: the compiler's own ways are as fast."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest

from engine.execute.compiling import Compiled
from engine.execute.targets import Target
from engine.hlo.reading import read_here
from engine.session.production import LOOSE, PINNED, Produced, Production
from engine.session.worth import weigh
from tests.places import DATA, PARTITIONED

MEGA = PARTITIONED / "mlp_mega.hlo"
DEFAULT, WHOLE, LATE = (
    f"TPU compiler, {way}" for way in ("default", "without decomposition", "decomposing after partitioning")
)


@pytest.fixture(scope="module")
def made() -> Produced:
    production = Production(read_here(MEGA.read_bytes(), str(MEGA)), Target.parse("tpu:v4:2x2x2"))
    schedule = gzip.decompress((DATA / "production" / "mlp_mega.schedule.txt.gz").read_bytes()).decode()
    return production.judged(Compiled(production.target, "", schedule, 0.1, {}), "any")


def named(made: Produced, name: str, share: float, each_way: int = 1) -> Produced:
    metrics = replace(made.variant.metrics, makespan=round(share * made.variant.metrics.makespan))
    return replace(made, variant=replace(made.variant, name=name, metrics=metrics), each_way=each_way)


@pytest.mark.parametrize(
    ("variants", "nothing"),
    [
        ([(DEFAULT, 1.0, 1), (PINNED, 0.9, 1)], False),
        ([(DEFAULT, 1.0, 1), (PINNED, 1.1, 1)], True),
        ([(DEFAULT, 1.0, 1), (PINNED, 1.0, 1)], True),
        # Its own figure holds however good it is; ours does not with two permutes one way at a time.
        ([(LATE, 1.0, 2), (PINNED, 1.1, 1)], True),
        ([(DEFAULT, 1.0, 1), (LOOSE, 0.5, 2), (PINNED, 1.1, 1)], True),
        ([(DEFAULT, 1.0, 1), (LOOSE, 0.5, 1)], False),
        # Whole and asynchronous is no default: it takes options, which plans have.
        ([(WHOLE, 1.0, 1), (PINNED, 1.1, 1)], False),
        ([(DEFAULT, 1.0, 1)], True),
        ([], False),
    ],
)
def test_the_faster_of_both_is_shown(made: Produced, variants: list[tuple[str, float, int]], nothing: bool) -> None:
    assert weigh([named(made, *variant) for variant in variants]).nothing == nothing


def test_the_fastest_of_each_is_compared(made: Produced) -> None:
    shares = ((DEFAULT, 3.0), (LATE, 2.0), (LOOSE, 1.5), (PINNED, 1.0))
    worth = weigh([named(made, name, share) for name, share in shares])
    assert worth.own is not None
    assert worth.ours is not None
    assert (worth.own.variant.name, worth.ours.variant.name) == (LATE, PINNED)
