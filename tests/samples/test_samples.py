"""The shipped samples: complete, described, free of this machine's paths, loadable, and the same when written again."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from engine.hlo.reading import read_here
from tests.places import ROOT, SAMPLES

FILES = sorted(SAMPLES.glob("*.hlo"))
AGAIN = ("mlp_fig2_train_4_f32", "mlp_fig3", "mlp_fig3_train_4x2_f32", "recommender_2_bf16", "pipeline_train_4x2_f32")
"""Written again in every run: one of each builder that is quick; `make samples` writes all."""


def generate(folder: Path, *names: str) -> str:
    command = [sys.executable, "-m", "samples.generate", "--output", str(folder), *names]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=600).stdout


def same_text(folder: Path, name: str) -> bool:
    return (folder / f"{name}.hlo").read_bytes() == (SAMPLES / f"{name}.hlo").read_bytes()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_sample_loads_and_says_its_devices(file: Path) -> None:
    module = read_here(file.read_bytes(), str(file))
    mesh = re.search(r"_(\d+(?:x\d+)*)_", f"{file.stem}_")
    expected = 8 if mesh is None else devices(mesh[1])
    assert module.header.num_partitions == expected


def devices(mesh: str) -> int:
    product = 1
    for size in mesh.split("x"):
        product *= int(size)
    return product


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_sample_names_no_folder_of_the_machine_that_wrote_it(file: Path) -> None:
    text = file.read_text("utf-8")
    assert re.findall(r'^\d+ "(.*)"', text.partition("FunctionNames")[0], re.MULTILINE) == ["models.py"]
    assert not re.search(r"[\"\s]/\w+/", text)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_sample_keeps_its_constants(file: Path) -> None:
    assert "{...}" not in file.read_text("utf-8")


def test_every_sample_is_described() -> None:
    described = set(re.findall(r"`(\w+)`", (SAMPLES / "README.md").read_text("utf-8")))
    assert {file.stem for file in FILES} <= described


def test_same_jax_writes_the_same_bytes(tmp_path: Path) -> None:
    said = generate(tmp_path, *AGAIN)
    if version("jax") == written_with():
        assert [name for name in AGAIN if not same_text(tmp_path, name)] == []
    else:  # another version may print differently; what it prints must still load
        assert "were written with" in said
        for name in AGAIN:
            read_here((tmp_path / f"{name}.hlo").read_bytes(), name)


@pytest.mark.full
def test_all_samples_are_written_and_no_other(tmp_path: Path) -> None:
    generate(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [file.name for file in FILES]
    if version("jax") == written_with():
        assert [file.stem for file in FILES if not same_text(tmp_path, file.stem)] == []


def written_with() -> str:
    found = re.search(r'^WRITTEN_WITH = "(.*)"', (SAMPLES / "generate.py").read_text("utf-8"), re.MULTILINE)
    assert found is not None
    return found[1]
