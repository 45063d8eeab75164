"""Chips that ship are whole and sourced; a user's file is checked figure by figure."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from engine.chips.budget import Budget, Kind
from engine.chips.chip import DomainLinks, Exclusive, TorusLinks
from engine.chips.library import chips, load_chip
from engine.errors import InputError, UsageError

MINIMAL = """
family = "tpu"
[peak_tflops]
bf16 = 100
[hbm]
gigabytes = 16
gigabytes_per_second = 1000
[torus]
dimensions = 2
largest = [4, 4]
nominal_gigabytes_per_second = 50
hop_nanoseconds = 500
wrap = "whole"
[units]
clock_megahertz = 1000
tile = [8, 128, 128]
matmul_efficiency = 0.9
hbm_efficiency = 0.8
overlap = 4
launch_nanoseconds = 100
"""


@pytest.mark.parametrize("name", chips())
def test_every_chip_is_whole_and_sourced(name: str) -> None:
    chip = load_chip(name)
    assert chip.name == name
    assert chip.sources
    assert all(source.startswith(("http", "engine ")) for source in chip.sources)
    assert chip.peak("bf16") > 1e13
    assert chip.network.link.usable <= chip.network.link.nominal
    assert chip.default_budget.total is not None
    assert isinstance(chip.network, TorusLinks if chip.family == "tpu" else DomainLinks)
    assert pickle.loads(pickle.dumps(chip)) == chip  # it travels to worker processes


def test_figures_are_those_of_the_table() -> None:
    v5e = load_chip("tpu-v5e")
    assert v5e.peak("bf16") == 197e12
    assert v5e.peak("s8") == v5e.peak("u8") == 394e12
    assert v5e.network.link.usable == 45e9
    assert v5e.network.link.nominal == 50e9
    assert v5e.hbm_bandwidth == 819e9


def test_a_device_of_a_chip_with_two_has_half_of_it() -> None:
    v7x = load_chip("tpu-v7x")
    assert v7x.devices_per_chip == 2
    assert v7x.peak("bf16") == pytest.approx(2307e12 / 2)
    assert v7x.hbm_bandwidth == pytest.approx(7380e9 / 2)


def test_gpus_keep_one_collective_in_flight() -> None:
    h100 = load_chip("h100")
    assert h100.default_budget == Budget(total=1)
    assert h100.exclusive == Exclusive.SHARED_DEVICES
    assert h100.collective_share > 0
    assert load_chip("tpu-v4").exclusive == Exclusive.NEVER


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("tpu-v3", {Kind.PERMUTE}),
        ("tpu-v4", {Kind.PERMUTE, Kind.ALL_GATHER, Kind.ALL_TO_ALL}),
        ("tpu-v7x", {Kind.PERMUTE, Kind.ALL_GATHER, Kind.REDUCE_SCATTER}),
        ("h100", {Kind.PERMUTE, Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.ALL_REDUCE, Kind.ALL_TO_ALL}),
    ],
)
def test_what_a_chips_compiler_makes_asynchronous(name: str, kinds: set[Kind]) -> None:
    assert load_chip(name).asynchronous == kinds


def test_uncertain_figures_say_why() -> None:
    assert "sources give 123 to 140" in dict(load_chip("tpu-v3").uncertain)["bf16"]


@pytest.mark.parametrize(
    ("dtype", "peak"), [("f8e4m3fn", "f8"), ("f8e5m2", "f8"), ("f16", "bf16"), ("f32", "f32"), ("c64", "f32")]
)
def test_types_that_are_not_listed_stand_on_those_that_are(dtype: str, peak: str) -> None:
    h100 = load_chip("h100")
    assert h100.peak(dtype) == h100.peak_flops[peak]


def test_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'tpu-v5p'"):
        load_chip("tpu-v5pp")


def test_a_users_chip(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINIMAL + "[budget]\npermute = 2\ntotal = 3\n")
    chip = load_chip(str(path))
    assert (chip.name, chip.title) == ("mine", "mine")
    assert chip.default_budget == Budget(3, ((Kind.PERMUTE, 2),))
    assert chip.network.link.usable == chip.network.link.nominal == 50e9


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("bf16 = 100", "bf16 = -1", r"peak_tflops\.bf16: a number that is not negative"),
        ("bf16 = 100", "bf16 = 0", r"peak_tflops\.bf16: a number above 0"),
        (
            "dimensions = 2",
            "dimensions = 0.5",
            r"torus\.dimensions: a whole number .* but 0\.5 came",
        ),
        ('family = "tpu"', 'family = "tpu"\ndevices_per_chip = 1.5', "devices_per_chip: a whole number"),
        ("bf16 = 100", "f32 = 100", r"peak_tflops\.bf16 is missing"),
        ("gigabytes = 16", "gigabytes = 'x'", r"hbm\.gigabytes: a number"),
        ("gigabytes = 16", "gigabyte = 16", r"hbm\.gigabytes is missing"),
        ("largest = [4, 4]", "largest = [4]", r"torus\.largest: a list of 2 integers"),
        ('wrap = "whole"', 'wrap = "twist"', r"torus\.wrap: one of cubes, whole"),
        ('family = "tpu"', 'family = "npu"', "family: one of tpu, gpu"),
        ("overlap = 4", "overlap = 4\noverlaps = 4", r"units\.overlaps: no figure .*did you mean 'overlap'"),
        ("[hbm]", "[hbm", "TOML"),
        ("[torus]", "[tours]", "is missing"),
    ],
)
def test_a_wrong_figure_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(MINIMAL.replace(old, new))
    with pytest.raises(InputError, match=message):
        load_chip(str(path))


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_chip(str(tmp_path / "none.toml"))
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        load_chip(str(tmp_path / "folder.toml"))
