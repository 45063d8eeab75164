"""The same jobs on Python 3.12 with jax 0.12, in an environment that holds jax alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.job.processes import CAPTURE, HERE, PLAN, altered, bundled, captured, damaged, dumped, python, train
from tests.job.test_dump import DUMP_CHANGES
from tests.job.test_steps import check_traced_again
from tools import job_python

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def interpreter() -> str:
    try:
        return str(job_python.interpreter())
    except LookupError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def newest_capture(interpreter: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return captured(tmp_path_factory.mktemp("newest"), interpreter)


@pytest.mark.parametrize("mesh", ["1d", "2d"])
def test_a_decomposed_plan(interpreter: str, tmp_path: Path, mesh: str) -> None:
    made = bundled(captured(tmp_path, interpreter, MESH=mesh), tmp_path / "bundle", *PLAN)
    run, logged = train(tmp_path, interpreter, BUNDLE=str(made), MESH=mesh, STEPS="50", PLAIN="1", RESTART="20")
    np.testing.assert_allclose(run["losses"], run["plain"], rtol=2e-5)
    assert "structure: applied;" in run["said"]
    assert "order: partly applied" in run["said"]
    assert "forgets donation" not in run["said"]
    assert sum("train_step_lapstrake" in name for name in run["compiled"]) == 1
    assert "lapstrake: " not in logged


@pytest.mark.parametrize("mesh", ["1d", "2d"])
def test_an_order_only_plan(interpreter: str, tmp_path: Path, mesh: str) -> None:
    source = captured(tmp_path, interpreter, MESH=mesh)
    made = bundled(source, tmp_path / "bundle", "--order-only", "--scheduler", "memory")
    run, _ = train(tmp_path, interpreter, BUNDLE=str(made), ROUTE="install", MESH=mesh, STEPS="50", PLAIN="1")
    assert "order: applied to jit_train_step" in run["said"]
    assert run["losses"] == run["plain"]
    older = altered(made, tmp_path / "older", lambda manifest: manifest["versions"].update(jaxlib="0.10.2"))
    run, _ = train(tmp_path, interpreter, BUNDLE=str(older), ROUTE="install", STEPS="1")
    assert "order: not installed, the plan was made with jaxlib 0.10.2" in run["said"]


def test_what_jit_would_trace_again(interpreter: str, tmp_path: Path) -> None:
    steps = str(HERE / "steps.py")
    python(CAPTURE, "--out", "captured", steps, "reads_around", cwd=tmp_path, interpreter=interpreter)
    made = bundled(tmp_path / "captured" / "step", tmp_path / "bundle", *PLAN)
    out, _ = python(steps, "reads_around", str(made), cwd=tmp_path, interpreter=interpreter)
    check_traced_again(json.loads(out))


def test_a_plan_of_another_jax(interpreter: str, bundle: Path, tmp_path: Path) -> None:
    """The plan's program decides: where both versions lower the step alike it runs, else the job says what differs."""
    run, _ = train(tmp_path, interpreter, BUNDLE=str(bundle), STEPS="3", PLAIN="1")
    np.testing.assert_allclose(run["losses"], run["plain"], rtol=2e-5)
    assert "structure: applied (made with jax 0.10.2" in run["said"] or "the program is another" in run["said"]


@pytest.mark.parametrize("change", ["shape", "mesh", "constant", "donation", "sharding", "callback", "byte"])
def test_another_job(interpreter: str, newest_capture: Path, tmp_path: Path, change: str) -> None:
    made = bundled(newest_capture, tmp_path / "bundle", *PLAN, "--no-verify")
    if change == "byte":
        made = damaged(made, tmp_path / "damaged", "tuned.mlirbc")
    run, _ = train(tmp_path, interpreter, BUNDLE=str(made), CHANGE=change, STEPS="2", PLAIN="1")
    assert "the original runs" in run["said"]
    assert run["losses"] == run["plain"]


@pytest.fixture(scope="module")
def newest_dump(interpreter: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of a bare dump: made here with another jaxlib than the job's."""
    folder = tmp_path_factory.mktemp("dump")
    return bundled(dumped(folder, interpreter), folder / "bundle", *PLAN)


def test_a_bare_dump(interpreter: str, newest_dump: Path, tmp_path: Path) -> None:
    run, logged = train(tmp_path, interpreter, BUNDLE=str(newest_dump), STEPS="50", PLAIN="1", RESTART="20")
    np.testing.assert_allclose(run["losses"], run["plain"], rtol=2e-5)
    assert "structure: applied (made from a dump" in run["said"]
    assert "order: partly applied" in run["said"]
    assert "lapstrake: " not in logged


@pytest.mark.parametrize("change", DUMP_CHANGES)
def test_another_job_than_the_dumped_one(interpreter: str, newest_dump: Path, tmp_path: Path, change: str) -> None:
    run, _ = train(tmp_path, interpreter, BUNDLE=str(newest_dump), CHANGE=change, STEPS="2", PLAIN="1")
    assert DUMP_CHANGES[change] in run["said"]
    assert run["losses"] == run["plain"]
