"""What a job gets of a plan: modules, order, costs, trace, report, and the file that runs it; written in one step."""

from __future__ import annotations

import ctypes
import glob
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

from engine import worker
from engine.control import QUIET, Control
from engine.errors import UnsupportedError, UsageError
from engine.execute.rewriting import list_groups
from engine.execute.verifying import Verification
from engine.export.captured import Capture, check_dumped, dumped
from engine.export.costs_text import costs_text
from engine.export.hlo import export_bytes
from engine.export.perfetto import trace_bytes
from engine.export.report_html import report_html
from engine.export.routes import Kind, readme, undoing
from engine.export.schedule_text import schedule_text
from engine.export.tagging import fusions, grouped, is_tagged, names, orders, tagged
from engine.export.writing import check_writable, write_atomically
from engine.hlo import xla
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.ir.module import Module
from engine.ir.shapes import TUPLE
from engine.passes.pipeline import Pipeline
from engine.quantities import gain_text, microseconds, time_text
from engine.session.evaluation import Evaluator
from engine.session.fairness import is_faster
from engine.session.judging import Judgement
from engine.session.plan import Plan
from engine.session.production import LEFT_TO_THE_COMPILER
from engine.session.tuning import Tuning
from engine.session.variant import Variant, costs_in_words
from engine.simulate.simulator import simulate_computations

SCHEMA = 1
_DEADLINE = 300.0
_PART = ".lapstrake-part"
"""What the names of folders that are being written end with."""
_ABANDONED = 3600.0
"""Seconds."""


DECOMPOSES_NOTHING = (
    "the plan decomposes nothing: the job's compiler gets the program that it had, and makes collectives asynchronous "
    "by itself; only the order is the plan's"
)
"""Among the warnings of a bundle; nothing that a compiler could undo."""


@dataclass(frozen=True, eq=False)
class Contents:
    """A bundle's files, and what a user has to know of them."""

    files: Mapping[str, bytes]
    """By name."""
    warnings: tuple[str, ...]
    """What of the plan the target's compiler will undo, with the flags that stop it."""


def check_bundled(module: Module) -> None:
    """Raises UnsupportedError for a module that no bundle can be made of."""
    if module.elided:
        raise UnsupportedError(
            f"{module.name}: some constants were elided when it was printed, as constant({{...}}), so a job "
            "would compute with other numbers: print it with print_large_constants (XLA's --xla_dump_large_constants)"
        )
    if is_tagged(module):
        raise UnsupportedError(
            f"{module.name}: its instructions carry a plan's tags (lapstrake=…), as those of a bundle's tuned module "
            "do, and no job compiles it: tune what the bundle was made from"
        )


