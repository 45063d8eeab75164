"""How a module, as one device runs it, is another than the one that a plan was made for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .arguments import difference, spoken
from .program import kept_arguments


def module_difference(expected: Mapping[str, str], found: Mapping[str, str], names: Sequence[str]) -> str:
    """The first difference between what two modules are known by; empty where there is none. `names` are those of
    the arguments."""
    here, there = _shapes(found, names), _shapes(expected, names)
    for kind in ("argument", "result"):
        if differs := difference(kind, here[kind], there[kind]):
            return differs
    if found["sha256"] != expected["sha256"]:
        return "it has other instructions or constants than the module that the plan was made for"
    headers = [name for name, value in found.items() if value != expected[name]]
    return "".join(f"its {n} is {found[n]:.200}, the plan was made for {expected[n]:.200}" for n in headers[:1])


def kept_names(signature: Mapping[str, Any]) -> list[str]:
    """What a step calls the arguments that its module takes."""
    return [spoken(signature["arguments"][number]["path"], signature) for number in kept_arguments(signature)]


def _shapes(known: Mapping[str, str], names: Sequence[str]) -> dict[str, dict[Any, str]]:
    """Arguments, by these names if they are as many, and results in a module's header: `{(f32[8,8]{1,0}, …)->(…)}`;
    and which arguments are donated."""
    arguments, results = (
        re.findall(r"\w+\[[^\]]*\](?:\{[^{}]*\})?", side)
        for side in known["entry_computation_layout"][1:-1].split("->")
    )
    aliased = re.findall(r": \((\d+)", known["input_output_alias"])
    for number in (*aliased, *re.findall(r"\((\d+), \{", known["buffer_donor"])):
        arguments[int(number)] += ", donated"
    called = names if len(names) == len(arguments) else range(len(arguments))
    return {"argument": dict(zip(called, arguments, strict=True)), "result": dict(enumerate(results))}
