"""Copies that a loop's state will need."""

from __future__ import annotations

import pytest

from engine.cost.carried import loop_copies
from engine.hlo.reading import read_here
from engine.ir.shapes import text

STATE = "(f32[4], f32[8], f32[8])"
PAIRS = "channel_id=1, source_target_pairs={{0,1},{1,0}}"


def copies(body: str, header: str = "") -> list[str]:
    module = read_here(
        f"""HloModule m, num_partitions=2{header}

body {{
  s = {STATE} parameter(0)
  a = f32[4]{{0}} get-tuple-element(s), index=0
  b = f32[8]{{0}} get-tuple-element(s), index=1
  c = f32[8]{{0}} get-tuple-element(s), index=2
{body}
}}

condition {{
  s = {STATE} parameter(0)
  ROOT p = pred[] constant(false)
}}

ENTRY main {{
  x = {STATE} parameter(0)
  ROOT w = {STATE} while(x), condition=condition, body=body
}}
""".encode()
    )
    return [text(shape) for shapes in loop_copies(module).values() for shape in shapes]


@pytest.mark.parametrize(
    ("body", "copied"),
    [
        (f"ROOT r = {STATE} tuple(a, b, c)", []),
        (f"ROOT r = {STATE} tuple(a, c, b)", ["f32[8]", "f32[8]"]),
        (f"p = f32[8]{{0}} collective-permute(b), {PAIRS}\n ROOT r = {STATE} tuple(a, p, c)", ["f32[8]"]),
        (f"n = f32[8]{{0}} negate(b)\n ROOT r = {STATE} tuple(a, n, c)", []),
        (f"p = f32[8]{{0}} collective-permute(b), {PAIRS}\n q = f32[8]{{0}} collective-permute(p), {PAIRS}\n"
         f" ROOT r = {STATE} tuple(a, q, p)", []),
        (f"p = (f32[8]{{0}}, f32[8]{{0}}) collective-permute-start(c), {PAIRS}\n"
         f" q = f32[8]{{0}} collective-permute-done(p)\n ROOT r = {STATE} tuple(a, b, q)", ["f32[8]"]),
        (f"t = f32[4]{{0}} reverse(a), dimensions={{0}}\n ROOT r = {STATE} tuple(t, b, c)", ["f32[4]"]),
    ],
)  # fmt: skip
def test_what_is_copied(body: str, copied: list[str]) -> None:
    assert copies(body) == copied


def test_a_compiled_module_shows_its_copies_itself() -> None:
    assert copies(f"ROOT r = {STATE} tuple(a, c, b)", ", is_scheduled=true") == []
