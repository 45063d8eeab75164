"""Valid orders that depart from the one at hand only where they must."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from engine.hlo.hlo_pb2 import HloInstructionProto


def operands_first(
    order: Iterable[int], instructions: Mapping[int, HloInstructionProto], changed: Collection[int] | None = None
) -> list[int]:
    """The ids of `order` so that each follows its operands and control predecessors, which must all be among them.

    `changed`: ids of those that may come before what they wait for; all others follow it in `order`, and most need not
    be looked at. Raises ValueError where an instruction waits for itself.
    """
    done: set[int] = set()
    open_: set[int] = set()
    ordered: list[int] = []
    for first in order:
        if first in done:
            continue
        stands = changed is not None and first not in changed
        if stands or done.issuperset(_dependencies(instructions[first])):
            done.add(first)
            ordered.append(first)
            continue
        stack = [(first, iter(_dependencies(instructions[first])))]
        open_.add(first)
        while stack:
            top, dependencies = stack[-1]
            waiting = next((d for d in dependencies if d not in done), None)
            if waiting is None:
                stack.pop()
                open_.remove(top)
                done.add(top)
                ordered.append(top)
                continue
            if waiting in open_:
                raise ValueError(f"{instructions[waiting].name} waits for itself")
            stack.append((waiting, iter(_dependencies(instructions[waiting]))))
            open_.add(waiting)
    return ordered


def callees_first(order: Iterable[int], callees: Mapping[int, Collection[int]]) -> list[int]:
    """The computations of `order` and all they call (`callees` by caller), callees before callers."""
    done: dict[int, None] = {}
    for first in order:
        # Each computation's callees are gone through once: a caller may have thousands.
        stack = [(first, iter(callees.get(first, ())))]
        while stack:
            waiting = next((c for c in stack[-1][1] if c not in done), None)
            if waiting is None:
                done.setdefault(stack.pop()[0])
            else:
                stack.append((waiting, iter(callees.get(waiting, ()))))
    return list(done)


def _dependencies(instruction: HloInstructionProto) -> tuple[int, ...]:
    return *instruction.operand_ids, *instruction.control_predecessor_ids
