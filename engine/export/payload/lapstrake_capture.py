"""Write down what a JAX script compiles, for `lapstrake tune`. This file and jax are all it needs.

    python lapstrake_capture.py SCRIPT [arguments of the script] --out DIR

lowers and compiles each function from `jax.jit` at its first call and stops after the one named with `--function`, or,
without a name, goes on until the script ends (`--go-on` executes the functions; without it the script ends at the
first call whose result it would need). In a program of one's own:

    from lapstrake_capture import capture
    capture(step, *arguments_or_shape_structs, out="DIR")

For each function the folder gets `partitioned.hlo` (after XLA's partitioner, before anything is optimised) and
`capture.json`: what the program is known by, its arguments and results, mesh, and versions.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib.metadata
import json
import os
import pathlib
import re
import runpy
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

SCHEMA = 1
_PASSES = "spmd-partitioning|tpu-spmd-partitioning"
_WHOLE = {
    "tpu": {
        "xla_tpu_enable_windowed_einsum_for_all_gather": False,
        "xla_tpu_enable_windowed_einsum_for_reduce_scatter": False,
    }
}
"""Options with which a compiler leaves collectives whole, so that there is something to decompose."""


class CaptureError(Exception):
    """What cannot be captured, and why."""


def capture(step: Any, *args: Any, out: str, name: str = "", **kwargs: Any) -> pathlib.Path:
    """Lower and compile a function from `jax.jit` for these arguments (arrays or `jax.ShapeDtypeStruct`s with
    shardings); nothing is executed. Returns the folder that was written. Raises CaptureError."""
    if not hasattr(step, "lower"):
        raise CaptureError(f"{step!r} is no function from jax.jit")
    lowered = step.lower(*args, **kwargs)
    compiled, text = _compile(lowered)
    label = name or getattr(step, "__name__", "step")
    folder = pathlib.Path(out) / re.sub(r"[^\w.\-]", "_", label)
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "schema": SCHEMA,
        "name": label,
        "fingerprint": {
            "kind": "lowered",
            "sha256": hashlib.sha256(lowered.as_text(debug_info=False).encode()).hexdigest(),
        },
        "signature": signature(lowered, compiled),
        "versions": versions(compiled),
    }
    _write(folder / "partitioned.hlo", text.encode())
    _write(folder / "capture.json", json.dumps(content, indent=1).encode())
    return folder


def _compile(lowered: Any) -> tuple[Any, str]:
    """The executable, and the module as its partitioner left it."""
    platform = _platform(lowered)
    with tempfile.TemporaryDirectory(prefix="lapstrake-capture-") as dump:
        options = {
            "xla_dump_to": dump,
            "xla_dump_hlo_pass_re": _PASSES,
            "xla_dump_hlo_as_text": True,
            **_WHOLE.get(platform, {}),
        }
        compiled = lowered.compile(compiler_options=options)
        found = sorted(pathlib.Path(dump).glob("*.after_*spmd-partitioning*.txt"))
        if not found:
            found = sorted(pathlib.Path(dump).glob("*before_optimizations.txt"))
        if not found:
            raise CaptureError("the compiler wrote no module: is a compilation cache in the way?")
        return compiled, found[-1].read_text("utf-8")


def signature(lowered: Any, compiled: Any) -> dict[str, Any]:
    """Arguments and results, leaf by leaf, and the mesh they lie on."""
    import jax

    infos = jax.tree_util.tree_flatten_with_path(lowered.args_info)[0]
    ins = jax.tree_util.tree_leaves(compiled.input_shardings, is_leaf=_is_sharding)
    outs = jax.tree_util.tree_leaves(compiled.output_shardings, is_leaf=_is_sharding)
    kept = _kept(compiled, len(infos))
    results = jax.tree_util.tree_leaves(lowered.out_info)
    mesh = _mesh([*ins, *outs])
    return {
        "mesh": {
            "names": list(mesh.axis_names),
            "sizes": list(mesh.devices.shape),
            "devices": [d.id for d in mesh.devices.flat],
        },
        "arguments": [
            {
                "path": jax.tree_util.keystr(path),
                "donated": bool(info.donated),
                "kept": number in kept,
                **_leaf(info.shape, info.dtype, sharding),
            }
            for number, ((path, info), sharding) in enumerate(zip(infos, _spread(ins, kept, len(infos)), strict=True))
        ],
        "results": [_leaf(r.shape, r.dtype, s) for r, s in zip(results, outs, strict=True)],
    }


def _spread(shardings: Sequence[Any], kept: Sequence[int], count: int) -> list[Any]:
    """One sharding for each argument, also where the executable only knows those it kept."""
    if len(shardings) == count:
        return list(shardings)
    by_number = dict(zip(kept, shardings, strict=True))
    return [by_number.get(k) for k in range(count)]


def _leaf(shape: Sequence[int], dtype: Any, sharding: Any) -> dict[str, Any]:
    spec = [] if sharding is None else [list(p) if isinstance(p, tuple) else p for p in _spec(sharding)]
    local = shape if sharding is None else sharding.shard_shape(tuple(shape))
    return {"shape": list(shape), "local_shape": list(local), "dtype": str(dtype), "spec": spec}


def _spec(sharding: Any) -> Any:
    if hasattr(sharding, "spec"):
        return sharding.spec
    if sharding.is_fully_replicated:
        return ()
    raise CaptureError(f"an argument or result has the sharding {sharding}, which no mesh axes express")


def _mesh(shardings: Sequence[Any]) -> Any:
    for sharding in shardings:
        if hasattr(sharding, "mesh") and hasattr(sharding.mesh, "devices"):
            return sharding.mesh
    raise CaptureError("no argument or result lies on a mesh: there is nothing to overlap on one device")


def _kept(compiled: Any, count: int) -> list[int]:
    """Numbers of the arguments that jit did not drop."""
    found = getattr(getattr(compiled, "_executable", None), "_kept_var_idx", None)
    return list(range(count)) if found is None else sorted(found)


def _is_sharding(value: Any) -> bool:
    return hasattr(value, "is_equivalent_to")


def _platform(lowered: Any) -> str:
    platforms = getattr(getattr(lowered, "_lowering", None), "_platforms", None)
    if platforms:
        return str(platforms[0])
    import jax

    return str(jax.default_backend())


def versions(compiled: Any) -> dict[str, str]:
    """What a plan made from the capture depends on."""
    import jax

    client = compiled.runtime_executable().client if hasattr(compiled, "runtime_executable") else None
    platform = getattr(client, "platform", None) or jax.default_backend()
    return {
        "jax": jax.__version__,
        "jaxlib": importlib.metadata.version("jaxlib"),
        "platform": str(platform),
        "platform_version": str(getattr(client, "platform_version", "")),
    }


def _write(path: pathlib.Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


# --- a whole script ------------------------------------------------------------------------------------------------


class _Done(BaseException):
    """Raised out of the script when everything wanted is captured; no `except Exception` of the script's stops it."""


