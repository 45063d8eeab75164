"""The compiled module that a profile brings along: a profile of a job can be looked at without a dump of its HLO."""

from __future__ import annotations

import numpy as np
from google.protobuf.message import DecodeError

from engine.errors import InputError
from engine.hlo.hlo_pb2 import HloProto
from engine.profile.attribution import attribute
from engine.profile.profile import PREDICTED, RUN_AS_JOB
from engine.profile.trace import is_trace, trace_profile
from engine.profile.xplane import METADATA, profile_of
from engine.profile.xspace_pb2 import XSpace


def held_module(data: bytes, source: str) -> HloProto:
    """The program that most events of an xplane.pb's bytes belong to; `source` is for messages.

    Raises InputError for what is no such profile, brings no module along, or is of a run of ours: that names the
    instructions of the module that was run, which is not the compiled one.
    """
    _refuse_trace(data, source)
    try:
        space = XSpace.FromString(data)
    except DecodeError:
        raise InputError(
            f"{source}: a profile (.xplane.pb) was expected, but it is none, or was not written completely: open the "
            "module that was run first, or profile once more"
        ) from None
    profile = profile_of(space, source)
    if PREDICTED in profile.notes:
        raise InputError(f"{source}: a measured profile was expected, but this one was predicted by Lapstrake")
    events = np.bincount(profile.module, minlength=len(profile.modules)) if len(profile) else np.zeros(0)
    ran = {name: int(count) for name, count in zip(profile.modules, events, strict=False)}
    modules = _modules(space)
    name = max(modules, key=lambda n: ran.get(n, 0), default=None)
    if name is None or not ran.get(name, 0):
        raise InputError(f"{source}: it brings no module of what was run along: open the compiled HLO first")
    if attribute(modules[name].hlo_module):
        raise InputError(f"{source}: it is of a run of a plan: open the module that the plan was made of first")
    return modules[name]


def _refuse_trace(data: bytes, source: str) -> None:
    """Raises InputError for a Chrome or Perfetto trace, which brings no module along; says which it is of."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return
    if not is_trace(text):
        return
    programs = sorted({name.partition("(")[0] for name in trace_profile(text, source).modules} - {"", RUN_AS_JOB})
    what = f"the module {programs[0]}" if len(programs) == 1 else "the module that was run"
    raise InputError(
        f"{source}: it is a Chrome or Perfetto trace (JSON): times of operations, without the module that ran. Open "
        f"the HLO of {what} first (File → Open), then this trace: it is shown beside the prediction"
    )


def _modules(space: XSpace) -> dict[str, HloProto]:
    """By program, as the profile names it."""
    found: dict[str, HloProto] = {}
    for plane in space.planes:
        for metadata in plane.event_metadata.values() if plane.name == METADATA else ():
            for stat in metadata.stats:
                if stat.WhichOneof("value") != "bytes_value":
                    continue
                try:
                    proto = HloProto.FromString(stat.bytes_value)
                except DecodeError:
                    continue  # of a version that we do not know
                if proto.hlo_module.computations:
                    found[metadata.name] = proto
    return found
