"""Budgets as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.chips.budget import KIND_NAMES, Budget, Kind
from engine.errors import UsageError

budgets = st.builds(
    lambda total, kinds: Budget(total, tuple(sorted(kinds.items()))),
    st.none() | st.integers(1, 99),
    st.dictionaries(st.sampled_from(sorted(KIND_NAMES.values())), st.integers(1, 99)),
)


@given(budgets)
def test_text_and_budget_are_inverse(budget: Budget) -> None:
    assert Budget.parse(str(budget)) == budget


def test_the_forms_of_the_manual() -> None:
    assert Budget.parse("4") == Budget(4)
    assert Budget.parse(" permute=4, gather=1 ,total=5") == Budget(5, ((Kind.PERMUTE, 4), (Kind.ALL_GATHER, 1)))
    assert Budget.parse("1000000") == Budget(1_000_000)
    assert Budget.parse("0000000004") == Budget(4)
    assert Budget.parse("unlimited") == Budget()
    assert str(Budget(5, ((Kind.PERMUTE, 4),))) == "permute=4,total=5"
    assert Budget(5, ((Kind.PERMUTE, 4),)).in_words() == "at most 5 operations in flight (permute 4)"
    assert Budget(5).in_words() == "at most 5 operations in flight"
    assert Budget(None, ((Kind.PERMUTE, 4),)).in_words() == "at most so many operations in flight: permute 4"
    assert Budget().in_words() == "any number of operations in flight"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a budget is a number"),
        ("four", "'four' in 'four' is neither"),
        ("permute", "is neither"),
        ("-1", "is neither"),
        ("0", "at least 1"),
        ("1000001", "over 1,000,000, which is more than any program has in flight; 'unlimited'"),
        ("permute=99999999999999999999999", "over 1,000,000"),
        ("9" * 5000, "over 1,000,000"),
        ("permute=0", "at least 1"),
        ("permutes=4", "no kind is called 'permutes'; there are: permute, gather"),
        ("4,5", "'5' in '4,5' names no kind"),
        ("permute=1,permute=2", "'permute' is given twice"),
        ("total=1,total=2", "the total is given twice"),
    ],
)
def test_what_is_no_budget_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("(", r"\(")):
        Budget.parse(text)


@pytest.mark.parametrize(
    ("text", "in_force"),
    [
        ("3", "permute=4,gather=2,total=3"),
        ("total=12", "permute=4,gather=2,total=12"),
        ("permute=1", "permute=1"),
        ("permute=6,total=7", "permute=6,total=7"),
        ("unlimited", "unlimited"),
    ],
)
def test_a_total_alone_leaves_the_limits_of_the_chip_by_kind(text: str, in_force: str) -> None:
    usual = Budget.parse("permute=4,gather=2,total=8")
    assert Budget.parse(text).on(usual) == Budget.parse(in_force)
    assert Budget.parse(text).on(Budget(1)) == Budget.parse(text)


def test_the_limit_of_a_kind_is_the_tighter_of_its_own_and_the_total() -> None:
    budget = Budget(3, ((Kind.PERMUTE, 4), (Kind.ALL_GATHER, 1)))
    assert [budget.limit(k) for k in (Kind.PERMUTE, Kind.ALL_GATHER, Kind.COPY)] == [3, 1, 3]
    assert Budget().limit(Kind.PERMUTE) is None
