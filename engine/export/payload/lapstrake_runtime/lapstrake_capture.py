"""Write down what a JAX script compiles, for `lapstrake tune`. This file and jax are all it needs.

    python lapstrake_capture.py --out DIR SCRIPT [arguments of the script]

runs the script, and lowers and compiles each function from `jax.jit` at its first call. It ends at the first call of
the function named with `--function`; without a name, when the largest function captured is called again, which is when
a training loop has come around (`--go-on` runs the script to its end). In a program of one's own:

    from lapstrake_capture import capture
    capture(step, *arguments_or_shape_structs, out="DIR")

For each function a folder gets `partitioned.hlo` (after XLA's partitioner, before anything is optimised),
`scheduled.hlo` (as the compiler put it in order, where jax has a hook for that; for plans of order alone) and
`capture.json`: what the program is known by, its arguments and results, mesh, and versions.

`--target tpu:v4:2x2x2` compiles for TPUs that are not there (libtpu has to be installed): the script runs on as many
CPU devices (`XLA_FLAGS=--xla_force_host_platform_device_count=8`, `JAX_PLATFORMS=cpu`).
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import importlib.metadata
import inspect
import itertools
import json
import math
import os
import pathlib
import re
import runpy
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

SCHEMA = 1
_BAD_USAGE = 2
_INTERRUPTED = 130
_PARTITIONERS = "spmd-partitioning|tpu-spmd-partitioning"
_WHOLE = {
    "tpu": {
        "xla_tpu_enable_windowed_einsum_for_all_gather": False,
        "xla_tpu_enable_windowed_einsum_for_reduce_scatter": False,
    }
}
"""Options with which a compiler leaves collectives whole, so that there is something to decompose."""
_OBSTACLES = (
    (r"\w*python\w*callback|SendToHost|RecvFromHost|stablehlo\.(send|recv)\b", "it calls back to the host"),
    (r"!stablehlo\.token", "it has ordered effects"),
    (r'memory_kind = "(?!device)', "it uses a memory kind other than device"),
    (r"annotate_device_placement", "it moves data between memory kinds"),
    (r"_internal_pmap_axis_name|num_replicas = (?!1 )", "it is made by pmap"),
    (r"algorithm = <lhs_precision_type", "it chooses a dot algorithm, which the plan's format drops"),
)
"""Text of a lowered program → why no plan of it can run in a job."""
_SETTINGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
)
"""Settings of jax that make other programs, to be named where one is another."""


class CaptureError(Exception):
    """What cannot be captured, and why."""


class DiskError(CaptureError):
    """What could not be written, and why: nothing else can be either."""


def capture(step: Any, *args: Any, out: str, name: str = "", target: str = "", **kwargs: Any) -> pathlib.Path:
    """Lower and compile a function from `jax.jit` for these arguments (arrays or `jax.ShapeDtypeStruct`s with
    shardings); nothing is executed. `target` names devices that are not there, ``tpu:v4:2x2x2``. Returns the folder
    that was written. Raises CaptureError."""

    if not hasattr(step, "lower"):
        raise CaptureError(f"a function from jax.jit was expected, {step!r:.60} came: wrap it in jax.jit")
    label = name or getattr(step, "__name__", "step")
    lowered = step.lower(*args, **kwargs)
    compiled, text, scheduled = _compile(lowered)
    known = versions(compiled)
    about = signature(step, lowered, compiled)
    if target:
        lowered = step.trace(*args, **kwargs).lower(lowering_platforms=(target.partition(":")[0],))
        text, scheduled = _compile_without_devices(lowered, target), None
        known = {**known, "platform": target, "platform_version": ""}
        about["mesh"]["devices"] = None
    printed = lowered.as_text(debug_info=False)
    content = {
        "schema": SCHEMA,
        "name": label,
        "fingerprint": {"kind": "lowered", "sha256": hashlib.sha256(printed.encode()).hexdigest()},
        "obstacle": obstacle(lowered, printed, args, kwargs),
        "signature": about,
        "scheduled": None if scheduled is None else known_module(scheduled),
        "versions": known,
        "settings": settings(),
    }
    folder = pathlib.Path(out) / re.sub(r"[^\w.\-]", "_", label)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DiskError(f"cannot make the folder {folder}: {error.strerror}") from None
    _write(folder / "partitioned.hlo", text.encode())
    if scheduled is not None:
        # The hook's proto has no place for the count; readers need it.
        counted = f", num_partitions={math.prod(about['mesh']['sizes'])}\n"
        printed = _full_text(scheduled, metadata=True)
        _write(folder / "scheduled.hlo", printed.replace("\n", counted, 1).encode())
    _write(folder / "capture.json", json.dumps(content, indent=1).encode())
    return folder


def obstacle(lowered: Any, text: str, args: Any, kwargs: Any) -> str:
    """Why no plan of a lowered program, printed as `text`, can run in a job that calls it so; empty where one can."""
    import jax

    for pattern, why in _OBSTACLES:
        if re.search(pattern, text):
            return f"{why}: leave that out of it, or run it as it is"
    leaves = jax.tree_util.tree_leaves((lowered.args_info, lowered.out_info))
    if any(str(leaf.dtype).startswith("key<") for leaf in leaves):
        return "a typed PRNG key is among the arguments or results: pass its jax.random.key_data"
    if jax.tree_util.tree_structure((args, kwargs)) != lowered.in_tree:
        return "it has static arguments, which a plan cannot carry: bind them before jax.jit"
    return ""


def settings() -> dict[str, str]:
    """Settings of jax that make other programs, as they are now."""
    import jax

    return {name: str(getattr(jax.config, name, None)) for name in _SETTINGS}


def _compile(lowered: Any) -> tuple[Any, str, Any]:
    """The executable as the job makes it, the module as its partitioner left it, and as its scheduler did or None."""
    whole = _WHOLE.get(_platform(lowered), {})
    with _scheduled_modules(_platform(lowered)) as seen:
        compiled, text = _compile_and_dump(lowered, {})
    if whole:
        text = _compile_and_dump(lowered, whole)[1]
    return compiled, text, seen[-1] if seen else None


def partitioned(step: Any, lowered: Any) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
    """What a step's module is known by as its partitioner left it, and the step's signature, for a job that compares
    them with a dump. Where the compiler has a decomposition of its own, which dumps are also made without, once more
    with that switched off."""
    from jax._src.lib import hlo  # type: ignore[attr-defined]  # private in jax, and untyped

    whole = _WHOLE.get(_platform(lowered))
    for options in ({}, whole) if whole else ({},):
        compiled, text = _compile_and_dump(lowered, options)
        yield known_module(hlo.hlo_module_from_text(text)), signature(step, lowered, compiled)


def _compile_and_dump(lowered: Any, options: dict[str, Any]) -> tuple[Any, str]:
    from jax._src.config import persistent_cache_min_compile_time_secs

    with _dump_folder() as dump, persistent_cache_min_compile_time_secs(math.inf):  # nobody compiles it so again
        compiled = lowered.compile(compiler_options={**_dumping(dump), **options})
        return compiled, _dumped(dump)


@contextlib.contextmanager
def _dump_folder() -> Iterator[str]:
    try:
        folder = tempfile.TemporaryDirectory(prefix="lapstrake-capture-")
    except OSError as error:
        raise DiskError(f"no temporary folder can be made: {error.strerror} (TMPDIR names another place)") from None
    with folder as name:
        yield name


def _dumping(folder: str) -> dict[str, Any]:
    # The folder's name is part of the compilation cache's key, so that nothing comes from there unseen.
    return {
        "xla_dump_to": folder,
        "xla_dump_hlo_pass_re": _PARTITIONERS,
        "xla_dump_hlo_as_text": True,
        "xla_dump_large_constants": True,
    }


def _dumped(folder: str) -> str:
    found = sorted(pathlib.Path(folder).glob("*.after_*spmd-partitioning*.txt"))
    found = found or sorted(pathlib.Path(folder).glob("*before_optimizations.txt"))
    if not found:
        raise DiskError(
            f"the compiler wrote no module to {tempfile.gettempdir()}: is there space left (TMPDIR names another "
            "place), and can it write what it compiles?"
        )
    text = found[-1].read_text("utf-8")
    if not text.rstrip().endswith("}"):
        raise DiskError(
            f"the compiler wrote only part of the module to {tempfile.gettempdir()}: is there space left? (TMPDIR "
            "names another place)"
        )
    if "constant({...})" in text:
        raise CaptureError(
            "the compiler left out the values of constants, and no plan can do without them: pass large arrays to the "
            "function as arguments"
        )
    return text


@contextlib.contextmanager
def _scheduled_modules(platform: str) -> Iterator[list[Any]]:
    """The modules that are compiled meanwhile, as their scheduler left them; none where jax has no such hook."""
    seen: list[Any] = []
    try:
        import jax.extend.xla as xla
        from jax._src.lib import hlo  # type: ignore[attr-defined]  # private in jax, and untyped

        def see(serialised: bytes) -> None:
            with contextlib.suppress(Exception):  # it would fail the compilation
                seen.append(hlo.HloModule.from_serialized_hlo_module_proto(serialised))

        stage = xla.PipelineStage.POST_SCHEDULER
        xla.register_hlo_module_transformation(see, name="lapstrake_capture", stage=stage, platforms=platform)
    except (ImportError, AttributeError, RuntimeError, NotImplementedError):
        yield seen
        return
    try:
        yield seen
    finally:
        xla.clear_hlo_module_transformation("lapstrake_capture", stage, platforms=platform)


def _full_text(module: Any, *, metadata: bool) -> str:
    from jax._src.lib import hlo  # type: ignore[attr-defined]  # private in jax, and untyped

    options = hlo.HloPrintOptions()
    options.print_large_constants, options.print_metadata = True, metadata
    text: str = module.to_string(options)
    return text


def known_module(module: Any) -> dict[str, str]:
    """What a module of jaxlib's is known by."""
    return known_by(_full_text(module, metadata=False))


