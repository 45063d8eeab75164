"""The text form of disturbances, and what it refuses."""

from __future__ import annotations

import pytest

from engine.errors import UsageError
from engine.simulate.disturbances import parse_disturbance
from engine.simulate.stragglers import Disturbance


def test_every_part() -> None:
    text = "jitter=0.05, slow=3:1.2, slow=1:2, path=0-1:2.5, seed=7"
    assert parse_disturbance(text) == Disturbance(0.05, ((3, 1.2), (1, 2.0)), ((0, 1, 2.5),), 7)
    assert parse_disturbance("jitter=0.1") == Disturbance(jitter=0.1)


@pytest.mark.parametrize(
    "text",
    [
        "", "seed=7", "jitter=0", "jitter=-1", "jitter=inf", "jitter=nan", "slow=3", "slow=3:0", "slow=x:2", "path=0:2",
        "path=0-1", "path=0-1:-2", "fast=1:2", "jitter=0.1,seed=-1", "slow",
    ],
)  # fmt: skip
def test_anything_else_is_refused_in_words(text: str) -> None:
    with pytest.raises(UsageError, match="a disturbance is written"):
        parse_disturbance(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("jitter=1e30", "a jitter is at most 10, but 'jitter=1e30' came"),
        ("slow=3:1e30", "a factor is at most 1000, but 'slow=3:1e30' came"),
        ("slow=3:1e13", "a factor is at most 1000"),
        ("path=0-1:1e30", "a factor is at most 1000, but 'path=0-1:1e30' came"),
        ("path=0-0:2", "path=0-0 leads from a device to itself"),
        ("slow=1:900,slow=1:900", "slow=1 is given 2 times"),
        ("path=0-1:2,path=1-0:2", "path=0-1 is given 2 times"),
    ],
)
def test_what_no_device_does_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_disturbance(text)
