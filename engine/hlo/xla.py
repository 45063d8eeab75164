"""The one place that touches jaxlib's private HLO interfaces: XLA's parser, printer and StableHLO converters.

They move between releases. Tried with jaxlib 0.10.2 (the newest for Python 3.11) and 0.12 (Python 3.12 and later); any
other is refused with a sentence. XLA aborts the process on some malformed inputs, and holds the GIL while it works:
call these functions in a worker process (`engine.worker`), never in the window's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from engine.errors import LapstrakeError, UnsupportedError

OLDEST = (0, 10, 2)
NEWER_THAN_NEWEST = (0, 13)

_COUNTS = ("mhlo.num_partitions", "mhlo.num_replicas")


class XlaError(LapstrakeError):
    """What XLA said, unchanged; callers turn it into an error about the user's file."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """An HLO module as XLA understood it."""

    proto: bytes
    """Serialised HloModuleProto."""
    header: str
    """First line of XLA's print of the module: it names what the proto loses."""


def version() -> str:
    """Version of the jaxlib that is installed. Does not load XLA."""
    from jaxlib.version import __version__

    return str(__version__)


def check_version(installed: str) -> None:
    """Raises UnsupportedError for a jaxlib whose private interfaces were never tried."""
    numbers = tuple(int(part) for part in installed.split(".")[:3] if part.isdigit())
    if not OLDEST <= numbers < NEWER_THAN_NEWEST:
        oldest, newest = (".".join(map(str, v)) for v in (OLDEST, NEWER_THAN_NEWEST))
        raise UnsupportedError(
            f"jaxlib {installed} is installed, but its HLO interfaces are only known from {oldest} up to, and not "
            f'including, {newest}; install one of those: pip install "jaxlib>={oldest},<{newest}"'
        )


@cache
def _hlo() -> Any:
    check_version(version())
    return import_module("jaxlib._hlo")


@cache
def _mlir() -> Any:
    check_version(version())
    return import_module("jaxlib._jax").mlir


def parse(text: str) -> Parsed:
    """Parse HLO text. Raises XlaError with XLA's message (``was parsing LINE:COLUMN: error: …``)."""
    hlo = _hlo()
    try:
        module = hlo.hlo_module_from_text(text)
        proto: bytes = module.as_serialized_hlo_module_proto()
        return Parsed(proto, _header(module))
    except RuntimeError as error:
        raise XlaError(str(error)) from None


def check_proto(proto: bytes) -> Parsed:
    """Build XLA's module from a serialised HloModuleProto and give back its proto. Raises XlaError."""
    hlo = _hlo()
    try:
        module = hlo.HloModule.from_serialized_hlo_module_proto(proto)
        checked: bytes = module.as_serialized_hlo_module_proto()
        return Parsed(checked, _header(module))
    except RuntimeError as error:
        raise XlaError(str(error)) from None


def print_proto(proto: bytes, *, metadata: bool = True) -> str:
    """HLO text of a serialised HloModuleProto, constants in full. Raises XlaError."""
    hlo = _hlo()
    options = hlo.HloPrintOptions()
    options.print_large_constants, options.print_metadata = True, metadata
    try:
        text: str = hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string(options)
    except RuntimeError as error:
        raise XlaError(str(error)) from None
    return text


def compiled_text(module: Any) -> str:
    """The text of an executable's module as jaxlib holds it, whose header says more than its proto; constants whole."""
    options = _hlo().HloPrintOptions()
    options.print_large_constants = True
    text: str = module.to_string(options)
    return text


def to_stablehlo(proto: bytes) -> bytes:
    """MLIR bytecode (StableHLO) of a serialised HloModuleProto. Raises XlaError."""
    mlir = _mlir()
    try:
        code: bytes = mlir.hlo_to_stablehlo(proto)
    except (RuntimeError, ValueError) as error:
        raise XlaError(str(error)) from None
    return code


def to_stablehlo_text(proto: bytes, partitions: int, replicas: int) -> str:
    """As `to_stablehlo`, as MLIR text that says the counts of partitions and replicas. Raises XlaError."""
    hlo, mlir = _hlo(), _mlir()
    try:
        text: str = mlir.xla_computation_to_mlir_module(hlo.XlaComputation(proto))
    except (RuntimeError, ValueError) as error:
        raise XlaError(str(error)) from None
    counts = ", ".join(f"{name} = {n} : i32" for name, n in zip(_COUNTS, (partitions, replicas), strict=True))
    return re.sub(
        r"^(module @[^\n{]*?) (attributes \{)?",
        lambda found: f"{found[1]} attributes {{{counts}{', ' if found[2] else '} '}",
        text,
        count=1,
        flags=re.MULTILINE,
    )


def from_stablehlo(code: str | bytes) -> Parsed:
    """HLO of a StableHLO module: MLIR text, bytecode or a portable artifact. Raises XlaError."""
    mlir = _mlir()
    try:
        computation = mlir.mlir_module_to_xla_computation(code, use_tuple_args=False, return_tuple=False)
        proto: bytes = computation.as_serialized_hlo_module_proto()
    except (RuntimeError, ValueError) as error:
        raise XlaError(str(error)) from None
    return check_proto(proto)


def device_counts(code: str | bytes) -> tuple[int | None, int | None]:
    """``mhlo.num_partitions`` and ``mhlo.num_replicas`` of a StableHLO module; None for what it does not tell."""
    if isinstance(code, str):
        found = (re.search(rf"{name} = (\d+)", code) for name in _COUNTS)
        partitions, replicas = (None if match is None else int(match[1]) for match in found)
        return partitions, replicas
    attributes = _attributes(code)
    return attributes.get(_COUNTS[0]), attributes.get(_COUNTS[1])


def _attributes(bytecode: bytes) -> dict[str, int]:
    """Integer attributes of a module in bytecode; empty where the bindings cannot read it (it may still convert)."""
    ir = import_module("jaxlib.mlir.ir")
    stablehlo = import_module("jaxlib.mlir.dialects.stablehlo")
    registry = ir.DialectRegistry()
    import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    with ir.Context() as context:
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
        for dialect in ("stablehlo", "sdy", "chlo"):
            import_module(f"jaxlib.mlir.dialects.{dialect}").register_dialect(context)
        import_module("jaxlib.mlir.dialects.mhlo").register_mhlo_dialect(context)
        for parse in (stablehlo.deserialize_portable_artifact, lambda context, code: ir.Module.parse(code, context)):
            try:
                attributes = parse(context, bytecode).operation.attributes
                return {name: int(attributes[name].value) for name in _COUNTS if name in attributes}
            except (RuntimeError, ValueError, ir.MLIRError):
                continue
    return {}


def _header(module: Any) -> str:
    options = _hlo().HloPrintOptions()
    options.print_large_constants = False
    options.print_metadata = False
    options.print_backend_config = False
    text: str = module.to_string(options)
    return text.partition("\n")[0]
