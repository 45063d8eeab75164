"""Each table of opcodes places every opcode of XLA on purpose: what it leaves out is listed here, so that an opcode
that is new to `ALL` fails until somebody decides."""

from __future__ import annotations

import re
from pathlib import Path

import jaxlib
import pytest

from engine.cost.work import FREE, MOVES, REDUCING, SORTING, TRANSCENDENTAL
from engine.hlo import xla
from engine.ir.loop_copies import ELSEWHERE_IN_FUSION, IN_PLACE
from engine.ir.opcodes import ELEMENTWISE, MATMULS
from tests.engine.ir.test_opcodes import is_known

_ALL = """
abs acos acosh add add-dependency after-all all-gather all-gather-done all-gather-start all-reduce all-reduce-done
all-reduce-start all-to-all and asin asinh async-done async-start async-update atan2 atanh batch-norm-grad
batch-norm-inference batch-norm-training bitcast bitcast-convert broadcast call cbrt ceil cholesky clamp
collective-broadcast collective-permute collective-permute-done collective-permute-start compare complex concatenate
conditional constant convert convolution copy copy-done copy-start cosine cosh count-leading-zeros custom-call
divide domain dot dynamic-reshape dynamic-slice dynamic-update-slice erf exponential exponential-minus-one fft floor
fusion gather get-dimension-size get-tuple-element imag infeed iota is-finite log log-plus-one logistic map maximum
minimum mulhi multiply negate not opt-barrier or outfeed pad parameter partition-id popcnt power ragged-all-to-all
ragged-dot real recv recv-done reduce reduce-precision reduce-scatter reduce-window remainder replica-id reshape
reverse rng rng-bit-generator rng-get-and-update-state round-nearest-afz round-nearest-even rsqrt scaled-dot scan
scatter select select-and-scatter send send-done set-dimension-size shift-left shift-right-arithmetic
shift-right-logical sign sine sinh slice sort sqrt stochastic-convert subtract tan tanh topk transpose
triangular-solve tuple while xor
"""
ALL = frozenset(_ALL.split())
"""Every opcode that XLA's parser knows, of jaxlib 0.10.2."""

_ELSEWHERE = """
all-gather all-gather-done all-gather-start all-reduce all-reduce-done all-reduce-start all-to-all async-done
async-start async-update call collective-broadcast collective-permute collective-permute-done collective-permute-start
conditional copy-done copy-start custom-call fusion infeed outfeed ragged-all-to-all recv recv-done reduce-scatter
send send-done while
"""
ELSEWHERE = frozenset(_ELSEWHERE.split())
"""Transfers, and instructions that run others: priced and placed by what they move or call."""

_SIMPLE = """
abs add and ceil clamp compare complex convert count-leading-zeros floor imag is-finite maximum minimum mulhi multiply
negate not or popcnt real reduce-precision round-nearest-afz round-nearest-even select shift-left
shift-right-arithmetic shift-right-logical sign stochastic-convert subtract xor
"""
SIMPLE = frozenset(_SIMPLE.split())
"""Elementwise in one operation an element; `copy` only moves."""

_ONE_OPERATION_AN_ELEMENT = """
batch-norm-grad batch-norm-inference batch-norm-training bitcast-convert cholesky dynamic-reshape map rng
rng-bit-generator rng-get-and-update-state scan scatter set-dimension-size triangular-solve
"""
ONE_OPERATION_AN_ELEMENT = frozenset(_ONE_OPERATION_AN_ELEMENT.split())
"""What compilers rewrite before anything is scheduled, or what one operation an element describes well enough."""

REWRITTEN_IN_PLACE = frozenset({"dynamic-update-slice", "scatter", "set-dimension-size"})
"""By rules of their own in `engine.ir.aliasing`."""

_MAY_STAND_IN_A_FUSION = """
add-dependency after-all bitcast bitcast-convert broadcast concatenate constant domain dynamic-reshape dynamic-slice
get-dimension-size get-tuple-element iota map opt-barrier pad parameter partition-id replica-id reshape rng
rng-bit-generator rng-get-and-update-state slice tuple
"""
MAY_STAND_IN_A_FUSION = frozenset(_MAY_STAND_IN_A_FUSION.split())
"""What a fusion may hold beside elementwise opcodes and still write over what it reads, element for element."""


def partitioned(*sets: frozenset[str]) -> None:
    """Every opcode is in exactly one of the sets."""
    assert sorted(set().union(*sets)) == sorted(ALL)
    twice = {o for n, one in enumerate(sets) for two in sets[n + 1 :] for o in one & two}
    assert not twice


def test_what_an_instruction_computes() -> None:
    moved = MOVES - FREE
    partitioned(FREE, moved, MATMULS, REDUCING, SORTING, TRANSCENDENTAL, SIMPLE, ONE_OPERATION_AN_ELEMENT, ELSEWHERE)


def test_elementwise_opcodes_are_simple_transcendental_or_a_copy() -> None:
    assert SIMPLE | TRANSCENDENTAL | {"copy"} == ELEMENTWISE


def test_what_may_be_written_over_an_operand() -> None:
    assert ELEMENTWISE | {"bitcast-convert", "map"} == IN_PLACE
    partitioned(ELEMENTWISE, ELSEWHERE_IN_FUSION, REWRITTEN_IN_PLACE, MAY_STAND_IN_A_FUSION, ELSEWHERE)


@pytest.mark.parametrize("opcode", sorted(ALL))
def test_xla_knows_each(opcode: str) -> None:
    assert is_known(opcode)


@pytest.mark.full
@pytest.mark.skipif(xla.version() != "0.10.2", reason="ALL is of this version; others may know more")
def test_xla_knows_no_other() -> None:
    (library,) = Path(jaxlib.__file__).parent.glob("libjax_common.so")
    words = re.findall(rb"\0([a-z][a-z0-9-]{1,40})(?=\0)", library.read_bytes())
    others = {word.decode() for word in words} - ALL
    assert [word for word in sorted(others) if is_known(word)] == []
