"""One kind of chip: its figures, as read from a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from engine.chips.budget import Budget, Kind


class Wrap(StrEnum):
    """When an axis of a torus has its wrap-around links."""

    CUBES = "cubes"
    """Every axis, when the slice is made of whole cubes of 4 along every axis."""
    WHOLE = "whole"
    """Only an axis of the full length of a pod."""


class Exclusive(StrEnum):
    """Which collectives may not be in flight together."""

    NEVER = "never"
    """Any may."""
    SHARED_DEVICES = "shared-devices"
    """Two whose groups have more than one device in common may not (NCCL can deadlock)."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Bytes per second one way."""

    usable: float
    """As measured in public guides: what predictions use."""
    nominal: float
    """As advertised: what bounds use."""


@dataclass(frozen=True, slots=True)
class SliceLinks:
    """A host's port to the data-centre network, which joins slices."""

    chips: tuple[int, ...]
    """Block of neighbouring chips that share a host, along each axis of the torus."""
    host: Rate
    """One host's port, one direction."""
    latency: int
    """Picoseconds of a step between slices."""


@dataclass(frozen=True, slots=True)
class TorusLinks:
    """A chip's links to its neighbours in a torus or mesh."""

    dimensions: int
    largest: tuple[int, ...]
    """Longest axes of a pod."""
    link: Rate
    """One link, one direction."""
    hop_latency: int
    """Picoseconds."""
    wrap: Wrap
    launch: int = 0
    """Picoseconds that a transfer takes before its first byte moves."""
    slices: SliceLinks | None = None
    """How slices are joined; None where nothing is known of that."""


@dataclass(frozen=True, slots=True)
class DomainLinks:
    """A chip's port to its switched domain, and its node's port to the network between domains."""

    domain: int
    """Devices that reach each other through the switch."""
    link: Rate
    """One device's port, one direction."""
    network: Rate
    """One domain's port to the network, one direction."""
    link_latency: int
    """Picoseconds of a step inside the domain."""
    network_latency: int
    """Picoseconds of a step between domains."""
    launch: int
    """Picoseconds to launch a collective."""
    half_bytes: int
    """Bytes a device sends in one collective at which it reaches about half of `link`'s usable rate."""


@dataclass(frozen=True, slots=True)
class Units:
    """How the compute units and memories behave: constants of the cost model (`engine.cost.compute`)."""

    clock: float
    """Hertz; what the compiler's cycles count."""
    tile: tuple[int, int, int]
    """A matmul's (rows, columns, depth) are rounded up to multiples of these."""
    fill: int
    """Rows below which loading a tile of the stationary operand takes longer than using it."""
    parallel: int
    """Units that tiles of the output are dealt to in waves; 1 where the whole chip works on one tile."""
    split_depth: int
    """Least depth of the parts that a contraction is cut into where its tiles leave units idle; 0: it is never cut."""
    matmul_efficiency: float
    """Of the peak, at shapes that are large multiples of the tile."""
    narrow: float
    """Elements per second of less than 32 bits that are unpacked and packed again."""
    ports: float
    """Elements per second of 32 bits that pass the vector units, loaded or stored, beside the time that HBM takes."""
    vector: float
    """Element-wise operations per second."""
    transcendental: float
    """Exponentials, logarithms, … per second."""
    hbm_efficiency: float
    """Of `Chip.hbm_bandwidth`, without a matmul."""
    matmul_hbm_efficiency: float
    """Of `Chip.hbm_bandwidth`, for what a fusion with a matmul moves, window by window."""
    onchip_bandwidth: float
    """Bytes per second of the on-chip memory that compilers place arrays in; infinity where the units work from it."""
    overlap: float
    """Exponent p with which the times of the resources join, (Σ tᵖ)^(1/p): 1 adds them, infinity is a roofline."""
    cores: int
    """Cores of a device: windows of an einsum are dealt to them."""
    vmem: float
    """Bytes of a core's vector memory, which an einsum's windows have to fit; 0 where it is not cut into any."""
    vmem_share: float
    """Of `vmem`, what compilers let windows fill; the rest is left to what is computed beside the einsum."""
    step: int
    """Picoseconds that a step of an einsum, one window of either operand, takes beside its work."""
    tail: float
    """Share that does not hide of the shorter of a step's matmul and its vector work."""
    adding: float
    """Elements per second of an einsum's result that a step adds to what the steps before it left."""
    window: float
    """Bytes of an array that have to come before anything is done with it, while the rest streams beside the work.
    Einsums have windows of their own (`engine.cost.windows`)."""
    launch: int
    """Picoseconds before an instruction's first byte moves."""
    scalar: int
    """Picoseconds of an instruction on single elements (index arithmetic)."""


@dataclass(frozen=True, slots=True)
class Chip:
    """What one device of a job has. A chip that a job sees as two devices is entered here as one half."""

    name: str
    """Key: ``tpu-v4``."""
    title: str
    """As shown: ``TPU v4``."""
    family: str
    """``tpu`` or ``gpu``."""
    peak_flops: Mapping[str, float]
    """Dense peak by XLA dtype name (``bf16``, ``f32``, ``s8``, ``f8``), per second."""
    hbm_bytes: int
    hbm_bandwidth: float
    default_budget: Budget
    network: TorusLinks | DomainLinks
    units: Units
    devices_per_chip: int = 1
    """Devices that share the chip's links."""
    host_bandwidth: float = 16e9
    """Bytes per second between a device and its host's memory, one way."""
    asynchronous: frozenset[Kind] = frozenset({Kind.PERMUTE})
    """Kinds of collectives that its compiler can make asynchronous."""
    exclusive: Exclusive = Exclusive.NEVER
    collective_share: float = 0.0
    """Share of the compute units that a collective in flight takes."""
    sources: tuple[str, ...] = ()
    uncertain: tuple[tuple[str, str], ...] = ()
    """Figures that sources disagree on or that are guessed, each with the reason."""

    def budget(self, given: Budget | None) -> Budget:
        """What may be in flight here under a plan's budget; None is the chip's own."""
        return self.default_budget if given is None else given.on(self.default_budget)

    def peak(self, dtype: str) -> float:
        """Peak for an XLA dtype name: of the type itself, of its family, else of the nearest wider type listed."""
        for key in (dtype, *_STAND_INS.get(dtype, ())):
            if key in self.peak_flops:
                return self.peak_flops[key]
        if dtype.startswith(("f8", "f4", "f6")):
            return self.peak_flops.get("f8", self.peak_flops["bf16"])
        return self.peak_flops["bf16"]


_STAND_INS: Mapping[str, tuple[str, ...]] = {
    "f16": ("bf16",),
    "f32": ("bf16",),
    "s4": ("s8",),
    "u4": ("s8",),
    "u8": ("s8",),
    "s8": ("bf16",),
    "f64": ("f32",),
    "c64": ("f32",),
    "c128": ("f64", "f32"),
}
