"""Every form of replica groups says the same lists, and positions and ring shifts are those of the lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import UnsupportedError
from engine.hlo.hlo_pb2 import HloInstructionProto, MeshProto
from engine.ir.groups import (
    Groups,
    GroupsError,
    Mode,
    device_groups,
    digits,
    positions,
    ring_groups,
    shift_pairs,
    written_lists,
)
from engine.ir.module import Header


def collective(opcode: str = "all-gather", channel: int = 1, flat: bool = True) -> HloInstructionProto:
    return HloInstructionProto(name="c", opcode=opcode, channel_id=channel, use_global_device_ids=flat)


def with_lists(lists: list[list[int]], *, legacy: bool = False, **how: int | str | bool) -> HloInstructionProto:
    instruction = collective(**how)  # type: ignore[arg-type]  # the mixed kinds of three keywords
    into = instruction.replica_groups if legacy else instruction.collective_device_list.replica_groups
    for group in lists:
        into.add().replica_ids.extend(group)
    return instruction


def with_iota(count: int, size: int, dims: list[int], perm: list[int]) -> HloInstructionProto:
    instruction = collective()
    iota = instruction.iota_collective_device_list
    iota.num_replica_groups, iota.num_devices_per_group = count, size
    iota.iota_reshape_dims.extend(dims)
    iota.iota_transpose_perm.extend(perm)
    return instruction


def with_mesh(
    sizes: list[int], axes: list[tuple[int, int, int] | int], devices: MeshProto | None = None
) -> HloInstructionProto:
    """Axes are mesh axis numbers, or (axis, pre_size, size) for a sub-axis."""
    instruction = collective()
    written = instruction.mesh_axes_replica_group_list
    if devices is not None:
        written.mesh.CopyFrom(devices)
    for k, size in enumerate(sizes):
        written.mesh.axes.add(name=f"a{k}", size=size)
    for axis in axes:
        ref = written.axes.add()
        if isinstance(axis, int):
            ref.mesh_axis_index = axis
        else:
            ref.mesh_axis_index = axis[0]
            ref.sub_axis_info.pre_size, ref.sub_axis_info.size = axis[1:]
    return instruction


TRANSPOSED = MeshProto(iota_transform=MeshProto.IotaTransform(reshape_dims=[4, 2], transpose_perm=[1, 0]))


@pytest.mark.parametrize(
    ("axes", "devices", "expected"),
    [
        # What an all-gather over these axes of mesh['x'=2,'y'=4] delivered on eight CPU devices (jaxlib 0.10.2).
        ([1, 0], None, [(0, 4, 1, 5, 2, 6, 3, 7)]),
        ([1, 0], TRANSPOSED, [(0, 1, 2, 3, 4, 5, 6, 7)]),
        ([0, 1], None, [(0, 1, 2, 3, 4, 5, 6, 7)]),
        ([0, 1], TRANSPOSED, [(0, 2, 4, 6, 1, 3, 5, 7)]),
        ([(1, 1, 2)], None, [(0, 2), (1, 3), (4, 6), (5, 7)]),
        ([(1, 1, 2)], TRANSPOSED, [(0, 4), (1, 5), (2, 6), (3, 7)]),
        ([(1, 2, 2)], None, [(0, 1), (2, 3), (4, 5), (6, 7)]),
        ([(1, 2, 2)], TRANSPOSED, [(0, 2), (1, 3), (4, 6), (5, 7)]),
        ([(1, 2, 2), (1, 1, 2)], None, [(0, 2, 1, 3), (4, 6, 5, 7)]),
        ([(1, 2, 2), (1, 1, 2)], TRANSPOSED, [(0, 4, 2, 6), (1, 5, 3, 7)]),
        ([0, (1, 2, 2)], None, [(0, 1, 4, 5), (2, 3, 6, 7)]),
        ([0, (1, 2, 2)], TRANSPOSED, [(0, 2, 1, 3), (4, 6, 5, 7)]),
        ([(1, 2, 2), 0], None, [(0, 4, 1, 5), (2, 6, 3, 7)]),
        ([(1, 2, 2), 0], TRANSPOSED, [(0, 1, 2, 3), (4, 5, 6, 7)]),
        ([0], MeshProto(device_ids=[7, 6, 5, 4, 3, 2, 1, 0]), [(7, 3), (6, 2), (5, 1), (4, 0)]),
    ],
)
def test_mesh_axes(
    axes: list[tuple[int, int, int] | int], devices: MeshProto | None, expected: list[tuple[int, ...]]
) -> None:
    assert sorted(written_lists(with_mesh([2, 4], axes, devices))) == sorted(expected)


@given(
    sizes=st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=3),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_all_forms_agree(sizes: list[int], data: st.DataObject) -> None:
    axes = data.draw(st.permutations(range(len(sizes))))
    grouped = axes[: data.draw(st.integers(1, len(axes)))]
    rest = [k for k in range(len(sizes)) if k not in grouped]
    size = int(np.prod([sizes[k] for k in grouped]))
    count = int(np.prod(sizes))
    lists = np.arange(count).reshape(sizes).transpose([*rest, *grouped]).reshape(-1, size).tolist()

    header = Header(num_partitions=count)
    expected = tuple(map(tuple, lists))
    for instruction in (
        with_lists(lists),
        with_lists(lists, legacy=True),
        with_iota(count // size, size, sizes, [*rest, *grouped]),
        with_mesh(sizes, list(grouped)),
    ):
        assert device_groups(instruction, header) == expected
        assert ring_groups(instruction, header) == Groups(expected, Mode.PARTITION)


@given(size=st.integers(1, 9), count=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_positions_shifts_and_digits_are_those_of_the_lists(size: int, count: int, seed: int) -> None:
    ids = np.random.default_rng(seed).permutation(size * count).reshape(count, size)
    for members in (ids, np.arange(size * count).reshape(size, count).T):
        groups = Groups(tuple(tuple(map(int, g)) for g in members), Mode.PARTITION)
        where = positions(groups, size * count)
        assert all(where[g[r]] == r for g in groups.members for r in range(size))
        for hops in (1, 2, -1):
            pairs = shift_pairs(groups, hops)
            assert len({s for s, _ in pairs}) == len({t for _, t in pairs}) == size * count
            assert all((where[s] - hops) % size == where[t] for s, t in pairs)
        found = digits(groups)
        if found is not None:
            for id_ in range(size * count):
                assert where[id_] == sum(id_ // d.stride % d.modulus * d.weight for d in found)


def test_axes_of_meshes_need_arithmetic_only() -> None:
    members = np.arange(24).reshape(2, 3, 4)
    for grouped in ([0], [1], [2], [0, 1], [1, 0], [0, 2], [2, 1, 0]):
        rest = [k for k in range(3) if k not in grouped]
        lists = members.transpose(rest + grouped).reshape(-1, int(np.prod([members.shape[k] for k in grouped])))
        assert digits(Groups(tuple(tuple(map(int, g)) for g in lists), Mode.PARTITION)) is not None, grouped


def test_one_axis_is_one_digit() -> None:
    groups = Groups(((0, 4), (1, 5), (2, 6), (3, 7)), Mode.PARTITION)
    (digit,) = digits(groups) or ()
    assert (digit.stride, digit.modulus, digit.weight) == (4, 2, 1)


def test_irregular_groups_need_a_table() -> None:
    assert digits(Groups(((0, 3, 1, 2),), Mode.PARTITION)) is None
    assert digits(Groups(((1, 0), (2, 3)), Mode.PARTITION)) is None


def test_left_shift_is_the_papers() -> None:
    assert sorted(shift_pairs(Groups(((0, 1, 2, 3),), Mode.PARTITION), 1)) == [(0, 3), (1, 0), (2, 1), (3, 2)]


def test_no_groups_are_everybody() -> None:
    assert device_groups(collective(channel=0, flat=False), Header(1, 4)) == ((0, 1, 2, 3),)
    assert device_groups(collective(), Header(4, 2)) == (tuple(range(8)),)
    assert device_groups(with_lists([[]]), Header(4, 1)) == ((0, 1, 2, 3),)


def test_without_channel_ids_are_replicas() -> None:
    instruction = with_lists([[0, 1]], channel=0, flat=False)
    assert device_groups(instruction, Header(num_partitions=3, replica_count=2)) == ((0, 3), (1, 4), (2, 5))
    assert ring_groups(instruction, Header(3, 2)) == Groups(((0, 1),), Mode.REPLICA)


def test_one_replica_with_all_partitions() -> None:
    instruction = with_lists([[0]], channel=1, flat=False)
    assert ring_groups(instruction, Header(4, 1)) == Groups(((0, 1, 2, 3),), Mode.PARTITION)


def test_all_to_all_reads_partitions() -> None:
    instruction = with_lists([[0, 1], [2, 3]], opcode="all-to-all", flat=False)
    assert device_groups(instruction, Header(4, 2)) == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert ring_groups(instruction, Header(4, 2)) == Groups(((0, 1), (2, 3)), Mode.PARTITION)


def test_flattened_ids_within_replicas_and_within_partitions() -> None:
    header = Header(num_partitions=2, replica_count=2)
    assert ring_groups(with_lists([[0, 1], [2, 3]]), header) == Groups(((0, 1),), Mode.PARTITION)
    assert ring_groups(with_lists([[0, 2], [1, 3]]), header) == Groups(((0, 1),), Mode.REPLICA)


@pytest.mark.parametrize(
    ("lists", "header", "reason"),
    [
        ([[0, 1, 2, 3]], Header(2, 2), "groups span replicas and partitions"),
        ([[0, 3], [1, 2]], Header(2, 2), "groups span replicas and partitions"),
        ([[0, 1], [3, 2]], Header(2, 2), "groups differ from replica to replica"),
        ([[0, 1], [2]], Header(3, 1), r"groups of different sizes \(1, 2\)"),
    ],
)
def test_groups_that_no_ring_runs_in(lists: list[list[int]], header: Header, reason: str) -> None:
    with pytest.raises(GroupsError, match=reason):
        ring_groups(with_lists(lists), header)


def test_channel_without_global_ids_spans_both() -> None:
    with pytest.raises(GroupsError, match="span"):
        ring_groups(with_lists([[0, 1]], flat=False), Header(2, 2))


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (with_lists([[0, 9]]), "name device 9, but the module has 8 devices"),
        (with_lists([[0, 9]], flat=False, opcode="all-to-all"), "name partition 9"),
        (with_lists([[0, 1], [1, 2]]), "1 is in its groups twice"),
        (with_iota(3, 3, [8], []), "do not fit"),
        (with_iota(2, 4, [2, 4], [0, 0]), "do not fit"),
        (with_mesh([2, 4], [2]), "mesh axis 2 of a mesh with 2 axes"),
        (with_mesh([2, 4], [(1, 3, 2)]), "split mesh axis 1"),
        (with_mesh([2, 4], [1, (1, 2, 2)]), "overlapping"),
        (with_mesh([2, 4], [0], MeshProto(device_ids=[0, 1])), "lists 2 device ids"),
    ],
)
def test_groups_that_do_not_fit_are_errors(instruction: HloInstructionProto, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        device_groups(instruction, Header(num_partitions=8))
