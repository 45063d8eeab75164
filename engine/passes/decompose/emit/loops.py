"""Counted `while` loops whose body is written like straight-line code.

The body's builder carries outside values in by itself: constants are copied, everything else becomes loop-carried
state that never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.hlo.hlo_pb2 import ShapeProto
from engine.ir import shapes
from engine.ir.build import Builder
from engine.ir.edit import Instruction

Body = Callable[[Builder, Instruction, list[Instruction]], list[Instruction]]
"""(builder inside, iteration number from 0, state) -> next state, of the same shapes."""


@dataclass(frozen=True, eq=False)
class LoopBuilder(Builder):
    """Builds the body of a loop."""

    parameter_: Instruction = field(default_factory=Instruction)
    carried: list[Instruction] = field(default_factory=list)
    """Outside values that the loop carries unchanged, by their place after the state."""
    first: int = 0
    """Tuple index of the first of them."""

    def local(self, operand: Instruction) -> Instruction:
        if self.editor.computation_of(operand.id) == self.computation:
            return operand
        return self.once(("carried", operand.id), lambda: self._carry(operand))

    def _carry(self, operand: Instruction) -> Instruction:
        if operand.opcode == "constant" and not operand.shape.dimensions:
            return self.clone(operand, operand.shape, (), "copy")
        self.carried.append(operand)
        return self.element(self.first + len(self.carried) - 1, operand)

    def element(self, index: int, like: Instruction) -> Instruction:
        """Element `index` of the loop's state."""
        return self.working_for(like)._made(
            "get-tuple-element", like.shape, (self.parameter_,), "element", tuple_index=index
        )


def counted_loop(builder: Builder, state: Sequence[Instruction], trips: int, body: Body) -> list[Instruction]:
    """Run `body` `trips` times over `state`; what the state is afterwards."""
    editor, source = builder.editor, builder.source
    inside = editor.add_computation(f"{source.name}.body")
    number = Builder(editor, inside, source)
    parameter = number.parameter(0, ShapeProto(element_type=shapes.TUPLE))
    loop = LoopBuilder(editor, inside, source, None, parameter, [], 1 + len(state))
    iteration = loop.element(0, builder.index(0))
    results = body(loop, iteration, [loop.element(1 + k, value) for k, value in enumerate(state)])
    following = loop.add_index(iteration, 1)
    kept = [loop.local(value) for value in loop.carried]
    root = loop.tuple_of([following, *results, *kept])
    editor.set_shape(parameter.id, root.shape)
    editor.set_root(inside, root.id)
    condition = _condition(builder, root.shape, trips)
    start = builder.tuple_of([builder.index(0), *state, *loop.carried])
    finished = builder.loop(start, condition, inside, trips)
    return [builder.get_tuple_element(finished, 1 + k) for k in range(len(state))]


def _condition(builder: Builder, shape: ShapeProto, trips: int) -> int:
    editor = builder.editor
    inside = editor.add_computation(f"{builder.source.name}.condition")
    inner = Builder(editor, inside, builder.source)
    iteration = inner.get_tuple_element(inner.parameter(0, shape), 0)
    editor.set_root(inside, inner.less(iteration, inner.index(trips)).id)
    return inside
