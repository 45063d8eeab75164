"""Opcodes that several parts of the engine treat alike."""

from __future__ import annotations

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
"""Every opcode that XLA's parser knows, of jaxlib 0.10.2; tables of opcodes are tested against it."""

COLLECTIVES = frozenset(
    {
        "all-gather",
        "all-reduce",
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "ragged-all-to-all",
        "reduce-scatter",
    }
)
"""Exchanges between devices in their blocking form; the asynchronous ones end in ``-start`` and ``-done``."""

ELEMENTWISE = frozenset(
    {
        "abs", "acos", "acosh", "add", "and", "asin", "asinh", "atan2", "atanh", "cbrt", "ceil", "clamp", "compare",
        "complex", "convert", "copy", "cosh", "cosine", "count-leading-zeros", "divide", "erf", "exponential",
        "exponential-minus-one", "floor", "imag", "is-finite", "log", "log-plus-one", "logistic", "maximum", "minimum",
        "mulhi", "multiply", "negate", "not", "or", "popcnt", "power", "real", "reduce-precision", "remainder",
        "round-nearest-afz", "round-nearest-even", "rsqrt", "select", "shift-left", "shift-right-arithmetic",
        "shift-right-logical", "sign", "sine", "sinh", "sqrt", "stochastic-convert", "subtract", "tan", "tanh", "xor",
    }
)  # fmt: skip
"""Opcodes that compute each element of their result from the same element of every operand."""


def is_start(opcode: str) -> bool:
    """Whether an instruction begins a transfer and does not wait for it."""
    return opcode.endswith("-start") or opcode in ("send", "recv")