def known_by(text: str) -> dict[str, str]:
    """What a module, printed without metadata, is known by: a hash of its text, and what its header says."""
    header, _, body = text.partition("\n")
    body = body[max(body.find("\n%"), body.find("\nENTRY") if "\n%" not in body else 0) :]
    said = {"sha256": hashlib.sha256(body.encode()).hexdigest()}
    for name in ("entry_computation_layout", "input_output_alias", "buffer_donor"):
        found = re.search(name + r"=(\{.*?\})(?=, [a-z_]+=|$)", header)
        said[name] = found[1] if found else "{}"
    return said


def _compile_without_devices(lowered: Any, target: str) -> str:
    """The partitioned module, from a compiler whose devices are not there."""
    platform, _, topology_name = target.partition(":")
    if platform != "tpu" or not topology_name:
        raise CaptureError(f"target {target}: tpu:KIND:SHAPE was expected, as in tpu:v4:2x2x2")
    import numpy as np
    from jax._src import compiler
    from jax._src.lib import _jax  # type: ignore[attr-defined]  # private in jax, and untyped
    from jax.experimental import topologies

    shape = tuple(int(n) for n in topology_name.rpartition(":")[2].split("x"))
    options: dict[str, Any] = {"wrap": tuple(n > 2 for n in shape)}
    if topology_name.startswith("v4"):
        options["chip_config_name"] = "megacore"
    try:
        devices: Any = topologies.get_topology_desc(platform=platform, topology_name=topology_name, **options).devices
    except Exception as error:
        raise CaptureError(f"target {target}: {error}; is libtpu installed beside this jax?") from error
    count = int(re.search(r"num_partitions = (\d+)", lowered.as_text())[1])  # type: ignore[index]  # jax prints it
    if len(devices) != count:
        raise CaptureError(
            f"target {target} has {len(devices)} devices, the function's mesh {count}: name a slice of as many, or "
            "make the mesh of all of them"
        )
    with _dump_folder() as dump:
        overrides: dict[str, Any] = {**_dumping(dump), **_WHOLE[platform]}
        asked: Any = compiler.get_compile_options(
            num_replicas=1,
            num_partitions=count,
            device_assignment=np.arange(count).reshape(1, count),
            env_options_overrides=overrides,
        )
        client: Any = devices[0].client
        client.compile(lowered.compiler_ir("stablehlo"), _jax.DeviceList(tuple(devices)), asked)
        return _dumped(dump)


