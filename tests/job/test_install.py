"""An order-only plan, put on the job's own compilation."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest

from engine.export.payload.lapstrake_runtime.plan import compiler
from tests.job.processes import altered, bundled, captured, damaged, train

CHANGES = {
    "shape": "jit_train_step, on each device: argument",
    "mesh": "jit_train_step, on each device: argument",
    "constant": "other instructions or constants",
    "donation": "state['m']['down'] is f32[16,16]{1,0}, the plan was made for f32[16,16]{1,0}, donated (and 14 others)",
    "sharding": "jit_train_step, on each device: argument",
}
APPLIED = "order: applied to jit_train_step"


def test_the_order_is_applied(order_bundle: Path, tmp_path: Path) -> None:
    run, logged = train(tmp_path, BUNDLE=str(order_bundle), ROUTE="install", STEPS="50")
    assert APPLIED in run["said"]
    plain, _ = train(tmp_path, STEPS="50")
    assert run["losses"] == plain["losses"]
    assert len(run["compiled"]) == 1
    assert "lapstrake:" not in logged


@pytest.mark.full
def test_the_order_is_applied_on_a_ring_of_eight(tmp_path: Path) -> None:
    made = bundled(captured(tmp_path, MESH="1d"), tmp_path / "bundle", "--order-only", "--scheduler", "memory")
    run, _ = train(tmp_path, BUNDLE=str(made), ROUTE="install", MESH="1d", STEPS="50", PLAIN="1")
    assert APPLIED in run["said"]
    assert run["losses"] == run["plain"]


@pytest.mark.parametrize(
    "change", [pytest.param(c, marks=pytest.mark.full) if c in ("mesh", "sharding") else c for c in CHANGES]
)
def test_another_module_keeps_its_order(order_bundle: Path, tmp_path: Path, change: str) -> None:
    run, logged = train(tmp_path, BUNDLE=str(order_bundle), ROUTE="install", CHANGE=change, STEPS="2")
    assert "order: not applied" in run["said"]
    assert CHANGES[change] in run["said"]
    assert logged.count("lapstrake: order not applied") == 1


@pytest.mark.parametrize("name", ["jaxlib", pytest.param("platform_version", marks=pytest.mark.full)])
def test_another_compiler_is_refused(order_bundle: Path, tmp_path: Path, name: str) -> None:
    other = altered(order_bundle, tmp_path / "b", lambda manifest: manifest["versions"].update({name: "0.9.0"}))
    run, _ = train(tmp_path, BUNDLE=str(other), ROUTE="install", STEPS="2")
    assert f"order: not installed, the plan was made with {name} 0.9.0" in run["said"]


def test_a_plan_belongs_to_the_devices_of_its_mesh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever jax would take by default: a mesh of CPU devices on a machine with GPUs is the CPU's."""
    clients = {name: SimpleNamespace(platform=name, platform_version=f"{name} 1") for name in ("gpu", "cpu")}

    def devices(platform: str | None = None) -> list[SimpleNamespace]:
        if platform not in (None, *clients):
            raise RuntimeError(f"Unknown backend {platform}")
        return [SimpleNamespace(client=clients[platform or "gpu"])]

    monkeypatch.setattr(jax, "devices", devices)
    assert compiler("cpu")["platform_version"] == "cpu 1"
    assert compiler("tpu")["platform"] == "gpu"


def test_a_changed_byte_is_refused(order_bundle: Path, tmp_path: Path) -> None:
    broken = damaged(order_bundle, tmp_path / "b", "order.json")
    run, logged = train(tmp_path, BUNDLE=str(broken), ROUTE="install", STEPS="2")
    assert "order: not installed" in run["said"]
    assert logged.count("order.json was changed after it was written") == 1


def test_either_way_names_the_other(bundle: Path, order_bundle: Path, tmp_path: Path) -> None:
    run, _ = train(tmp_path, BUNDLE=str(bundle), ROUTE="install", STEPS="1")
    assert (
        "order: not installed, the plan changes the program, not only its order: use load(…).wrap(step)" in run["said"]
    )
    run, _ = train(tmp_path, BUNDLE=str(order_bundle), STEPS="1")
    assert "the original runs: the plan changes only the order of instructions" in run["said"]
    assert "use load(…).install()" in run["said"]


def test_the_compilation_cache_neither_hides_the_order_nor_keeps_it(order_bundle: Path, tmp_path: Path) -> None:
    cached = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "STEPS": "1",
    }

    def entries() -> set[str]:
        return {
            name for name in os.listdir(tmp_path / "cache") if name.startswith("jit_train_step") and "atime" not in name
        }

    train(tmp_path, **cached)
    unhooked = entries()
    assert len(unhooked) == 1
    run, _ = train(tmp_path, BUNDLE=str(order_bundle), ROUTE="install", **cached)
    assert APPLIED in run["said"]
    both = entries()
    assert len(both) == 2
    run, _ = train(tmp_path, BUNDLE=str(order_bundle), ROUTE="install", **cached)
    assert "came from the compilation cache, where only what was compiled under this plan is found" in run["said"]
    train(tmp_path, **cached)
    assert entries() == both
