"""Registers a function that sees a module inside a production compiler, around its scheduler, and may change it.

jax 0.12 has a public function for that, which also serves compilers without a device. jaxlib 0.10.2 serves attached
devices only; there the plugin's C interface is called instead (`pjrt_c_api_xla_transform_extension.h` of openxla/xla,
extension version 1, tried with libtpu 0.0.51). Anything else is refused by name. In worker processes only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import IntEnum
from importlib import import_module
from typing import Any

from engine.errors import UnsupportedError
from engine.hlo.xla import version

Transform = Callable[[bytes], bytes | None]
"""Serialised HloModuleProto → the changed one, or None to leave it."""

_PUBLIC_SINCE = (0, 12)
_BY_C_SINCE = (0, 10, 2)
_EXTENSION_TYPE = 24
_VERSION = 1


class Stage(IntEnum):
    """When a function is called; the numbers are those of the C interface."""

    PRE_SCHEDULER = 0
    POST_SCHEDULER = 1


def register(transform: Transform, platform: str, library: str, stage: Stage = Stage.PRE_SCHEDULER) -> None:
    """Have `transform` called on every module at `stage`, by the compiler in the plugin `library`.

    There is no way back: the caller's function decides which modules it changes. An exception in it fails the
    compilation. Raises UnsupportedError for versions that cannot do it.
    """
    numbers = tuple(int(part) for part in version().split(".")[:3] if part.isdigit())
    if numbers >= _PUBLIC_SINCE:
        _register_publicly(transform, platform, stage)
    elif numbers >= _BY_C_SINCE:
        _register_by_c(transform, library, stage)
    else:
        raise UnsupportedError(_refusal(f"jaxlib {version()} offers no hook around scheduling"))


def _register_publicly(transform: Transform, platform: str, stage: Stage) -> None:
    xla = import_module("jax.extend.xla")
    xla.register_hlo_module_transformation(
        transform, name=_name(stage), stage=getattr(xla.PipelineStage, stage.name), platforms=platform
    )


def _name(stage: Stage) -> str:
    return f"lapstrake-{stage.name.lower()}"


class _Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class _Outcome(ctypes.Structure):
    _fields_ = [
        ("api_version", ctypes.c_int64),
        ("data", ctypes.c_void_p),
        ("cleanup", ctypes.c_void_p),
        ("has_error", ctypes.c_bool),
        ("code", ctypes.c_int),
        ("message", _Text),
    ]


class _Arguments(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("outcome", _Outcome),
        ("module", _Text),
        ("changed_module", _Text),
        ("changed", ctypes.c_bool),
    ]


_Function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Arguments))


class _Callbacks(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int64),
        ("destructor", ctypes.c_void_p),
        ("transform", _Function),
    ]


class _Registration(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("name_size", ctypes.c_size_t),
        ("stage", ctypes.c_int),
        ("callbacks", ctypes.POINTER(_Callbacks)),
    ]


class _Extension(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("register", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Registration))),
    ]


class _Api(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("extensions", ctypes.c_void_p)]


_kept: list[Any] = []
"""What the compiler holds pointers to."""


def _register_by_c(transform: Transform, library: str, stage: Stage) -> None:
    extension = _extension(library)
    texts: list[Any] = []

    def run(_: int, pointer: Any) -> None:
        arguments = pointer.contents
        texts.clear()  # of the last call: the compiler has read them
        try:
            changed = transform(ctypes.string_at(arguments.module.data, arguments.module.size))
        except Exception as error:
            arguments.outcome.has_error = True
            arguments.outcome.message = _text(f"{type(error).__name__}: {error}".encode(), texts)
            return
        if changed is not None:
            arguments.changed_module = _text(changed, texts)
            arguments.changed = True

    call = _Function(run)
    callbacks = _Callbacks(_VERSION, None, call)
    name = _name(stage).encode()
    asked = _Registration(ctypes.sizeof(_Registration), name, len(name), stage, ctypes.pointer(callbacks))
    _kept.extend((call, callbacks, name))
    if extension.register(ctypes.byref(asked)):
        raise UnsupportedError(_refusal(f"{library} refused the function"))


def _extension(library: str) -> _Extension:
    """The plugin's extension by which functions are registered. Raises UnsupportedError where it is not as known."""
    get_api = ctypes.CDLL(library).GetPjrtApi
    get_api.restype = ctypes.POINTER(_Api)
    at = get_api().contents.extensions
    while at:
        extension = _Extension.from_address(at)
        if extension.type == _EXTENSION_TYPE:
            # Later versions have more functions after this one: the interface grows at its end.
            if extension.struct_size < ctypes.sizeof(_Extension):
                break
            return extension
        at = extension.next
    raise UnsupportedError(_refusal(f"{library} does not have the interface that is known (extension version 1)"))


def _text(value: bytes, texts: list[Any]) -> _Text:
    held = ctypes.create_string_buffer(value, len(value))
    texts.append(held)
    return _Text(ctypes.addressof(held), len(value))


def _refusal(reason: str) -> str:
    return f"the order cannot be forced in this compiler: {reason}; jax 0.12 (Python 3.12 and later) can"