def bundle_files(
    evaluator: Evaluator,
    found: Tuning,
    verification: Verification | None,
    unverified: str,
    capture: Capture | None,
    judgement: Judgement | None = None,
    control: Control = QUIET,
) -> Contents:
    """Every file of the bundle for the best plan found. `unverified` says why there is no `verification`; without a
    `capture` the module is taken for a bare dump.

    Raises what `check_bundled` and `check_dumped` do, and UsageError for passes that cannot reach the job.
    """
    check_bundled(evaluator.module)
    best, base = found.best, found.base
    if capture is None:
        check_dumped(evaluator.module)
    known = capture or dumped(evaluator.module)
    order_only = known.scheduled is not None
    if order_only and best.plan.passes:
        raise UsageError(
            "a module that its compiler has scheduled can only be put in another order, but the plan has the passes "
            f"{best.plan.passes}: tune partitioned.hlo for them"
        )
    changed = False
    if order_only:
        made, shown = evaluator.module, best
    else:
        made = evaluator.transform(Plan(_structure(best.plan))).module
        changed = made.proto != evaluator.module.proto
        made = tagged(made)
        shown = evaluator.with_module(made).evaluate(_rest(best.plan))
    program = shown.program
    control.step(0.3, "writing modules")
    content = {
        "original.hlo.pb": export_bytes(evaluator.module, "pb"),
        "tuned.hlo": export_bytes(program.module, "hlo", shown.schedule),
        "tuned.hlo.pb": export_bytes(program.module, "pb", shown.schedule),
        "order.json": _json((names if order_only else orders)(program, shown.schedule)),
    }
    if not order_only:
        content["tuned.mlirbc"] = _program(made)
        content["grouped.mlirbc"] = _program(grouped(made, program, shown.schedule))
    control.step(0.8, "writing reports")
    content |= {
        "schedule.pbtxt": schedule_text(program.module, simulate_computations(program, shown.schedule)).encode(),
        "costs.pbtxt": costs_text(program).encode(),
        "trace.perfetto.json.gz": trace_bytes(shown.timeline, program.module, f"{made.name}: {best.name}"),
        "report.html": report_html(
            evaluator.module, evaluator.machine, list(dict.fromkeys((base, found.against, best))), found, judgement
        ).encode(),
        "lapstrake_job.py": _payload("lapstrake_job.py"),
    }
    if known.signature is None:
        # The job captures itself, to be compared with the dump.
        content["lapstrake_capture.py"] = _payload("lapstrake_capture.py")
    # Where its compiler asks for the order it has done everything else.
    undone = () if order_only else undoing(program, shown.schedule, evaluator.machine)
    if not order_only and not changed:
        undone = (*undone, DECOMPOSES_NOTHING)
    manifest = _manifest(evaluator, found, shown, verification, unverified, known)
    manifest["structure"] = not order_only
    manifest["changed"] = changed
    manifest["fusions"] = [] if order_only else fusions(program)
    manifest["warnings"] = list(undone)
    manifest["judged"] = None if judgement is None else judgement.as_json()
    content["README.md"] = readme(
        made.name,
        evaluator.module.header.num_partitions,
        _kind(known, order_only=order_only),
        _gain(found, shown, judgement),
        undone,
    ).encode()
    manifest["files"] = {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
    manifest["digest"] = hashlib.sha256(_canonical(manifest)).hexdigest()
    content["manifest.json"] = json.dumps(manifest, indent=1).encode()
    return Contents(content, undone)


def _kind(known: Capture, *, order_only: bool) -> Kind:
    if order_only:
        return Kind.ORDER
    if known.signature is not None:
        return Kind.CAPTURED
    return Kind.SCHEDULED if known.fingerprint["kind"] == "scheduled" else Kind.DUMPED


def _gain(found: Tuning, shown: Variant, judgement: Judgement | None) -> str:
    """What the plan gains, over what, by whose costs."""
    against, after = found.against, shown.metrics.makespan
    before, loaded = against.metrics.makespan, found.base.metrics.makespan
    text = f"{against.name} {time_text(before)}, with the plan {time_text(after)} ({gain_text(before, after)})"
    if against is not found.base:
        text += f"; as loaded {time_text(loaded)} ({gain_text(loaded, after)})"
    text += f"; predicted by {costs_in_words((found.base, against, shown))}."
    if judgement is not None and judgement.base.cycles and judgement.best.cycles:
        change = gain_text(judgement.base.cycles, judgement.best.cycles)
        text += (
            f" By the compiler for {judgement.target}: {judgement.base.name} {judgement.base.cycles:,} cycles, with "
            f"the plan {judgement.best.cycles:,} ({change})."
        )
    elif not is_faster(shown, against):
        text += " By that it gains nothing."
    return f"{text} Nothing of this was measured."


def write_bundle(path: str, content: Mapping[str, bytes]) -> None:
    """Write a folder, or a .zip, so that no reader ever sees part of it: the old one is whole until the new one is."""
    target = Path(path)
    if target.suffix == ".zip":
        write_atomically(target, _zipped(content))
        return
    _refuse_other(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=_PART, dir=target.parent))
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}") from error
    try:
        for name, data in content.items():
            write_atomically(temporary / name, data)
        temporary.chmod(0o755)
        _replace_folder(temporary, target)
    except OSError as error:
        raise UsageError(f"cannot write {target}: {error.strerror}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _sweep(target: Path) -> None:
    """Remove what exports that were killed have left beside `target`: nobody writes for so long."""
    for part in target.parent.glob(f".{glob.escape(target.name)}.*{_PART}"):
        if time.time() - part.stat().st_mtime > _ABANDONED:
            shutil.rmtree(part, ignore_errors=True)


def check_place(path: str) -> None:
    """Raises UsageError where `write_bundle` could not write: asked before a search, which may take minutes."""
    target = Path(path)
    if target.suffix == ".zip":
        check_writable(target)
    else:
        _refuse_other(target)
        check_writable(target, makes_folders=True)


def _refuse_other(target: Path) -> None:
    if target.exists() and not (target / "manifest.json").is_file():
        raise UsageError(f"{target} exists and is no bundle: name another folder, or remove it")


def _structure(plan: Plan) -> str:
    """Passes that change what a job runs; the others say how its compiler should do it."""
    return str(Pipeline(tuple(p for p in Pipeline.parse(plan.passes).passes if p.name not in LEFT_TO_THE_COMPILER)))


def _rest(plan: Plan) -> Plan:
    passes = Pipeline(tuple(p for p in Pipeline.parse(plan.passes).passes if p.name in LEFT_TO_THE_COMPILER))
    return Plan(str(passes), plan.scheduler, plan.budget, plan.memory_cap)


def _program(module: Module) -> bytes:
    """StableHLO with blocking collectives, without what the job's own jit says again: aliases, donors, shardings."""
    code = worker.call("engine.export.bundle:program_in_worker", module, deadline=_DEADLINE)
    assert isinstance(code, bytes)
    return code


def program_in_worker(module: Module, *, control: Control) -> bytes:
    control.step(0.0, "converting to StableHLO")
    proto = HloModuleProto()
    proto.CopyFrom(module.proto)
    for field in ("input_output_alias", "buffer_donor", "spmd_output_sharding", "spmd_parameters_shardings"):
        proto.ClearField(field)
    for computation in proto.computations:
        for instruction in computation.instructions:
            instruction.ClearField("sharding")
            list_groups(instruction)
            if instruction.opcode == "copy" and instruction.shape.element_type != TUPLE:
                # StableHLO has no copies: jaxlib makes them `mhlo.copy`, which compilers behind PJRT's C API refuse.
                instruction.opcode = "reshape"
    return xla.to_stablehlo(proto.SerializeToString())


def _manifest(
    evaluator: Evaluator,
    found: Tuning,
    shown: Variant,
    verification: Verification | None,
    unverified: str,
    known: Capture,
) -> dict[str, Any]:
    """`shown` is the plan as it is in the bundle's files: a scheduler that searches for a while may order it anew."""
    plan, metrics = found.best.plan, shown.metrics
    return {
        "schema": SCHEMA,
        "tool": {"lapstrake": _version(), "jaxlib": xla.version()},
        "module": evaluator.module.name,
        "fingerprint": dict(known.fingerprint),
        "signature": None if known.signature is None else dict(known.signature),
        "versions": dict(known.versions),
        "scheduled": None if known.scheduled is None else dict(known.scheduled),
        "machine": {
            "chip": evaluator.machine.chip.name,
            "topology": str(evaluator.machine.topology),
            "mesh": dict(evaluator.machine.mesh),
            "notes": list(evaluator.machine.notes),
        },
        "plan": {
            "passes": plan.passes,
            "scheduler": plan.scheduler,
            "budget": str(shown.schedule.budget),
            "memory_cap": plan.memory_cap,
        },
        "predicted": {
            "source": shown.source.name.lower(),
            "costs": costs_in_words((found.base, found.against, shown)),
            "against": found.against.name,
            "against_us": microseconds(found.against.metrics.makespan),
            "original_us": microseconds(found.base.metrics.makespan),
            "tuned_us": microseconds(metrics.makespan),
            "tuned_exposed_us": microseconds(metrics.exposed),
            "tuned_peak_memory_bytes": metrics.peak_memory,
        },
        "search": {
            "finished": found.finished,
            "dimensions": list(found.dimensions),
            "trials": [
                {
                    "passes": t.plan.passes,
                    "scheduler": t.plan.scheduler,
                    "budget": None if t.plan.budget is None else str(t.plan.budget),
                    "makespan_us": None if t.makespan is None else microseconds(t.makespan),
                    "why_not": t.why_not,
                }
                for t in found.trials
            ],
        },
        "measured": None,
        "verification": {"done": False, "why": unverified} if verification is None else _verified(verification),
    }


def _payload(name: str) -> bytes:
    return files("engine.export.payload").joinpath(name).read_bytes()


def _verified(verification: Verification) -> dict[str, Any]:
    return {"done": True, **verification.as_json()}


def _replace_folder(new: Path, target: Path) -> None:
    if not target.exists():
        os.rename(new, target)
    elif not _exchange(new, target):
        # Between these two renames nobody finds a bundle; nobody ever finds half of one.
        old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        os.rename(target, old / target.name)
        os.rename(new, target)
        shutil.rmtree(old, ignore_errors=True)
    _sync(target.parent)


def _exchange(a: Path, b: Path) -> bool:
    """Swap two names in one step, where the system can (Linux: renameat2 with RENAME_EXCHANGE)."""
    if not sys.platform.startswith("linux"):
        return False
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    at_fdcwd, exchange = -100, 2
    return call is not None and call(at_fdcwd, os.fsencode(a), at_fdcwd, os.fsencode(b), exchange) == 0


def _sync(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _zipped(content: Mapping[str, bytes]) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(content):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content[name], zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _json(content: Mapping[str, list[str]]) -> bytes:
    return json.dumps(content, indent=1).encode()


def _canonical(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _version() -> str:
    try:
        return version("lapstrake")
    except PackageNotFoundError:
        return "unknown"
