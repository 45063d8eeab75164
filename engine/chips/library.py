"""Chips by name: those that ship as TOML files, and the user's own from a path."""

from __future__ import annotations

import difflib
import tomllib
from importlib.resources import files
from math import inf
from pathlib import Path

from engine.chips.budget import KIND_NAMES, Budget
from engine.chips.chip import Chip, DomainLinks, Exclusive, Rate, SliceLinks, TorusLinks, Units, Wrap
from engine.chips.figures import Figures
from engine.errors import InputError, UsageError

_UNLIMITED = 1e12
_HOST = 16.0
"""Gigabytes per second to the host where a file does not say: PCIe of the third generation."""
_SHIPPED = files("engine.chips") / "data"


def chips() -> tuple[str, ...]:
    """Names of the chips that ship."""
    return tuple(sorted(f.name.removesuffix(".toml") for f in _SHIPPED.iterdir() if f.name.endswith(".toml")))


def load_chip(name: str) -> Chip:
    """A shipped chip by name, or the user's own from a path that ends in ``.toml``.

    Raises UsageError for a name that does not exist, InputError for a file that is no chip.
    """
    if name in chips():
        return _chip(name, (_SHIPPED / f"{name}.toml").read_text("utf-8"), name)
    if not name.endswith(".toml"):
        close = difflib.get_close_matches(name, chips(), n=1)
        hint = f" (did you mean '{close[0]}'?)" if close else ""
        raise UsageError(f"no chip is called '{name}'{hint}; there are: {', '.join(chips())}; or give a .toml file")
    path = Path(name)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name}: a chip's TOML file was expected, but it cannot be read: {error}") from error
    return _chip(path.stem, text, name)


def _chip(name: str, text: str, path: str) -> Chip:
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: a chip's TOML file was expected: {error}") from error
    top = Figures(values, f"{path}: ")
    share = top.whole("devices_per_chip", 1)
    peaks, hbm, flight = top.table("peak_tflops"), top.table("hbm"), top.table("in_flight", needed=False)
    slices = top.table("slices") if "slices" in values else None
    uncertain, host = top.table("uncertain", needed=False), top.table("host", needed=False)
    chip = Chip(
        name=name,
        title=top.text("title", name),
        family=_one_of(top.text("family"), ("tpu", "gpu"), f"{path}: family"),
        peak_flops={k: peaks.positive(k) * 1e12 / share for k in peaks},
        hbm_bytes=int(hbm.positive("gigabytes") * 1e9 / share),
        hbm_bandwidth=hbm.positive("gigabytes_per_second") * 1e9 / share,
        default_budget=_budget(top.table("budget", needed=False)),
        network=_torus(top.table("torus"), slices, path) if "torus" in values else _domain(top.table("domain")),
        units=_units(top.table("units"), share),
        devices_per_chip=share,
        host_bandwidth=host.positive("gigabytes_per_second", _HOST) * 1e9 / share,
        asynchronous=frozenset(
            KIND_NAMES[_one_of(kind, tuple(KIND_NAMES), f"{path}: in_flight.asynchronous")]
            for kind in flight.texts("asynchronous", ("permute",))
        ),
        exclusive=Exclusive(
            _one_of(flight.text("exclusive", "never"), tuple(Exclusive), f"{path}: in_flight.exclusive")
        ),
        collective_share=flight.number("collective_share", 0.0),
        sources=top.texts("sources"),
        uncertain=tuple((k, uncertain.text(k)) for k in uncertain),
    )
    if "bf16" not in chip.peak_flops:
        raise InputError(f"{path}: peak_tflops.bf16 is missing: other types are derived from it")
    for table in (top, hbm, flight, host):
        table.finish()
    return chip


def _one_of(value: str, choices: tuple[str, ...], where: str) -> str:
    if value not in choices:
        raise InputError(f"{where}: one of {', '.join(choices)} was expected, but '{value}' came")
    return value


def _budget(table: Figures) -> Budget:
    limits = {key: table.whole(key) for key in table if key == "total" or key in KIND_NAMES}
    table.finish()
    total = limits.pop("total", None)
    return Budget(total, tuple(sorted((KIND_NAMES[key], limit) for key, limit in limits.items())))


def _rate(table: Figures, prefix: str = "") -> Rate:
    nominal = table.positive(f"{prefix}nominal_gigabytes_per_second")
    return Rate(table.positive(f"{prefix}usable_gigabytes_per_second", nominal) * 1e9, nominal * 1e9)


def _torus(table: Figures, slices: Figures | None, path: str) -> TorusLinks:
    dimensions = table.whole("dimensions")
    found = TorusLinks(
        dimensions=dimensions,
        largest=table.integers("largest", dimensions),
        link=_rate(table),
        hop_latency=round(table.number("hop_nanoseconds") * 1e3),
        wrap=Wrap(_one_of(table.text("wrap"), tuple(Wrap), f"{path}: torus.wrap")),
        launch=round(table.number("launch_nanoseconds", 0) * 1e3),
        slices=None if slices is None else _slices(slices, dimensions),
    )
    table.finish()
    return found


def _slices(table: Figures, dimensions: int) -> SliceLinks:
    found = SliceLinks(
        chips=table.integers("host_chips", dimensions),
        host=_rate(table),
        latency=round(table.number("step_nanoseconds") * 1e3),
    )
    table.finish()
    return found


def _domain(table: Figures) -> DomainLinks:
    found = DomainLinks(
        domain=table.whole("devices"),
        link=_rate(table),
        network=_rate(table, "network_"),
        link_latency=round(table.number("step_nanoseconds") * 1e3),
        network_latency=round(table.number("network_step_nanoseconds") * 1e3),
        launch=round(table.number("launch_nanoseconds") * 1e3),
        half_bytes=table.whole("half_bytes", 0, least=0),
    )
    table.finish()
    return found


def _units(table: Figures, share: int) -> Units:
    rows, columns, depth = table.integers("tile", 3)
    launch, efficiency = table.number("launch_nanoseconds"), table.positive("hbm_efficiency", 1.0)
    found = Units(
        clock=table.positive("clock_megahertz") * 1e6,
        tile=(rows, columns, depth),
        fill=table.whole("fill_rows", 0, least=0),
        parallel=table.whole("parallel", 1),
        split_depth=table.whole("split_depth", 0, least=0),
        matmul_efficiency=table.positive("matmul_efficiency"),
        narrow=table.positive("narrow_gigaelements", _UNLIMITED) * 1e9 / share,
        ports=table.positive("port_gigaelements", inf) * 1e9 / share,
        vector=table.positive("vector_gigaops", _UNLIMITED) * 1e9 / share,
        transcendental=table.positive("transcendental_gigaops", _UNLIMITED) * 1e9 / share,
        hbm_efficiency=efficiency,
        matmul_hbm_efficiency=table.positive("matmul_hbm_efficiency", efficiency),
        onchip_bandwidth=table.positive("onchip_gigabytes_per_second", inf) * 1e9 / share,
        overlap=table.positive("overlap") if "overlap" in table else inf,
        cores=table.whole("cores", 1),
        vmem=table.number("vmem_kibibytes", 0.0) * 1024,
        vmem_share=table.positive("vmem_share", 1.0),
        step=round(table.number("step_nanoseconds", 0.0) * 1e3),
        tail=table.number("tail", 0.0),
        adding=table.positive("adding_gigaelements", inf) * 1e9 / share,
        window=table.number("window_kibibytes", 0.0) * 1024 / share,
        launch=round(launch * 1e3),
        scalar=round(table.number("scalar_nanoseconds", launch) * 1e3),
    )
    table.finish()
    return found
