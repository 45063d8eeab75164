"""From a plan that was found to a bundle on disk: verified, refused where the numbers differ, written in one step."""

from __future__ import annotations

from dataclasses import dataclass

from engine.control import QUIET, Control
from engine.errors import UnsupportedError
from engine.execute.verifying import Verification, verify
from engine.export.bundle import bundle_files
from engine.export.bundle_folder import write_bundle
from engine.export.captured import Capture, check_bundled
from engine.session.evaluation import Evaluator
from engine.session.judging import Judgement
from engine.session.tuning import Tuning


@dataclass(frozen=True)
class Bundled:
    """What became of a bundle."""

    path: str
    written: bool
    """False where the numbers differ: nothing was written then, and what was there is as it was."""
    verification: Verification | None
    unverified: str
    """Why there is no `verification`."""
    warnings: tuple[str, ...] = ()
    """What of the plan the target's compiler will undo, with the flags that stop it."""

    @property
    def verdict(self) -> str:
        """The verification in a sentence."""
        return f"not verified: {self.unverified}" if self.verification is None else str(self.verification)


def write_tuned(
    evaluator: Evaluator,
    found: Tuning,
    path: str,
    capture: Capture | None,
    *,
    check: bool = True,
    seed: int = 0,
    judgement: Judgement | None = None,
    control: Control = QUIET,
) -> Bundled:
    """Verify the best plan found, unless not to `check`, and write its bundle to `path`.

    What the plan's passes make is run against the original on CPU devices, with inputs from `seed`. Raises what
    `bundle_files`, `write_bundle` and `verify` do, but where a module cannot be run here: then `unverified` says so.
    """
    check_bundled(evaluator.module)
    verification, unverified = None, "verification was switched off"
    if check:
        verification, unverified = _verify(evaluator, found, capture, seed, control.part(0.0, 0.7))
    if verification is not None and not verification.equal:
        return Bundled(path, written=False, verification=verification, unverified="")
    made = bundle_files(evaluator, found, verification, unverified, capture, judgement, control.part(0.7, 0.95))
    control.step(0.95, f"writing {path}")
    write_bundle(path, made.files)
    return Bundled(path, written=True, verification=verification, unverified=unverified, warnings=made.warnings)


def _verify(
    evaluator: Evaluator, found: Tuning, capture: Capture | None, seed: int, control: Control
) -> tuple[Verification | None, str]:
    if capture is not None and capture.scheduled is not None:
        return None, "an order of the same instructions changes no numbers"
    changed = evaluator.transform(found.best.plan).module
    try:
        return verify(evaluator.module, changed, seed=seed, control=control), ""
    except UnsupportedError as reason:
        return None, str(reason)
