"""What is compiled is what was asked for."""

from __future__ import annotations

import pytest

from engine.errors import UnsupportedError, WorkerError
from engine.execute import running
from engine.execute.legalize import legalize
from engine.hlo.hlo_pb2 import HloModuleProto
from engine.hlo.reading import read_here
from engine.ir.module import Header
from tests.engine.execute.texts import SUMMED


def grouped(groups: str) -> HloModuleProto:
    return legalize(read_here(SUMMED.replace("{{0,1,2,3}}", groups).encode()))


def test_changed_groups_are_noticed() -> None:
    running.check_groups(grouped("{{0,1},{2,3}}"), grouped("{{2,3},{0,1}}"))
    with pytest.raises(WorkerError, match=r"changed the replica groups of .*all-reduce.* to \(\(0, 2\), \(1, 3\)\)"):
        running.check_groups(grouped("{{0,1},{2,3}}"), grouped("{{0,2},{1,3}}"))


def test_too_few_devices_are_said() -> None:
    with pytest.raises(UnsupportedError, match=r"runs on 999 devices, but only \d+ cpu devices? (is|are) attached"):
        running.Executable(grouped("{{0,1},{2,3}}"), Header(999))
