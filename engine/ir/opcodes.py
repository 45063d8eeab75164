"""Opcodes that several parts of the engine treat alike."""

from __future__ import annotations

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


MATMULS = frozenset({"convolution", "dot", "ragged-dot", "scaled-dot"})
"""Opcodes that multiply: what matmul units do."""


def is_start(opcode: str) -> bool:
    """Whether an instruction begins a transfer and does not wait for it."""
    return opcode.endswith("-start") or opcode in ("send", "recv")
