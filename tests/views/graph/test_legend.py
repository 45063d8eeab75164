"""Every colour of the graph is explained, however narrow the pane."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from tests.views.fake_host import host_of
from tests.views.synthetic import variant
from views.graph.colouring import by_kind
from views.graph.legend import Legend
from views.theme import LIGHT


@pytest.mark.parametrize("width", [240, 495, 1200])
def test_every_swatch_has_a_place_of_its_own(qtbot: QtBot, width: int) -> None:
    legend = Legend(host_of(variant(1)))
    qtbot.addWidget(legend)
    colouring = by_kind(LIGHT, np.zeros(1, np.uint8))
    legend.set_swatches(colouring.swatches)
    places = legend.places(width)
    assert len(places) == len(colouring.swatches)
    assert all(place.right() < width and place.bottom() < legend.heightForWidth(width) for place in places)
    assert not any(one.intersects(two) for one, two in combinations(places, 2))
