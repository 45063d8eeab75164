"""Workers answer, report, stop when asked, and their deaths become sentences."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import NoReturn

import pytest

from engine.control import Cancelled, Control
from engine.errors import InputError, WorkerError
from engine.worker import Died, TimedOut, memory
from engine.worker.call import last_words
from engine.worker.pool import Pool

JOBS = "tests.engine.worker.jobs"
LONG = 60.0
"""Seconds after which a test gives up: a busy machine may give a process none of its time for some."""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    pool = Pool()
    yield pool
    pool.close()


def test_a_call_returns_its_value(pool: Pool) -> None:
    assert pool.call(f"{JOBS}:add", 2, b=3) == 5


def test_a_worker_is_kept_for_the_next_call(pool: Pool) -> None:
    assert pool.call(f"{JOBS}:process_id") == pool.call(f"{JOBS}:process_id") != os.getpid()


def test_a_call_goes_to_the_worker_that_knows_what_it_is_near() -> None:
    pool = Pool()
    try:
        calls = [pool.start(f"{JOBS}:process_id", near=near) for near in ("step decompose fuse", "step fuse")]
        first, second = (call.result() for call in calls)
        assert first != second
        for near, process in (("step fuse", second), ("step decompose", first), ("step fuse", second)):
            assert pool.start(f"{JOBS}:process_id", near=near).result() == process
    finally:
        pool.close()


def test_a_prepared_worker_serves_the_next_call_after_what_it_was_prepared_with() -> None:
    pool = Pool()
    try:
        for first in (f"{JOBS}:process_id", "tests.nowhere:nothing"):
            pool.prepare(first)
            (process,) = pool._idle
            assert pool.call(f"{JOBS}:process_id") == process.pid
            pool.close()
    finally:
        pool.close()


def test_calls_at_the_same_time_run_in_different_processes(pool: Pool) -> None:
    slow = pool.start(f"{JOBS}:count_slowly", LONG)
    assert pool.call(f"{JOBS}:add", 1, 1) == 2
    assert not slow.poll()
    slow.kill()


def test_the_environment_is_that_of_the_worker(pool: Pool) -> None:
    environment = {"LAPSTRAKE_TEST": "here"}
    assert pool.call(f"{JOBS}:variable", "LAPSTRAKE_TEST", environment=environment) == "here"
    assert pool.call(f"{JOBS}:variable", "LAPSTRAKE_TEST") is None
    assert "LAPSTRAKE_TEST" not in os.environ


def test_progress_arrives(pool: Pool) -> None:
    seen: list[float] = []

    def enough() -> bool:
        return len({fraction for fraction in seen if 0 < fraction < 1}) > 2

    control = Control(lambda fraction, message: seen.append(fraction), stop=enough)
    with pytest.raises(Cancelled):
        pool.call(f"{JOBS}:count_slowly", LONG, control=control)
    assert seen == sorted(seen)


def test_what_is_found_on_the_way_arrives_in_order(pool: Pool) -> None:
    heard: list[object] = []
    assert pool.call(f"{JOBS}:find", [3, 1, 2], control=Control(hear=heard.append)) == 3
    assert heard == [3, 1, 2]


def test_a_polled_call_can_be_followed(pool: Pool) -> None:
    handle = pool.start(f"{JOBS}:count_slowly", 0.3)
    while not handle.poll():
        time.sleep(0.01)
    assert handle.progress[1] == "counting"
    assert handle.result() == "counted"


def test_cancelling_stops_a_call_that_listens_and_keeps_its_worker(pool: Pool) -> None:
    before = pool.call(f"{JOBS}:process_id")
    handle = pool.start(f"{JOBS}:count_slowly", LONG)
    while handle.progress[1] != "counting":
        handle.wait(0.1)
    handle.cancel(LONG)
    with pytest.raises(Cancelled):
        handle.result()
    assert pool.call(f"{JOBS}:process_id") == before


def test_cancelling_kills_a_call_that_is_deaf(pool: Pool) -> None:
    handle = pool.start(f"{JOBS}:hang")
    while handle.progress[1] != "hanging":
        handle.wait(0.1)
    handle.cancel()
    with pytest.raises(Cancelled):
        handle.result()
    assert pool.call(f"{JOBS}:add", 1, 2) == 3


def test_a_blocking_call_is_cancelled_through_its_control(pool: Pool) -> None:
    started = time.monotonic()
    control = Control(stop=lambda: time.monotonic() - started > 0.2)
    with pytest.raises(Cancelled):
        pool.call(f"{JOBS}:count_slowly", LONG, control=control)


def test_a_deadline_kills_and_says_what_was_going_on(pool: Pool) -> None:
    pool.call(f"{JOBS}:add", 1, 2)  # so that starting a worker takes none of the time
    with pytest.raises(TimedOut, match=r"no answer within 2 s while hanging"):
        pool.call(f"{JOBS}:hang", deadline=2.0)
    assert pool.call(f"{JOBS}:add", 1, 2) == 3


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups are POSIX")
def test_a_call_that_leaves_no_memory_is_stopped_and_says_so(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "takes_too_much", lambda pid: 17 << 30 if pid else 0)
    with pytest.raises(Died, match=r"had taken 17\.0 GiB of memory and left next to none.*Close other") as died:
        pool.call(f"{JOBS}:hang")
    assert died.value.starved
    monkeypatch.undo()
    assert pool.call(f"{JOBS}:add", 2, b=3) == 5


@pytest.mark.parametrize(("available", "stopped"), [(0.5, False), (0.05, True)])
def test_a_worker_is_too_large_only_where_memory_is_short(
    monkeypatch: pytest.MonkeyPatch, available: float, stopped: bool
) -> None:
    monkeypatch.setattr(memory, "resident_bytes", lambda pid: 40)
    monkeypatch.setattr(memory, "machine_bytes", lambda: (100, round(100 * available)))
    assert bool(memory.takes_too_much(1)) == stopped
    monkeypatch.setattr(memory, "resident_bytes", lambda pid: 20)
    assert not memory.takes_too_much(1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked")
def test_memory_is_told_of_processes_that_are_there() -> None:
    total, available = memory.machine_bytes()
    assert 0 < memory.resident_bytes(os.getpid()) < total
    assert 0 < available <= total
    assert memory.resident_bytes(None) == 0


def test_what_the_worker_started_dies_with_it(pool: Pool, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    pool.call(f"{JOBS}:add", 1, 2)  # so that starting a worker takes none of the time
    with pytest.raises(TimedOut):
        pool.call(f"{JOBS}:start_child_and_hang", str(file), deadline=3.0)
    child = int(file.read_text())
    assert ends(child), f"process {child} outlived its worker"


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks into /proc")
def test_a_worker_of_a_worker_is_cancelled_with_it(pool: Pool, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    handle = pool.start(f"{JOBS}:wait_for_a_worker_that_hangs", str(file))
    while not (file.exists() and file.read_text()):
        handle.wait(0.02)
    handle.cancel(LONG)
    with pytest.raises(Cancelled):
        handle.result()
    assert not is_running(int(file.read_text()))


@pytest.mark.parametrize(
    ("words", "quoted"),
    [
        ("F0000 00:00:1.5 7 a.cc:12] Check failed: a == b (1 vs 2)\n*** stack\n", "Check failed: a == b (1 vs 2)"),
        ("E0000 00:00:1.5 7 x.cc:1] noise\n", ""),
        ("LLVM ERROR: pthread_create failed: no more\n", "LLVM ERROR: pthread_create failed: no more"),
        (
            "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n",
            "terminate called after throwing an instance of 'std::bad_alloc' what(): std::bad_alloc",
        ),
        ("", ""),
    ],
)
def test_an_abort_names_the_signal_and_quotes_its_last_words(pool: Pool, words: str, quoted: str) -> None:
    with pytest.raises(Died) as caught:
        pool.call(f"{JOBS}:abort", words)
    assert "SIGABRT" in str(caught.value)
    assert caught.value.said == quoted
    assert quoted in str(caught.value)
    assert caught.value.starved == ("alloc" in quoted or "pthread" in quoted)


def test_an_earlier_call_is_not_quoted() -> None:
    pool = Pool()
    try:
        pool.call(f"{JOBS}:shout")
        with pytest.raises(Died) as caught:
            pool.call(f"{JOBS}:abort", "Check failed: x\n")
        assert caught.value.said == "Check failed: x"
    finally:
        pool.close()


def test_sigkill_hints_at_memory(pool: Pool) -> None:
    with pytest.raises(Died, match=r"SIGKILL .*out of memory") as caught:
        pool.call(f"{JOBS}:kill_itself")
    assert caught.value.starved


def test_an_exit_is_a_death(pool: Pool) -> None:
    with pytest.raises(Died, match="exit code 3"):
        pool.call(f"{JOBS}:leave", 3)


def test_errors_for_the_user_arrive_whole(pool: Pool) -> None:
    with pytest.raises(InputError, match=r"a\.hlo:3:2: expected a module") as caught:
        pool.call(f"{JOBS}:complain")
    assert caught.value.place is not None
    assert caught.value.place.text == " x"
    assert caught.value.message == "expected a module"


def test_other_errors_become_a_sentence_with_the_traceback_as_a_note(pool: Pool) -> None:
    with pytest.raises(WorkerError, match="ZeroDivisionError: division by zero") as caught:
        pool.call(f"{JOBS}:divide")
    assert any('int("0")' in note for note in caught.value.__notes__)


def test_a_result_that_cannot_be_sent_is_an_error(pool: Pool) -> None:
    with pytest.raises(WorkerError, match="unsendable failed"):
        pool.call(f"{JOBS}:unsendable")
    assert pool.call(f"{JOBS}:add", 1, 2) == 3


def test_nothing_reaches_the_terminal(capfd: pytest.CaptureFixture[str], pool: Pool) -> None:
    pool.call(f"{JOBS}:shout")
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks into /proc")
def test_workers_leave_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "from engine import worker\n"
        "import os, signal\n"
        "if __name__ == '__main__':\n"
        f"    pid = worker.call('{JOBS}:process_id')\n"
        f"    worker.start('{JOBS}:count_slowly', 60.0).wait(0.2)\n"
        "    print(pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    pid = int(ran.stdout)
    assert ends(pid), f"worker {pid} outlived its parent"


def test_a_program_ends_though_workers_wait(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "from engine import worker\n"
        "if __name__ == '__main__':\n"
        f"    print(worker.call('{JOBS}:add', 1, 2))\n"
        f"    worker.start('{JOBS}:hang').wait(0.3)\n"
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=LONG)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "3\n", "")


def test_last_words_of_both_loggers() -> None:
    assert last_words("noise\nF0817 12:00:00.1 99 rendezvous.cc:161] Termination timeout: 3 of 4\n") == (
        "Termination timeout: 3 of 4"
    )
    assert last_words("x.h:3: Check failed: ok\n") == "x.h:3: Check failed: ok"
    assert last_words("all well\n") == ""


def ends(pid: int) -> bool:
    """Whether a process comes to its end, soon on an idle machine."""
    until = time.monotonic() + LONG
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not is_running(pid)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_no_worker_is_started_while_the_program_ends() -> None:
    pool = Pool()
    pool.end()
    with pytest.raises(WorkerError, match="while the program ends"):
        pool.start(f"{JOBS}:add", 2, b=3)


def test_a_worker_that_cannot_be_started_is_a_sentence_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(process: SpawnProcess) -> NoReturn:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(SpawnProcess, "start", refuse)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(WorkerError, match=r"Cannot allocate memory\. Close other programs"):
        Pool().start(f"{JOBS}:add", 2, b=3)
    assert [*tmp_path.iterdir()] == []


def test_a_fresh_worker_that_takes_no_work_is_not_started_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the program is read from standard input: each new process dies before it listens."""
    started: list[object] = []

    def refuse(process: object, *_: object) -> None:
        started.append(process)
        raise BrokenPipeError

    monkeypatch.setattr("engine.worker.pool.Call", refuse)
    with pytest.raises(Died, match="ended before it took any work"):
        Pool().start("tests.engine.worker.jobs:add", 1, 2)
    assert len(started) == 1
