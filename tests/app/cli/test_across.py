"""Where the time went between two modules, as `compare` says it."""

from __future__ import annotations

import pytest

from app.cli.across import Part, relation_json, show_relation
from engine.hlo.reading import read_here
from engine.quantities import microseconds, signed_time_text
from engine.session.evaluation import Evaluator
from engine.session.plan import plain_plan
from tests.places import SAMPLES

_LISTED = 12


def part(name: str) -> Part:
    module = read_here((SAMPLES / name).read_bytes(), name)
    return Part(name, module, [Evaluator(module).evaluate(plain_plan(module))])


def test_what_is_not_listed_has_a_row_so_that_all_add_up(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    first, other = part("mlp_fig2_train_4_f32.hlo"), part("mlp_chain_train_8_bf16.hlo")
    rows = [row["other_us"] - row["first_us"] for row in relation_json(first, other)["differences"]]
    whole = other.variants[-1].metrics.makespan - first.variants[-1].metrics.makespan
    assert sum(rows) == pytest.approx(microseconds(whole))
    assert len(rows) > _LISTED
    show_relation(first, other)
    (more,) = [line for line in capsys.readouterr().out.splitlines() if f" {len(rows) - _LISTED} more " in line]
    assert signed_time_text(round(sum(rows[_LISTED:]) * 1e6)) in more
