"""Texts of modules from different files, side by side."""

from __future__ import annotations

from views.hlo_text.lines import opens, paired, printed

BEFORE = (
    "HloModule before",
    "%body (p: f32[4]) -> f32[4] {",
    '  %p = f32[4]{0} parameter(0), metadata={op_name="x"}',
    "  ROOT %tanh.7 = f32[4]{0} tanh(%p)",
    "}",
    "ENTRY %main (x: f32[4]) -> f32[4] {",
    "  %x = f32[4]{0} parameter(0)",
    "  %old = f32[4]{0} negate(%x)",
    "  ROOT %call = f32[4]{0} fusion(%old), calls=%body",
    "}",
)
AFTER = (
    "HloModule after",
    "%inner (q: f32[4]) -> f32[4] {",
    '  %q = f32[4]{0} parameter(0), metadata={op_name="y"}',
    "  ROOT %tanh.2 = f32[4]{0} tanh(%q)",
    "}",
    "ENTRY %main (x: f32[4]) -> f32[4] {",
    "  %x = f32[4]{0} parameter(0)",
    "  %new = f32[4]{0} abs(%x)",
    "  ROOT %run = f32[4]{0} fusion(%new), calls=%inner",
    "}",
)
NAMES = {"body": "inner", "p": "q", "tanh.7": "tanh.2", "main": "main", "x": "x", "call": "run"}


def test_lines_of_one_instruction_stand_beside_each_other_whatever_it_is_called() -> None:
    rows = {(row.left, row.right): row.equal for row in paired(BEFORE, AFTER, NAMES)}
    assert rows[2, 2]
    assert rows[3, 3]
    assert rows[6, 6]
    assert not rows[8, 8]  # it calls the same, with another operand
    assert (7, 7) not in rows
    assert rows[7, -1] is rows[-1, 7] is False


def test_each_line_is_shown_once_and_in_order() -> None:
    rows = paired(BEFORE, AFTER, NAMES)
    assert [row.left for row in rows if row.left >= 0] == list(range(len(BEFORE)))
    assert [row.right for row in rows if row.right >= 0] == list(range(len(AFTER)))


def test_only_what_differs_is_tinted() -> None:
    shown = printed(AFTER, BEFORE, NAMES)
    assert shown.beside is not None
    tinted = {shown.text.lines[row]: tint for row, tint in shown.text.tints.items()}
    assert tinted["  %new = f32[4]{0} abs(%x)"] == "added"
    assert tinted[AFTER[8]] == "changed"
    assert AFTER[3] not in tinted
    assert shown.beside.tints[list(shown.beside.lines).index(BEFORE[7])] == "removed"


def test_without_names_an_instruction_stands_beside_its_own_and_what_metadata_refer_to_is_no_difference() -> None:
    before = (
        "FunctionNames",
        '1 "pinned"',
        '2 "mlp"',
        "FileLocations",
        "1 {file_name_id=1 line=66}",
        "%add (x: f32[]) -> f32[] {",
        "  ROOT %x = f32[] parameter(0), metadata={stack_frame_id=1}",
        "}",
        "ENTRY %main (a: f32[4]) -> f32[4] {",
        "  ROOT %a = f32[4]{0} parameter(0)",
        "}",
    )
    after = (
        "FunctionNames",
        '1 "mlp"',
        "FileLocations",
        "1 {file_name_id=1 line=72}",
        "%fused (y: f32[]) -> f32[] {",
        "  ROOT %y = f32[] parameter(0)",
        "}",
        "%add (x: f32[]) -> f32[] {",
        "  ROOT %x = f32[] parameter(0), metadata={stack_frame_id=7}",
        "}",
        "ENTRY %main (a: bf16[4]) -> bf16[4] {",
        "  ROOT %a = bf16[4]{0} parameter(0)",
        "}",
    )
    shown = printed(after, before)
    assert [[shown.text.lines[row] for row in rows] for rows in shown.differences] == [
        list(after[4:7]),
        list(after[10:12]),
    ]
    assert {shown.text.tints[row] for row in shown.differences[0]} == {"added"}
    assert {shown.text.tints[row] for row in shown.differences[1]} == {"changed"}


