"""What is known of the job that a module belongs to, and whose compilers could judge plans for it."""

from __future__ import annotations

from functools import cache

from engine.errors import LapstrakeError
from engine.execute.targets import CUDA, TPU, Target, installed
from engine.export.captured import read_capture
from engine.ir.module import Module
from engine.session.session import Facts
from views.export.port import Known

_CAPTURED = "Captured: what is found is for a job with the same program, arguments and mesh."
_DUMPED = (
    "A bare dump: what is found is for a job whose module after partitioning is this one. To tell, the job compiles "
    "its step once more at its start; from a captured step (lapstrake capture) it can tell without."
)
_SCHEDULED = (
    "Dumped after its compiler had scheduled it: no job can be compared with that. Its bundle is to be looked at; for "
    "one that a job runs, dump the module after partitioning, or capture the step."
)
_ORDER = "What the job's own compiler made of it: only the order of its instructions is searched, for install()."


def known_of(module: Module, facts: Facts) -> Known:
    """What can be made of a module, by what it holds and what lies beside its file."""
    if facts.unbundled:
        return Known(facts.unbundled, able=False)
    try:
        capture = read_capture(module.source.path) if module.source is not None else None
    except LapstrakeError as error:
        return Known(str(error), able=False)
    if capture is None and facts.undumped:
        return Known(facts.undumped, able=False)
    if capture is None:
        return Known(_SCHEDULED if module.is_scheduled else _DUMPED)
    return Known(_ORDER, order_only=True) if capture.scheduled is not None else Known(_CAPTURED)


@cache
def targets_for(chip: str, topology: str) -> tuple[str, ...]:
    """Targets of one chip and topology whose compilers are installed."""
    found = []
    for platform, generations in (("tpu", TPU), ("cuda", CUDA)):
        for name, generation in generations.items():
            if generation.chip != chip or not installed(platform):
                continue
            shape = topology if platform == "tpu" else f"1x{topology}"
            try:
                found.append(str(Target.parse(f"{platform}:{name}:{shape}")))
            except LapstrakeError:
                continue
    return tuple(found)
