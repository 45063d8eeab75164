"""A runner for panes under test: the test sets what it knows, and reads what was asked of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.execute.devices import Platform
from engine.execute.timing import Timing
from engine.execute.verifying import Output, Verification
from engine.session.variant import Variant
from views.runs.runner import CompiledRow, Outcome, Progress, Task, Wish

US = 1_000_000
CPU = Platform("cpu", 1, kind="cpu", version="cpu")
TPU = Platform("tpu", 1, kind="TPU v4", memory=32 << 30, version="libtpu 0.0.51")
GPU = Platform("gpu", 0, problem="no gpu devices: no plugin")


class FakeRunner:
    """Implements `views.runs.runner.Runner`."""

    def __init__(self) -> None:
        self.platforms: tuple[Platform, ...] = ()
        self.looking = False
        self.progress = Progress()
        self.compiling = Progress()
        self.compiled: tuple[CompiledRow, ...] = ()
        self.outcomes: dict[Variant, Outcome] = {}
        self.looks = 0
        self.started: list[tuple[Task, tuple[str, ...], Wish]] = []
        self.targets: list[str] = []
        self.listeners: list[Callable[[], None]] = []

    def outcome(self, variant: Variant) -> Outcome | None:
        return self.outcomes.get(variant)

    def look(self) -> None:
        self.looks += 1

    def start(self, task: Task, keys: Sequence[str], wish: Wish) -> None:
        self.started.append((task, tuple(keys), wish))

    def compile(self, target: str) -> None:
        self.targets.append(target)

    def watch(self, listener: Callable[[], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener) if listener in self.listeners else None

    def tell(self) -> None:
        for listener in tuple(self.listeners):
            listener()


def timed(*microseconds: int, run: int = 1) -> Outcome:
    return Outcome(Timing("m", tuple(us * US for us in microseconds)), run, "8 CPU devices")


def verified(*, equal: bool) -> Verification:
    output = Output(
        "own", "0", "f32[4]", 2e-7 if equal else 0.5, None, 1e-5, seed=3, device=2, index=(1,), found="1", expected="2"
    )
    return Verification((output,), "float64", 8, "cpu", (3,))
