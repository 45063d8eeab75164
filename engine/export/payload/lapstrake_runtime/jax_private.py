"""What jax keeps to itself, or has moved before, in one place: jax 0.10.2 and 0.12 have it here.

`lapstrake_capture` has its own, for it also runs as a file by itself.
"""

import importlib.metadata

import jax

try:
    from jax._src import cache_key
    from jax._src.config import trace_context
    from jax._src.core import trace_state_clean
    from jax._src.distributed import global_state
    from jax._src.lib import hlo  # type: ignore[attr-defined]  # private in jax, and untyped
    from jax.extend.core import Primitive
    from jax.extend.mlir import ir
    from jax.extend.mlir.dialects import func
    from jax.interpreters import mlir

    MOVED = ""
except ImportError as error:
    MOVED = f"jax {jax.__version__} has moved what a plan needs of it ({error}): use a jax that Lapstrake names"

__all__ = [
    "MOVED",
    "Primitive",
    "cache_key",
    "func",
    "global_state",
    "hlo",
    "ir",
    "mlir",
    "trace_context",
    "trace_state_clean",
]

VERSIONS = {"jax": jax.__version__, "jaxlib": importlib.metadata.version("jaxlib")}