class _Recorder:
    """Stands in for `jax.jit` while a script runs."""

    def __init__(self, jit: Callable[..., Any], out: str, wanted: str, go_on: bool) -> None:
        self._jit = jit
        self._out = out
        self._wanted = wanted
        self._go_on = go_on
        self.folders: list[pathlib.Path] = []
        self.problems: list[str] = []

    def __call__(self, function: Any = None, **options: Any) -> Any:
        if function is None:
            return functools.partial(self, **options)
        return _Recorded(self, self._jit(function, **options))

    def first_call(self, jitted: Any, args: Any, kwargs: Any) -> None:
        name = getattr(jitted, "__name__", "step")
        if self._wanted and name != self._wanted:
            return
        try:
            self.folders.append(capture(jitted, *args, out=self._out, name=self._free(name), **kwargs))
        except CaptureError as error:
            self.problems.append(f"{name}: {error}")
            return
        if self._wanted and not self._go_on:
            raise _Done

    def _free(self, name: str) -> str:
        taken = {f.name for f in self.folders}
        number = 1
        label = name
        while label in taken:
            number += 1
            label = f"{name}.{number}"
        return label


class _Recorded:
    """A jitted function that is captured at its first call, and otherwise is what it was."""

    def __init__(self, recorder: _Recorder, jitted: Any) -> None:
        self._recorder = recorder
        self._jitted = jitted
        self._called = False
        functools.update_wrapper(self, jitted, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import jax

        leaves = jax.tree_util.tree_leaves((args, kwargs))
        if not self._called and not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            self._called = True
            self._recorder.first_call(self._jitted, args, kwargs)
        return self._jitted(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jitted, name)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a script with `jax.jit` watched."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="captured", help="folder to write to (default: captured)")
    parser.add_argument("--function", default="", help="capture only this function, then stop")
    parser.add_argument("--go-on", action="store_true", help="execute the script to its end")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(argv)
    import jax

    recorder = _Recorder(jax.jit, options.out, options.function, options.go_on)
    setattr(jax, "jit", recorder)  # noqa: B010  # the whole point
    sys.argv = [options.script, *options.arguments]
    sys.path.insert(0, str(pathlib.Path(options.script).resolve().parent))
    try:
        runpy.run_path(options.script, run_name="__main__")
    except _Done:
        pass
    finally:
        setattr(jax, "jit", recorder._jit)  # noqa: B010
    for problem in recorder.problems:
        print(f"not captured: {problem}", file=sys.stderr)
    for folder in recorder.folders:
        print(folder)
    if not recorder.folders:
        wanted = f"a function called {options.function}" if options.function else "a function from jax.jit on a mesh"
        print(f"{options.script} never called {wanted}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
