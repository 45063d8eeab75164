"""One layer of a large model as partitioned HLO: what each device of a mesh runs, forward and backward apart.

Partitioned as Figures 2 and 3 of "Overlap Communication with Dependent Computation via Decomposition in Large Deep
Learning Models" (ASPLOS '23). On a mesh [M, N] with axes x and y activations are [tokens/N, features/M], weights are
split along both; activations are gathered along x and weights along y before an einsum, and the partial sums of the
second einsum are reduced and scattered along x. With one dimension, activations are split by tokens alone and weights
are gathered along x.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Mesh:
    """Devices [M, N]: device number = position along y × M + position along x."""

    x: int
    y: int

    @property
    def devices(self) -> int:
        return self.x * self.y

    def groups(self, axis: str) -> str:
        """Replica groups along an axis."""
        if axis == "x":
            return f"[{self.y},{self.x}]<=[{self.devices}]"
        return f"[{self.x},{self.y}]<=[{self.y},{self.x}]T(1,0)"

    def size(self, axis: str) -> int:
        return self.x if axis == "x" else self.y


@dataclass(frozen=True)
class Layer:
    """Global sizes of one layer."""

    features: int
    hidden: int
    attention: int
    """Heads × size of a head; 0 for a layer without attention."""
    tokens: int
    """Of the whole batch."""
    sequence: int
    feedforwards: int = 1
    """2 in a conformer."""
    gated: bool = False
    """Whether the feed-forward has a gate beside its first matrix."""
    cross: bool = False
    """Whether there is a second attention, over another sequence of the same length."""
    convolution: bool = False
    """Whether there is a conformer's convolution module: pointwise to twice the features, depthwise, pointwise."""
    experts: int = 0
    """Of a mixture with two experts a token, one expert's weights a position along y; 0 is a dense layer."""
    head: int = 128

    @property
    def parameters(self) -> int:
        d = self.features
        feedforward = (3 if self.gated else 2) * d * self.hidden * max(self.experts, 1) * self.feedforwards
        attention = 4 * d * self.attention * (2 if self.cross else 1)
        return feedforward + attention + (3 * d * d if self.convolution else 0)


