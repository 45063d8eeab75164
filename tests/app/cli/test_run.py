"""`lapstrake run`, `devices` and `report --measured`, as typed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from app.cli.main import main
from tests.places import SAMPLES

SAMPLE = str(SAMPLES / "mlp_fig2_forward_4_f32.hlo")
PLAN = ("--passes", "decompose{gate=off},async-permute,fuse")


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the profiles of one run."""
    folder = tmp_path_factory.mktemp("run")
    out = str(folder / "run.xplane.pb")
    assert main(["run", SAMPLE, *PLAN, "--repeats", "2", "--quiet", "--profile", out]) == 0
    return folder


def test_a_run_prints_timings_of_both(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["run", SAMPLE, *PLAN, "--repeats", "2", "--warmup", "0", "--devices", "4"]) == 0
    out, err = capsys.readouterr()
    assert "measured on 4 cpu devices (cpu), 2 executions of each, in turn" in out
    assert "order kept (16 of 16 instructions)" in out
    assert "no overlap is measured" in err


def test_a_run_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "p.json.gz"
    assert main(["run", SAMPLE, *PLAN, "--repeats", "2", "--json", "--profile", str(out)]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["schema"] == 1
    assert [v["source"] for v in content["variants"]] == ["measured", "measured"]
    for variant in content["variants"]:
        assert len(variant["times_us"]) == 2
        assert variant["order"]["whole"]
        assert variant["measured"]["matched"] == variant["measured"]["events"] > 0
        assert variant["measured"]["unmatched"] == []
    assert content["profiles"] == [str(tmp_path / "p.0.json.gz"), str(out)]
    assert json.loads(gzip.decompress(out.read_bytes()))["otherData"]["source"] == "measured"
    assert main(["report", SAMPLE, *PLAN, "--measured", str(out), "--json", "--quiet"]) == 0
    read = json.loads(capsys.readouterr().out)["measured"]
    assert read["matched"] == read["events"]
    assert not read["overlap_shown"]


@pytest.mark.parametrize("how", ["--alone", "--as-job"])
def test_other_ways_to_run(how: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = str(tmp_path / "p.xplane.pb")
    assert main(["run", SAMPLE, *PLAN, "--repeats", "1", how, "--json", "--profile", out]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["alone"] is (how == "--alone")
    assert content["devices"] == (1 if how == "--alone" else 4)
    measured = content["variants"][1]["measured"]
    assert measured["matched"] == measured["events"] > 0
    assert any("results mean nothing" in note for note in measured["notes"]) is (how == "--alone")
    transfers = [i for i in measured["instructions"] if i["transfer"] and i["measured_us"]]
    assert bool(transfers) is (how == "--as-job")


def test_a_profile_is_found_to_be_that_of_its_variant(profiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file, variant in (
        ("run.0.xplane.pb", "as loaded"),
        ("run.xplane.pb", "decompose, async-permute, fuse · bottom-up"),
    ):
        assert main(["report", SAMPLE, *PLAN, "--measured", str(profiled / file), "--json"]) == 0
        content = json.loads(capsys.readouterr().out)
        assert content["measured"]["variant"] == variant
        assert content["measured"]["unmatched"] == []
        last = content["variants"][-1]
        assert last["source"] == "measured"
        assert last["peak_memory_bytes"] is last["lower_bound_us"] is None
        assert last["overlap_fraction"] == 0


def test_a_measured_report_for_people(profiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", SAMPLE, *PLAN, "--measured", str(profiled / "run.xplane.pb")]) == 0
    out, err = capsys.readouterr()
    assert "events belong to" in out
    assert "overlap is not shown" in err


def test_measured_costs_drive_the_simulator(profiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = str(profiled / "run.xplane.pb")
    makespans = []
    for costs in ([], ["--costs", profile]):
        assert main(["report", SAMPLE, *PLAN, "--json", "--quiet", *costs]) == 0
        makespans.append(json.loads(capsys.readouterr().out)["variants"][-1]["makespan_us"])
    assert makespans[1] > 5 * makespans[0]  # this CPU is slower than a TPU


def test_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "--json"]) == 0
    found = {p["name"]: p for p in json.loads(capsys.readouterr().out)["platforms"]}
    assert list(found) == ["cpu", "gpu", "tpu"]
    assert found["cpu"]["count"] >= 1
    assert main(["devices"]) == 0
    assert "as many as needed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--devices", "2"], "partitioned for 4 devices and runs on exactly as many; 2 were asked for"),
        (["--inputs", "ZEROS"], "all inputs are zero"),
        (["--inputs", "/nowhere.npz"], "expected an .npz file"),
        (["--profile", "p.txt"], "a profile is written as"),
        (["--profile", "/nowhere/p.pb"], "there is no folder /nowhere"),
    ],
)
def test_what_cannot_be_run_is_said(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zeros = tmp_path / "zeros.npz"
    arrays = {str(k): np.zeros(shape, np.float32) for k, shape in enumerate(_shapes())}
    np.savez(zeros, **arrays)  # type: ignore[arg-type]  # numpy types its own option as any keyword
    words = [str(zeros) if word == "ZEROS" else word for word in words]
    assert main(["run", SAMPLE, *PLAN, "--repeats", "1", *words]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def _shapes() -> list[tuple[int, ...]]:
    from engine.hlo.reading import read_here  # late: only this test reads the sample itself

    entry = read_here(Path(SAMPLE).read_bytes(), SAMPLE).proto.host_program_shape
    return [tuple(p.dimensions) for p in entry.parameters]


@pytest.mark.parametrize(
    "content", [b"", b"no profile", b"{}", b"[1]", b'{"traceEvents": []}', b"\x1f\x8bdamaged", b"[" * 9]
)
def test_what_is_no_profile_is_said(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p"
    file.write_bytes(content)
    assert main(["report", SAMPLE, "--measured", str(file)]) == 2
    err = capsys.readouterr().err
    assert err.count(str(file)) >= 1
    assert "expected" in err or "damaged" in err
