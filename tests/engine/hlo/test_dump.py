"""XLA dump folders."""

from __future__ import annotations

from pathlib import Path

from engine.hlo.dump import describe_folder, file_title, modules_in

NAMES = (
    "module_0004.jit__lambda",
    "module_0004.jit__lambda.0000.spmd-partitioner.after_shardy-xla.before_spmd-partitioning.txt",
    "module_0004.jit__lambda.0001.spmd-partitioner.after_spmd-partitioning.before_control-dep-rewriter.hlo.pb",
    "module_0004.jit__lambda.0001.spmd-partitioner.after_spmd-partitioning.before_control-dep-rewriter.txt",
    "module_0004.jit__lambda.before_optimizations.hlo.pb",
    "module_0004.jit__lambda.before_optimizations.txt",
    "module_0004.jit__lambda.cpu_after_optimizations-buffer-assignment.txt",
    "module_0004.jit__lambda.cpu_after_optimizations-memory-usage-report.txt",
    "module_0004.jit__lambda.cpu_after_optimizations.hlo.pb",
    "module_0004.jit__lambda.debug_options",
    "module_0004.jit__lambda.wrapped_reduce_kernel_module.ir-no-opt.ll",
    "module_0007.jit_step.sm_9.0_gpu_after_optimizations.txt.gz",
    "notes.md",
)


def test_modules_by_number_and_stage(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).touch()
    found = modules_in(tmp_path)
    assert [(d.number, d.name, d.stage, d.path.suffix) for d in found] == [
        (4, "jit__lambda", "0000.spmd-partitioner.after_shardy-xla.before_spmd-partitioning", ".txt"),
        (4, "jit__lambda", "0001.spmd-partitioner.after_spmd-partitioning.before_control-dep-rewriter", ".txt"),
        (4, "jit__lambda", "before_optimizations", ".txt"),
        (4, "jit__lambda", "cpu_after_optimizations", ".pb"),
        (7, "jit_step", "sm_9.0_gpu_after_optimizations", ".gz"),
    ]
    assert [d.is_partitioned for d in found] == [False, True, False, False, False]


def test_a_folder_points_to_partitioned_modules_first(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).touch()
    text = describe_folder(tmp_path)
    assert "an XLA dump of 2 modules" in text
    assert text.count("\n  ") == 2
    assert "after_spmd-partitioning" in text
    assert "(4 more at other stages)" in text


def test_a_folder_of_other_files_lists_those_that_may_hold_one(tmp_path: Path) -> None:
    for k in range(20):
        (tmp_path / f"m{k:02}.hlo").touch()
    (tmp_path / "photo.png").touch()
    text = describe_folder(tmp_path)
    assert "m00.hlo" in text
    assert "m12.hlo" not in text
    assert "(and 8 more)" in text
    assert "photo" not in text


def test_a_captured_step_is_told_by_its_folder() -> None:
    assert file_title("/runs/tp_step/partitioned.hlo") == "tp_step/partitioned.hlo"
    assert file_title("/runs/tp_step.hlo") == "tp_step.hlo"
    assert file_title("partitioned.hlo") == "partitioned.hlo"


def test_texts_that_are_no_modules_are_not_listed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("to do: look at the HloModule\n")
    (tmp_path / "step.txt").write_text("// of today\nHloModule step\n")
    (tmp_path / "step.mlir.txt").write_text("module @step attributes {} {\n}\n")
    text = describe_folder(tmp_path)
    assert "step.txt" in text
    assert "step.mlir.txt" in text
    assert "notes" not in text
