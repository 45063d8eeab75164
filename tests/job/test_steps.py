"""Steps that are called in other ways than the training script's, and steps that no plan can run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.cli.main import main
from tests.job.processes import CAPTURE, HERE, PLAN, bundled, python

STEPS = str(HERE / "steps.py")


@pytest.fixture(scope="session")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for case, name in (("named_arguments", "step"), ("numbers_alone", "einsum"), ("reads_around", "step")):
        folder = tmp_path_factory.mktemp(case)
        python(CAPTURE, "--out", "captured", STEPS, case, cwd=folder)
        made[case] = bundled(folder / "captured" / name, folder / "bundle", *PLAN)
    return made


def compare(case: str, bundle: Path, folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(python(STEPS, case, str(bundle), cwd=folder)[0])
    return content


def close(a: Any, b: Any) -> None:
    for one, other in zip(a, b, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_arguments_and_results_are_those_of_the_original(bundles: dict[str, Path], tmp_path: Path) -> None:
    run = compare("named_arguments", bundles["named_arguments"], tmp_path)
    assert "structure: applied" in run["said"]
    close(run["tuned"], run["plain"])
    assert run["tuned about"] == run["plain about"]
    assert "weak_type=True" in run["tuned about"][0]
    assert run["tuned deleted"] == run["plain deleted"] == [True, False]
    close(run["other"], run["plain"])
    assert (
        "the original ran 1 time: other arguments came: argument unused is float32[4] as P(), "
        "the plan was made for float32[3] as P(); give the plan's, or tune a plan for these" in run["said of other"]
    )


def test_a_trace_gets_the_original(bundles: dict[str, Path], tmp_path: Path) -> None:
    run = compare("named_arguments", bundles["named_arguments"], tmp_path)
    trace = "it was called under a trace (an outer jit, grad, vmap, scan or eval_shape)"
    close(run["traced"], run["plain"])
    assert run["traced deleted"] == [False]
    assert f"the original ran 2 times: {trace}" in run["said of other"]
    uncalled = "lapstrake: the wrapped step was not called yet."
    assert run["said of traced"][0] == run["said of traced"][2] == uncalled
    assert f"lapstrake: the original ran 2 times: {trace}" in run["said of traced"][1]
    assert f"lapstrake: it raised 2 times: {trace}" in run["said of traced"][3]
    assert all(text.startswith(trace) for text in run["strict"])
    assert len(run["strict"]) == 2


def test_what_jit_would_trace_again_is_not_run_from_the_plan(bundles: dict[str, Path], tmp_path: Path) -> None:
    """Under other settings of jax, and after cleared caches; the same program runs the plan on."""
    check_traced_again(compare("reads_around", bundles["reads_around"], tmp_path))


def check_traced_again(run: dict[str, Any]) -> None:
    again, logged = run["again"], run["logged"]
    unlogged, raised = again.pop("strict")
    _, under_x64 = again.pop("x64 at first")
    assert under_x64.startswith("jax_enable_x64 is True (was False), and the program is another than the captured one")
    assert all(alike for alike, _ in again.values())
    assert {name: count for name, (_, count) in again.items()} == {
        "first": 0, "precision": 1, "x64": 2, "nans": 3, "infs": 4, "mesh": 4, "as before": 4, "by name": 5,
        "cleared": 5, "not cleared": 5, "rate": 6, "rate again": 7, "rate as before": 7, "all cleared": 8,
    }  # fmt: skip
    whys = [text.removeprefix("lapstrake: the original runs: ") for text in logged]
    assert [why[:40] for why in whys[:2]] == [
        "jax_default_matmul_precision is highest ", "jax_enable_x64 is True (was False), and "
    ]  # fmt: skip
    assert whys[2:4] == [
        f"jax_debug_{n} is set, and a plan runs without its checks: unset it" for n in ("nans", "infs")
    ]
    kind = "float32[64, 64] as P('x', None)"
    by_name = f"argument b is {kind}, by keyword, the plan was made for {kind}"
    assert by_name in whys[4]
    assert whys[5].startswith("traced again it is another program than the plan was made for (by its code, or by what")
    assert len(whys) == 6  # each once
    assert unlogged
    assert raised == f"{by_name}: call it as then, or capture and tune it again"


def test_the_mesh_may_be_known_to_jit_alone(bundles: dict[str, Path], tmp_path: Path) -> None:
    run = compare("numbers_alone", bundles["numbers_alone"], tmp_path)
    assert "structure: applied" in run["said"]
    close(run["tuned"], run["plain"])


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("static_argument", "it has static arguments"),
        ("dot_algorithm", "it chooses a dot algorithm"),
        ("host_memory", "it uses a memory kind other than device"),
        ("pmapped", "it may be made by pmap"),
    ],
)
def test_what_no_plan_can_run_is_named(bundles: dict[str, Path], tmp_path: Path, case: str, said: str) -> None:
    run = compare(case, bundles["numbers_alone"], tmp_path)
    assert f"the original runs: {said}" in run["said"] or said in run["said"]
    assert run["tuned"] == run["plain"]


def test_capture_and_tune_name_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:

    _, logged = python(CAPTURE, "--out", "captured", STEPS, "dot_algorithm", cwd=tmp_path)
    assert "no plan of it can run in a job: it chooses a dot algorithm" in logged
    assert main(["tune", str(tmp_path / "captured" / "step"), "-o", str(tmp_path / "bundle"), "--quiet"]) == 2
    assert "it chooses a dot algorithm" in capsys.readouterr().err
    assert not (tmp_path / "bundle").exists()
