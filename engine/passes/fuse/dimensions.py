"""Where a box of elements lies after a reshape, if it is still a box."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Range = tuple[int, int]
"""First element and the one after the last."""


def carry_range(ranges: Sequence[Range], old: Sequence[int], new: Sequence[int]) -> list[Range] | None:
    """The ranges, in an array of shape `new`, of the elements that `ranges` hold in the same array of shape `old`.

    Row-major, one range for each dimension. None where those elements are no box in the new shape, or come in another
    order there.
    """
    result: list[Range] = []
    for olds, news in _groups(old, new):
        flat = _flatten(ranges[olds.start : olds.stop], old[olds.start : olds.stop])
        carried = None if flat is None else _unflatten(flat, new[news.start : news.stop])
        if carried is None:
            return None
        result += carried
    return result


def _groups(old: Sequence[int], new: Sequence[int]) -> Iterator[tuple[range, range]]:
    """Smallest runs of dimensions of both shapes that hold the same number of elements."""
    i = j = 0
    while i < len(old) or j < len(new):
        first_i, first_j = i, j
        a = b = 1
        while True:
            if a == b and (i, j) != (first_i, first_j):
                break
            if a <= b and i < len(old):
                a *= old[i]
                i += 1
            elif j < len(new):
                b *= new[j]
                j += 1
            else:
                a *= old[i]
                i += 1
        yield range(first_i, i), range(first_j, j)


def _flatten(ranges: Sequence[Range], sizes: Sequence[int]) -> Range | None:
    """The run of elements that a box is in row-major order; None where it is not one run."""
    start, length, stride = 0, 1, 1
    for (low, high), size in zip(reversed(ranges), reversed(sizes), strict=True):
        # `length` elements from `start` so far, in blocks of `stride`: more of them join only when blocks are whole.
        if high - low > 1 and length != stride:
            return None
        start += low * stride
        length *= high - low
        stride *= size
    return start, start + length


def _unflatten(run: Range, sizes: Sequence[int]) -> list[Range] | None:
    """The box of shape `sizes` that is the run; None where the run is no box."""
    start, stop = run
    ranges: list[Range] = []
    for size in reversed(sizes):
        if stop - start == 1 or (start // size == (stop - 1) // size):
            ranges.append((start % size, (stop - 1) % size + 1))
            start //= size
            stop = start + 1
        elif start % size == 0 and stop % size == 0:
            ranges.append((0, size))
            start, stop = start // size, stop // size
        else:
            return None
    return ranges[::-1]
