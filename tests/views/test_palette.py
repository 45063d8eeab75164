from __future__ import annotations

import pytest

from views.palette import match


@pytest.mark.parametrize(
    ("typed", "title", "fits"), [("undo", "Undo", True), ("csl", "Copy as command line", True), ("xq", "Undo", False)]
)
def test_the_palette_matches_letters_in_order(typed: str, title: str, fits: bool) -> None:
    assert (match(typed, title) is not None) == fits
