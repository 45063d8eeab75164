"""How capacity is shared, and that nothing is oversubscribed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.simulate.sharing import HBM, ONE, Load, Loads, fair_shares

parts = st.integers(0, ONE)
loads = st.builds(
    lambda links, hbm: Load(tuple(sorted(links.items())), hbm),
    st.dictionaries(st.integers(0, 3), st.integers(1, ONE), max_size=3),
    parts,
)


@given(st.lists(parts, min_size=1, max_size=6), st.integers(0, 3 * ONE))
def test_shares_are_max_min_fair(wants: list[int], capacity: int) -> None:
    shares = fair_shares(wants, capacity)
    assert sum(shares) <= capacity
    assert all(share <= want for share, want in zip(shares, wants, strict=True))
    if sum(wants) <= capacity:
        assert shares == wants
    else:
        assert sum(shares) > capacity - len(wants)
    most = max(shares)
    for share, want in zip(shares, wants, strict=True):
        assert share == want or share >= most - 1


@given(st.lists(loads, min_size=1, max_size=5))
def test_rates_fill_resources_and_no_more(flights: list[Load]) -> None:
    table = Loads(sharing=True)
    numbers = [table.number(load) for load in flights]
    rates = table.rates(numbers)
    used: dict[int, int] = {}
    for number in numbers:
        for resource, part in table.load(number).demands:
            used[resource] = used.get(resource, 0) + part * rates.transfers[number]
    # A rate is at least 1 of a million, whatever that takes.
    assert all(amount <= ONE * (ONE + 8 * len(flights)) for amount in used.values())
    assert used.get(HBM, 0) <= ONE * (rates.hbm + 1)
    for number in numbers:
        slowed = rates.transfers[number] < ONE
        tight = ONE * (ONE - 8 * len(flights))
        assert not slowed or any(used[k] >= tight - p * len(flights) for k, p in table.load(number).demands)


@given(st.lists(loads, min_size=1, max_size=4), st.integers(1, ONE))
def test_compute_beside_transfers_leaves_them_no_less_than_their_share(flights: list[Load], hbm: int) -> None:
    table = Loads(sharing=True)
    numbers = [table.number(load) for load in flights]
    alone = table.rates(numbers)
    compute, beside = table.beside(numbers, ONE, hbm)
    assert 1 <= compute <= ONE
    assert all(1 <= beside[number] <= alone.transfers[number] for number in numbers)


def test_without_sharing_everything_runs_at_full_speed() -> None:
    table = Loads(sharing=False)
    numbers = [table.number(Load(((0, ONE),), ONE, ONE // 2)) for _ in range(3)]
    rates = table.rates(numbers)
    assert (dict(rates.transfers), rates.hbm, rates.compute) == ({0: ONE}, 0, ONE)


@pytest.mark.parametrize(("count", "left"), [(1, ONE - ONE // 4), (3, ONE // 4), (9, ONE // 8)])
def test_cores_are_taken_up_to_a_limit(count: int, left: int) -> None:
    table = Loads(sharing=True)
    numbers = [table.number(Load((), 0, ONE // 4))] * count
    assert table.rates(numbers).compute == left