def test_computations_are_aligned_before_their_lines() -> None:
    """What every computation ends with aligns with that of its own."""
    before = ["HloModule m"]
    for name in "abcd":
        before += [f"%{name} (p: f32[]) -> f32[] {{", f"  ROOT %{name}.1 = f32[] parameter(0)", "}", ""]
    after = [
        *before[:5],
        "%new (q: f32[]) -> f32[] {",
        "  ROOT %q = f32[] parameter(0)",
        "}",
        "",
        *before[5:9],
        *before[13:],
    ]
    rows = paired(before, after, {name: name for name in ("a", "b", "d", "a.1", "b.1", "d.1")})
    assert [row.left for row in rows if row.left >= 0] == list(range(len(before)))
    assert sorted(row.right for row in rows if row.right >= 0) == list(range(len(after)))
    shown = printed(after, before)
    assert [shown.text.lines[rows.start] for rows in shown.differences] == [after[5], ""]
    assert shown.beside is not None
    assert [shown.beside.lines[rows.start] for rows in shown.differences] == ["", before[9]]


MOVED_BEFORE = (
    "HloModule before",
    "%first (p: f32[4]) -> f32[4] {",
    "  ROOT %p = f32[4]{0} parameter(0)",
    "}",
    "%second (q: f32[4]) -> f32[4] {",
    "  %q = f32[4]{0} parameter(0)",
    "  ROOT %t = f32[4]{0} tanh(%q)",
    "}",
    "ENTRY %main (x: f32[4]) -> f32[4] {",
    "  %x = f32[4]{0} parameter(0)",
    "  %a = f32[4]{0} fusion(%x), calls=%first",
    "  %b = f32[4]{0} fusion(%x), calls=%second",
    "  ROOT %r = f32[4]{0} add(%a, %b)",
    "}",
)
MOVED_AFTER = (
    MOVED_BEFORE[0],
    *MOVED_BEFORE[4:6],
    "  ROOT %t = f32[4]{0} exponential(%q)",
    MOVED_BEFORE[7],
    *MOVED_BEFORE[1:4],
    *MOVED_BEFORE[8:10],
    MOVED_BEFORE[11],
    MOVED_BEFORE[10],
    *MOVED_BEFORE[12:],
)


def test_what_has_moved_is_neither_added_nor_removed() -> None:
    """A computation's place is no difference, an instruction's is; what was changed in a moved computation is told."""
    shown = printed(MOVED_AFTER, MOVED_BEFORE)
    assert shown.beside is not None
    tints = [{side.lines[row].strip(): tint for row, tint in side.tints.items()} for side in (shown.beside, shown.text)]
    assert {tint for side in tints for tint in side.values()} == {"moved", "changed"}
    moved = {line for side in tints for line, tint in side.items() if tint == "moved"}
    assert "%b = f32[4]{0} fusion(%x), calls=%second" in moved or "%a = f32[4]{0} fusion(%x), calls=%first" in moved
    assert [line for side in tints for line, tint in side.items() if tint == "changed"] == [
        "ROOT %t = f32[4]{0} tanh(%q)",
        "ROOT %t = f32[4]{0} exponential(%q)",
    ]
    differing = {shown.text.lines[row] or shown.beside.lines[row] for rows in shown.differences for row in rows}
    assert not any(opens(line) for line in differing)
    assert any("calls=" in line for line in differing)


def test_a_module_whose_computations_stand_in_another_order_does_not_differ() -> None:
    again = (MOVED_BEFORE[0], *MOVED_BEFORE[4:8], *MOVED_BEFORE[1:4], *MOVED_BEFORE[8:])
    shown = printed(again, MOVED_BEFORE)
    assert not shown.differences
    assert set(shown.text.tints.values()) == {"moved"}