@dataclass
class Text:
    """HLO text of one computation, instruction by instruction. Values are (name, shape)."""

    mesh: Mesh
    lines: list[str] = field(default_factory=list)
    parameters: int = 0
    channels: int = 0
    dtype: str = "bf16"

    def emit(self, shape: Shape, expression: str, dtype: str = "") -> Value:
        name = f"v{len(self.lines)}"
        self.lines.append(f"  {name} = {dtype or self.dtype}[{','.join(map(str, shape))}] {expression}")
        return Value(name, shape)

    def parameter(self, *shape: int) -> Value:
        self.parameters += 1
        return self.emit(shape, f"parameter({self.parameters - 1})")

    def gather(self, value: Value, axis: str, dim: int) -> Value:
        if self.mesh.size(axis) == 1:
            return value
        shape = _scaled(value.shape, dim, self.mesh.size(axis), 1)
        return self.emit(shape, f"all-gather({value.name}), {self._along(axis)}, dimensions={{{dim}}}")

    def scatter(self, value: Value, axis: str, dim: int) -> Value:
        if self.mesh.size(axis) == 1:
            return value
        shape = _scaled(value.shape, dim, 1, self.mesh.size(axis))
        arguments = f"{self._along(axis)}, dimensions={{{dim}}}, to_apply=sum"
        return self.emit(shape, f"reduce-scatter({value.name}), {arguments}")

    def reduce(self, value: Value, axis: str) -> Value:
        if self.mesh.size(axis) == 1:
            return value
        return self.emit(value.shape, f"all-reduce({value.name}), {self._along(axis)}, to_apply=sum")

    def exchange(self, value: Value, axis: str) -> Value:
        """All-to-all along dimension 0."""
        if self.mesh.size(axis) == 1:
            return value
        return self.emit(value.shape, f"all-to-all({value.name}), {self._along(axis)}, dimensions={{0}}")

    def dot(self, one: Value, other: Value, contract: tuple[int, int], batch: int = 0) -> Value:
        """Contract one dimension of each; the first `batch` dimensions of both are batch dimensions."""
        left = [s for k, s in enumerate(one.shape) if k >= batch and k != contract[0]]
        right = [s for k, s in enumerate(other.shape) if k >= batch and k != contract[1]]
        dims = f"lhs_contracting_dims={{{contract[0]}}}, rhs_contracting_dims={{{contract[1]}}}"
        if batch:
            numbers = ",".join(map(str, range(batch)))
            dims = f"lhs_batch_dims={{{numbers}}}, rhs_batch_dims={{{numbers}}}, {dims}"
        return self.emit((*one.shape[:batch], *left, *right), f"dot({one.name}, {other.name}), {dims}")

    def map(self, opcode: str, *values: Value) -> Value:
        """An element-wise operation."""
        return self.emit(values[0].shape, f"{opcode}({', '.join(value.name for value in values)})")

    def reshape(self, value: Value, *shape: int) -> Value:
        return self.emit(shape, f"reshape({value.name})")

    def transpose(self, value: Value, *order: int) -> Value:
        shape = tuple(value.shape[k] for k in order)
        return self.emit(shape, f"transpose({value.name}), dimensions={{{','.join(map(str, order))}}}")

    def finish(self, name: str, *results: Value) -> str:
        """The module's text, with a tuple of `results`."""
        shapes = ", ".join(f"{self.dtype}[{','.join(map(str, value.shape))}]" for value in results)
        root = f"  ROOT result = ({shapes}) tuple({', '.join(value.name for value in results)})"
        body = "\n".join((*self.lines, root))
        return (
            f"HloModule {name}, num_partitions={self.mesh.devices}\n\n"
            f"sum {{\n  a = {self.dtype}[] parameter(0)\n  b = {self.dtype}[] parameter(1)\n"
            f"  ROOT c = {self.dtype}[] add(a, b)\n}}\n\nENTRY main {{\n{body}\n}}\n"
        )

    def _along(self, axis: str) -> str:
        self.channels += 1
        return f"channel_id={self.channels}, replica_groups={self.mesh.groups(axis)}, use_global_device_ids=true"


@dataclass(frozen=True)
class Value:
    name: str
    shape: Shape