def signature(step: Any, lowered: Any, compiled: Any) -> dict[str, Any]:
    """Arguments and results, leaf by leaf, the mesh they lie on, and what the step calls what it gets by place."""
    import jax

    infos = jax.tree_util.tree_flatten_with_path(lowered.args_info)[0]
    ins = jax.tree_util.tree_leaves(compiled.input_shardings, is_leaf=_is_sharding)
    outs = jax.tree_util.tree_leaves(compiled.output_shardings, is_leaf=_is_sharding)
    kept = _kept(compiled, len(infos))
    results = jax.tree_util.tree_leaves(lowered.out_info)
    mesh = _mesh([*ins, *outs])
    ids = [d.id for d in mesh.devices.flat]
    return {
        "mesh": {
            "names": list(mesh.axis_names),
            "sizes": list(mesh.devices.shape),
            "devices": [sorted(ids).index(id_) for id_ in ids],
        },
        "parameters": _parameters(step),
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


def _parameters(step: Any) -> list[str]:
    try:
        parameters = inspect.signature(step).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


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
    raise CaptureError(
        f"an argument or result has the sharding {sharding}, which no mesh axes express: give it a NamedSharding"
    )


def _mesh(shardings: Sequence[Any]) -> Any:
    for sharding in shardings:
        if hasattr(sharding, "mesh") and hasattr(sharding.mesh, "devices"):
            return sharding.mesh
    raise CaptureError(
        "no argument or result lies on a mesh: there is nothing to overlap on one device (put them on one with a "
        "NamedSharding, or jit for it, if it runs on several)"
    )


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

    client = compiled.runtime_executable().client
    return {
        "jax": jax.__version__,
        "jaxlib": importlib.metadata.version("jaxlib"),
        "platform": client.platform,
        "platform_version": client.platform_version,
    }


def _write(path: pathlib.Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise DiskError(f"cannot write {path}: {error.strerror}") from None


# --- a whole script ------------------------------------------------------------------------------------------------


class _Done(BaseException):
    """Raised out of the script when everything wanted is captured; no `except Exception` of the script's stops it."""


class _Recorder:
    """Stands in for `jax.jit` while a script runs."""

    def __init__(self, jit: Callable[..., Any], options: argparse.Namespace) -> None:
        self.jit = jit
        self._options = options
        self.folders: dict[str, pathlib.Path] = {}
        self.problems: list[str] = []
        self.seen: dict[str, None] = {}
        """Names of the functions that were called, in order."""

    def __call__(self, function: Any = None, **options: Any) -> Any:
        if function is None:
            return functools.partial(self, **options)
        return _Recorded(self, self.jit(function, **options))

    def first_call(self, jitted: Any, args: Any, kwargs: Any) -> str:
        """Capture what is called; returns its folder's name, empty where there is none."""
        name = getattr(jitted, "__name__", "step")
        self.seen[name] = None
        if self._options.function and name != self._options.function:
            return ""
        label = self._free(name)
        try:
            folder = capture(jitted, *args, out=self._options.out, name=label, target=self._options.target, **kwargs)
        except CaptureError as error:
            self.problems.append(f"{name}: {error}")
            if isinstance(error, DiskError):
                raise _Done from None
            return ""
        self.folders[label] = folder
        if self._options.function and not self._options.go_on:
            raise _Done
        return label

    def called_again(self, label: str) -> None:
        """End the script where its main loop has come around."""
        if not self._options.go_on and label and label == self.largest():
            raise _Done

    def largest(self) -> str:
        return max(self.folders, key=lambda k: (self.folders[k] / "partitioned.hlo").stat().st_size, default="")

    def _free(self, name: str) -> str:
        numbered = (name if k == 1 else f"{name}.{k}" for k in itertools.count(1))
        return next(label for label in numbered if label not in self.folders)


class _Recorded:
    """A jitted function that is captured at its first call, and otherwise is what it was."""

    def __init__(self, recorder: _Recorder, jitted: Any) -> None:
        self._recorder = recorder
        self._jitted = jitted
        self._label: str | None = None
        functools.update_wrapper(self, jitted, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import jax

        leaves = jax.tree_util.tree_leaves((args, kwargs))
        if not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            if self._label is None:
                self._label = self._recorder.first_call(self._jitted, args, kwargs)
            else:
                self._recorder.called_again(self._label)
        return self._jitted(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jitted, name)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a script with `jax.jit` watched."""
    options = _options(argv)
    if not os.path.isfile(options.script):
        print(f"{options.script}: a Python script was expected, but there is no such file", file=sys.stderr)
        return _BAD_USAGE
    here = str(pathlib.Path(__file__).resolve().parent)
    # As where the script is started alone: its own folder first, and nothing from here.
    sys.path[:] = [
        str(pathlib.Path(options.script).resolve().parent),
        *(p for k, p in enumerate(sys.path) if k or os.path.realpath(p) != here),
    ]
    sys.argv = [options.script, *options.arguments]
    try:
        import jax
    except ImportError as error:
        print(
            f"{sys.executable} has no jax that can be imported ({error}): the script runs in the interpreter of its "
            "job, so name that one (--python)",
            file=sys.stderr,
        )
        return _BAD_USAGE
    recorder = _Recorder(jax.jit, options)
    setattr(jax, "jit", recorder)  # noqa: B010  # the whole point
    try:
        failed = _run(options.script)
    finally:
        setattr(jax, "jit", recorder.jit)  # noqa: B010  # and back
    _tell(recorder, options, failed)
    return 0 if recorder.folders and not failed else 1


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="captured", help="folder to write to (default: captured)")
    parser.add_argument("--function", default="", help="capture only this function, then stop")
    parser.add_argument("--go-on", action="store_true", help="run the script to its end")
    parser.add_argument("--target", default="", help="devices that are not there: tpu:v4:2x2x2")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser.parse_args(argv)


def _run(script: str) -> str:
    """How a script failed; empty where it ended well, or when everything wanted was captured."""
    try:
        runpy.run_path(script, run_name="__main__")
    except _Done:
        pass
    except SystemExit as leaving:
        if leaving.code not in (None, 0):
            return f"{script} ended itself ({leaving.code})"
    except Exception as error:  # whatever the script raises
        _show_traceback(error)
        return f"{script} failed ({type(error).__name__})"
    return ""


def _tell(recorder: _Recorder, options: argparse.Namespace, failed: str) -> None:
    """What was captured, the largest last, and what was not and why."""
    for problem in recorder.problems:
        print(f"not captured: {problem}", file=sys.stderr)
    largest = recorder.largest()
    for folder in sorted(recorder.folders.values(), key=lambda folder: folder.name == largest):
        if why := json.loads((folder / "capture.json").read_bytes())["obstacle"]:
            print(f"{folder}: no plan of it can run in a job: {why}", file=sys.stderr)
        print(folder)
    if failed:
        print(f"{failed}; functions captured before: {len(recorder.folders)}", file=sys.stderr)
    elif not recorder.folders and not recorder.problems:
        print(_nothing(recorder, options), file=sys.stderr)


def _nothing(recorder: _Recorder, options: argparse.Namespace) -> str:
    """Why there is nothing to capture."""
    if not options.function:
        return f"{options.script} called no function from jax.jit (what it compiles ahead of time is not seen)"
    seen = ", ".join(recorder.seen) or "none"
    return (
        f"{options.script} never called a function called {options.function}; those from jax.jit that it called: {seen}"
    )


def _show_traceback(error: BaseException) -> None:
    """The script's part of it: what is above is this file and runpy."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace or error.__traceback__)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # who pressed the keys knows
        sys.exit(_INTERRUPTED)
