from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.layout.figures import Figure
from tests.views.colour_difference import contrast
from views.graph.colouring import by_decision, by_scale
from views.theme import DARK, LIGHT, Theme

SCALED = [f for f in Figure if f not in (Figure.KIND, Figure.DECISION)]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("figure", SCALED)
def test_labels_can_be_read_on_every_shade(theme: Theme, figure: Figure) -> None:
    values = np.geomspace(1, 1e12, 50)
    colouring = by_scale(theme, figure, values, np.arange(50))
    assert len(colouring.swatches) >= 6
    for swatch in colouring.swatches:
        assert contrast(swatch.role.label, swatch.role.fill) >= 4.5, swatch


@given(st.lists(st.one_of(st.just(float("nan")), st.floats(0, 1e15)), min_size=1, max_size=40))
def test_more_is_never_a_lower_shade(numbers: list[float]) -> None:
    values = np.array(numbers)
    colouring = by_scale(LIGHT, Figure.TIME, values, np.arange(len(values)))
    there = np.flatnonzero(np.isfinite(values))
    order = there[np.argsort(values[there], kind="stable")]
    assert (np.diff(colouring.number[order].astype(int)) >= 0).all()
    assert int(colouring.number.max()) < len(colouring.swatches)


def test_no_slack_is_told_from_unknown_slack() -> None:
    colouring = by_scale(LIGHT, Figure.SLACK, np.array([0.0, np.nan, 5e6, 9e9]), np.arange(4))
    texts = [colouring.swatches[n].text for n in colouring.number.tolist()]
    assert texts[:2] == ["0", "none"]
    fills = [colouring.swatches[n].role.fill for n in colouring.number.tolist()]
    assert contrast(fills[0], LIGHT.base) > contrast(fills[2], LIGHT.base) > contrast(fills[3], LIGHT.base)


def test_undecided_nodes_say_so() -> None:
    colouring = by_decision(LIGHT, np.array([0.0, 1.0, np.nan]))
    assert [colouring.swatches[n].text for n in colouring.number.tolist()] == [
        "decomposed",
        "left whole",
        "nothing decided",
    ]