def _scaled(shape: Shape, dim: int, up: int, down: int) -> Shape:
    return tuple(size * up // down if k == dim else size for k, size in enumerate(shape))


@dataclass
class Writer:
    """Writes the forward or the backward pass of a layer. `two` says whether activations are split along x too."""

    layer: Layer
    mesh: Mesh
    two: bool
    text: Text = field(init=False)

    def __post_init__(self) -> None:
        self.text = Text(self.mesh)

    @property
    def rows(self) -> int:
        """Tokens of one device."""
        return self.layer.tokens // (self.mesh.y if self.two else self.mesh.devices)

    @property
    def ways(self) -> int:
        """Parts into which the middle of each pair of einsums is split."""
        return self.mesh.x if self.two else 1

    def forward(self) -> str:
        x = self._activation()
        for gathered, width, count in self._pairs():
            x = self._pair_forward(x, gathered, width, count)
        return self.text.finish("forward", x)

    def backward(self) -> str:
        dy = self._activation()
        gradients: list[Value] = []
        for gathered, width, count in reversed(self._pairs()):
            dy, *found = self._pair_backward(dy, gathered, width, count)
            gradients.extend(found)
        return self.text.finish("backward", dy, *gradients)

    def _pairs(self) -> list[tuple[str, int, int]]:
        """Pairs of einsums in order: (kind, width of the middle, matrices of that width before it)."""
        layer = self.layer
        feedforward = ("experts" if layer.experts else "dense", layer.hidden, 2 if layer.gated else 1)
        pairs = [feedforward] * (layer.feedforwards - 1)
        if layer.attention:
            pairs.extend([("attention", layer.attention, 3)] * (2 if layer.cross else 1))
        if layer.convolution:
            pairs.append(("dense", layer.features, 2))
        return [*pairs, feedforward]

    def _activation(self) -> Value:
        return self.text.parameter(self.rows, self.layer.features // self.ways)

    def _whole(self, x: Value) -> Value:
        """Activations with all their features."""
        return self.text.gather(x, "x", 1) if self.two else x

    def _first(self, width: int) -> Value:
        """A weight from features to `width`, gathered."""
        axis = "y" if self.two else "x"
        split = self.layer.features // self.mesh.size(axis)
        return self.text.gather(self.text.parameter(split, width // self.ways), axis, 0)

    def _second(self, width: int) -> Value:
        axis = "y" if self.two else "x"
        split = self.layer.features // self.mesh.size(axis)
        return self.text.gather(self.text.parameter(width // self.ways, split), axis, 1)

    def _partial(self, value: Value) -> Value:
        """A sum over what x splits, reduced and scattered back to how activations lie."""
        return self.text.scatter(value, "x", 1) if self.two else value

    def _gradient(self, value: Value, dim: int) -> Value:
        """A weight's gradient, summed over the batch and split as the weight is."""
        if self.two:
            return self.text.scatter(value, "y", dim)
        return self.text.reduce(self.text.scatter(value, "x", dim), "y")

    def _pair_forward(self, x: Value, kind: str, width: int, count: int) -> Value:
        text = self.text
        if kind == "experts":
            return text.map("add", x, self._experts_forward(x, width))
        whole = self._whole(x)
        inner = [text.dot(whole, self._first(width), (1, 0)) for _ in range(count)]
        middle = self._middle(inner) if kind == "attention" else self._activate(inner)
        return text.map("add", x, self._partial(text.dot(middle, self._second(width), (1, 0))))

    def _activate(self, inner: list[Value]) -> Value:
        active = self.text.map("multiply", self.text.map("tanh", inner[0]), inner[0])
        return self.text.map("multiply", active, inner[1]) if len(inner) > 1 else active

    def _middle(self, inner: list[Value]) -> Value:
        q, k, v = (self._heads(value) for value in inner)
        weights = self.text.map("exponential", self.text.dot(q, k, (3, 3), batch=2))
        return self._tokens(self.text.dot(weights, v, (3, 2), batch=2))

    def _heads(self, value: Value) -> Value:
        """[tokens, heads × size] as [sequences, heads, tokens of a sequence, size]."""
        layer = self.layer
        heads = value.shape[1] // layer.head
        split = self.text.reshape(value, self.rows // layer.sequence, layer.sequence, heads, layer.head)
        return self.text.transpose(split, 0, 2, 1, 3)

    def _tokens(self, value: Value) -> Value:
        back = self.text.transpose(value, 0, 2, 1, 3)
        return self.text.reshape(back, back.shape[0] * back.shape[1], back.shape[2] * back.shape[3])

    def _pair_backward(self, dy: Value, kind: str, width: int, count: int) -> tuple[Value, ...]:
        """The gradient of the pair's input, then those of its weights; what the forward pass kept are parameters."""
        text = self.text
        x = self._activation()
        if kind == "experts":
            return self._experts_backward(x, dy, width)
        whole_dy = self._whole(dy)
        middle = text.parameter(self.rows, width // self.ways)
        d_middle = text.dot(whole_dy, self._second(width), (1, 1))
        second = self._gradient(text.dot(middle, whole_dy, (0, 0)), 1)
        kept = [text.parameter(self.rows, width // self.ways) for _ in range(count)]
        inner = self._middle_backward(d_middle, kept) if kind == "attention" else self._deactivate(d_middle, kept)
        sums = [text.dot(d, self._first(width), (1, 1)) for d in inner]
        total = sums[0]
        for more in sums[1:]:
            total = text.map("add", total, more)
        whole = self._whole(x)
        firsts = [self._gradient(text.dot(whole, d, (0, 0)), 0) for d in inner]
        return text.map("add", dy, self._partial(total)), second, *firsts

    def _deactivate(self, d_middle: Value, kept: list[Value]) -> list[Value]:
        return [self.text.map("multiply", self.text.map("tanh", value), d_middle) for value in kept]

    def _middle_backward(self, d_middle: Value, kept: list[Value]) -> list[Value]:
        text = self.text
        q, k, v = (self._heads(value) for value in kept)
        d_out = self._heads(d_middle)
        weights = text.map("exponential", text.dot(q, k, (3, 3), batch=2))
        d_weights = text.map("multiply", text.dot(d_out, v, (3, 3), batch=2), weights)
        d_v = text.dot(weights, d_out, (2, 2), batch=2)
        d_q = text.dot(d_weights, k, (3, 2), batch=2)
        d_k = text.dot(d_weights, q, (2, 2), batch=2)
        return [self._tokens(d) for d in (d_q, d_k, d_v)]

    def _experts_forward(self, x: Value, width: int) -> Value:
        """Tokens travel along y with the features split along x, which are gathered where the expert is."""
        text = self.text
        first, second = self._expert_weights(width)
        there = self._whole(self._dispatch(x))
        middle = self._activate([text.dot(there, first, (1, 0))])
        return self._combine(self._partial(text.dot(middle, second, (1, 0))), x)

    def _experts_backward(self, x: Value, dy: Value, width: int) -> tuple[Value, ...]:
        text = self.text
        first, second = self._expert_weights(width)
        there = self._whole(self._dispatch(dy))
        middle, kept = (text.parameter(there.shape[0], width // self.ways) for _ in range(2))
        (d_inner,) = self._deactivate(text.dot(there, second, (1, 1)), [kept])
        d_second = text.dot(middle, there, (0, 0))
        d_first = text.dot(self._whole(self._dispatch(x)), d_inner, (0, 0))
        back = self._combine(self._partial(text.dot(d_inner, first, (1, 1))), dy)
        return text.map("add", dy, back), d_second, d_first

    def _expert_weights(self, width: int) -> tuple[Value, Value]:
        part = width // self.ways
        return self.text.parameter(self.layer.features, part), self.text.parameter(part, self.layer.features)

    def _dispatch(self, value: Value) -> Value:
        """Every token to two experts, wherever along y they are."""
        twice = self.text.emit(
            (2 * value.shape[0], value.shape[1]), f"concatenate({value.name}, {value.name}), dimensions={{0}}"
        )
        return self.text.exchange(twice, "y")

    def _combine(self, value: Value, like: Value) -> Value:
        back = self.text.exchange(value, "y")
        rows, width = like.shape
        halves = [
            self.text.emit((rows, width), f"slice({back.name}), slice={{[{k * rows}:{(k + 1) * rows}], [0:{width}]}}")
            for k in range(2)
        ]
        return self.text.map("add", *halves)


def forward(layer: Layer, mesh: Mesh, *, two: bool) -> str:
    """HLO text of the forward pass; `two` partitions along both axes (Figure 3), else along x alone (Figure 2)."""
    return Writer(layer, mesh, two).forward()


def backward(layer: Layer, mesh: Mesh, *, two: bool) -> str:
    """HLO text of the backward pass."""
    return Writer(layer, mesh, two).backward()


def einsum_flops(layer: Layer) -> int:
    """Of the forward pass over the whole batch: two a parameter that is used and token, and those of the attention."""
    used = layer.parameters
    if layer.experts:
        per_expert = 2 * layer.features * layer.hidden
        used += per_expert * (2 - layer.experts)
    mixing = 4 * layer.sequence * layer.attention * (2 if layer.cross else 1)
    return layer.tokens * (2 * used + mixing)
