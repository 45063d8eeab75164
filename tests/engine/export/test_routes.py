"""What a target's compiler undoes is said with the flag that stops it, and only where it happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from engine.chips.budget import Budget
from engine.chips.inference import machine_for
from engine.chips.library import load_chip
from engine.cost.programs import prepare
from engine.export.routes import Kind, readme, undoing
from engine.hlo.reading import read_here
from engine.schedule.programs import schedule_program
from engine.schedule.registry import parse_scheduler
from engine.session.evaluation import Evaluator
from engine.session.plan import MachineSpec, Plan

PERMUTES = """HloModule ring, is_scheduled=true, num_partitions=2

ENTRY %main (x: bf16[1024,1024], w: bf16[1024,1024]) -> bf16[1024,1024] {
  %x = bf16[1024,1024]{1,0} parameter(0)
  %w = bf16[1024,1024]{1,0} parameter(1)
  %empty = (bf16[1024,1024]{1,0}, bf16[1024,1024]{1,0}) collective-permute-start(%x), channel_id=1, source_target_pairs={{0,1},{1,0}}
  %y = bf16[1024,1024]{1,0} collective-permute-done(%empty)
  %full = (bf16[1024,1024]{1,0}, bf16[1024,1024]{1,0}) collective-permute-start(%y), channel_id=2, source_target_pairs={{0,1},{1,0}}
  %a = bf16[1024,1024]{1,0} dot(%y, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %z = bf16[1024,1024]{1,0} collective-permute-done(%full)
  %b = bf16[1024,1024]{1,0} dot(%z, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %sum = bf16[1024,1024]{1,0} add(%a, %b)
}
"""  # noqa: E501  # one instruction a line, as HLO is printed


WHOLE = """HloModule whole, num_partitions=2

ENTRY main {
  x = bf16[2,512,1024]{2,1,0} parameter(0)
  w = bf16[1024,1024]{1,0} parameter(1)
  exchanged = bf16[2,512,1024]{2,1,0} all-to-all(x), channel_id=1, replica_groups={{0,1}}, dimensions={0}
  gathered = bf16[2048,1024]{1,0} all-gather(w), channel_id=2, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  a = bf16[1024,1024]{1,0} dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT all = (bf16[1024,1024], bf16[2,512,1024], bf16[2048,1024]) tuple(a, exchanged, gathered)
}
"""  # noqa: E501  # as above


def said_of_whole(chip: str, passes: str = "async-permute{kinds=supported}") -> tuple[str, ...]:
    """Of a module whose collectives stay whole."""
    made = Evaluator(read_here(WHOLE.encode()), MachineSpec(chip)).evaluate(Plan(passes, "bottom-up"))
    return undoing(made.program, made.schedule, made.program.machine)


def said(chip: str) -> tuple[str, ...]:
    module = read_here(PERMUTES.encode())
    machine = machine_for(module, load_chip(chip))
    program = prepare(module, machine)
    return undoing(program, schedule_program(program, parse_scheduler("as-loaded"), Budget(4)), machine)


def test_a_gpu_combines_and_merges() -> None:
    empty, combined, merged = said("h100")
    assert empty.startswith("empty: nothing stands between start and done")
    assert "--xla_gpu_collective_permute_combine_threshold_bytes=0" in combined
    assert "--xla_disable_hlo_passes=dot-merger" in merged


def test_a_tpu_only_turns_empty_pairs_back() -> None:
    (empty,) = said("tpu-v4")
    assert empty.startswith("empty: ")


def test_a_tpu_is_to_be_told_what_to_make_asynchronous() -> None:
    gathers, exchanges = said_of_whole("tpu-v4")
    assert gathers.startswith("gathered.start: the compiler leaves this blocking")
    assert "--xla_enable_async_all_gather=ENABLED in LIBTPU_INIT_ARGS" in gathers
    assert exchanges.startswith("exchanged.start: ")
    assert "--xla_tpu_enable_async_all_to_all=true in LIBTPU_INIT_ARGS" in exchanges
    assert said_of_whole("tpu-v4", "fuse") == ()
    assert said_of_whole("tpu-v7x", "async-permute{kinds=all}") == ()


def test_the_readme_repeats_the_warnings_and_names_the_call() -> None:
    text = readme("ring", 2, Kind.CAPTURED, "It gains.", said("h100"))
    assert "It gains." in text
    assert all(f"- {warning}." in text for warning in said("h100"))
    assert ".wrap(step)" in text
    assert "--num_partitions=2" in text
    assert "Nothing that is known" in readme("ring", 2, Kind.DUMPED, "", ())


def test_the_readme_names_what_its_bundle_has() -> None:
    texts = {kind: readme("ring", 2, kind, "", ()) for kind in Kind}
    assert "wrap(step)" not in texts[Kind.ORDER]
    assert "plan.install()" in texts[Kind.ORDER]
    assert "may undo" not in texts[Kind.ORDER]
    assert "structure" not in texts[Kind.ORDER]
    assert {kind for kind, text in texts.items() if "grouped.mlirbc" in text} == set(Kind) - {Kind.ORDER}
    assert {kind for kind, text in texts.items() if "compiles the step once more" in text} == {Kind.DUMPED}
    assert {kind for kind, text in texts.items() if "```python" in text} == set(Kind) - {Kind.SCHEDULED}
    assert {kind for kind, text in texts.items() if "run_xla_backend_only" in text} == {Kind.ORDER, Kind.SCHEDULED}


def test_xla_knows_every_flag_that_is_named() -> None:
    """It ends the process at one that it does not know."""
    texts = (readme("ring", 2, Kind.CAPTURED, "", said("h100")), *said("tpu-v4"))
    flags = sorted({flag for text in texts for flag in re.findall(r"--(xla_[a-z_]+=[\w.,/-]*\w)", text)})
    assert {flag.partition("=")[0] for flag in flags} >= {
        "xla_disable_hlo_passes",
        "xla_gpu_collective_permute_combine_threshold_bytes",
        "xla_gpu_enable_latency_hiding_scheduler",
        "xla_gpu_pgle_profile_file_or_directory_path",
    }
    given = " ".join(f"--{flag}" for flag in flags)
    command = [sys.executable, "-c", "import jax; print(len(jax.devices()))"]
    done = subprocess.run(command, env={**os.environ, "XLA_FLAGS": given}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    wrong = subprocess.run(
        command, env={**os.environ, "XLA_FLAGS": f"{given} --xla_no_such_flag=1"}, capture_output=True, check=False
    )
    assert wrong.returncode != 0
