"""Device counts that headers do not say."""

from __future__ import annotations

import pytest

from engine.hlo.partitions import infer_counts
from engine.hlo.reading import read_here
from engine.ir.module import Header

GLOBAL = "use_global_device_ids=true, to_apply=add"


@pytest.mark.parametrize(
    ("operation", "partitions", "replicas"),
    [
        (f"f32[4] all-reduce(p), channel_id=1, replica_groups={{{{0,1}},{{2,3}}}}, {GLOBAL}", 4, 1),
        ("f32[4] all-reduce(p), replica_groups={{0,1},{2,3}}, to_apply=add", 1, 4),
        (
            "f32[4] all-reduce(p), channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=add",
            8,
            1,
        ),
        (f"f32[4] all-reduce(p), channel_id=1, replica_groups=mesh['x'=2,'y'=3] {{'y'}}, {GLOBAL}", 6, 1),
        ("f32[4] collective-permute(p), channel_id=1, source_target_pairs={{0,1},{4,2}}", 5, 1),
        ("f32[4] collective-permute(p), source_target_pairs={{0,1},{4,2}}", 1, 5),
        ("f32[4] all-reduce(p), replica_groups={}, to_apply=add", 1, 1),
        ("f32[4] negate(p)", 1, 1),
    ],
)
def test_counts_come_from_the_ids_named(operation: str, partitions: int, replicas: int) -> None:
    text = (
        "HloModule m\nadd {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
        f"ENTRY main {{\n  p = f32[4] parameter(0)\n  ROOT r = {operation}\n}}\n"
    )
    module = read_here(text.encode())
    assert (module.header.num_partitions, module.header.replica_count) == (partitions, replicas)
    inferred = partitions * replicas > 1
    assert len(module.notes) == inferred
    assert all("was inferred from" in note and " r:" in note for note in module.notes)


def test_replicas_of_partitions_are_counted_apart() -> None:
    """As of a HloModuleProto, which has no place for either count."""
    text = (
        "HloModule m\nENTRY main {\n  p = f32[4] parameter(0)\n"
        "  g = f32[16] all-gather(p), channel_id=1, replica_groups=[2,4]<=[8], dimensions={0}, "
        "use_global_device_ids=true\n  ROOT r = f32[16] collective-permute(g), source_target_pairs={{0,1},{1,0}}\n}\n"
    )
    module = read_here(text.encode())
    assert (module.header.num_partitions, module.header.replica_count) == (4, 2)
    assert module.notes == (
        "replica_count=2 and num_partitions=4 were inferred from collective-permute r and all-gather g: the header "
        "does not say it.",
    )


def test_a_header_that_says_it_is_believed() -> None:
    text = "HloModule m, num_partitions=16\nENTRY main {\n  p = f32[4] parameter(0)\n" + (
        "  ROOT r = f32[4] collective-permute(p), channel_id=1, source_target_pairs={{0,1}}\n}\n"
    )
    module = read_here(text.encode())
    assert module.header == Header(16)
    assert infer_counts(module.proto, module.header) == (module.header, None)


def groups_over(count: int, partitions: int, groups: str) -> str:
    return (
        f"HloModule m, num_partitions={partitions}\n"
        "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"
        "ENTRY e { p = f32[64]{0} parameter(0)\n"
        + "".join(
            f"r{k} = f32[64]{{0}} all-reduce({f'r{k - 1}' if k else 'p'}), channel_id={k + 1}, "
            f"replica_groups={groups}, use_global_device_ids=true, to_apply=add\n"
            for k in range(count)
        )
        + f"ROOT z = f32[64]{{0}} copy(r{count - 1}) }}"
    )


@pytest.mark.parametrize("groups", ["{{0,1,2,3},{4,5,6,7}}", "[2,4]<=[8]"])
def test_groups_that_leave_devices_out_are_said(groups: str) -> None:
    (said,) = read_here(groups_over(2, 16, groups).encode()).notes
    assert said.startswith(
        "The replica groups of r0 should contain 16 devices, which is what the header says, but name 8"
    )
    assert "1 more" in said
    assert read_here(groups_over(2, 8, groups).encode()).notes == ()
