"""Jobs in processes: results in order, errors raised here, a dead worker named."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from functools import partial

import pytest

from shapecheck.static.workers import Progress, WorkerError, run_jobs

forks = pytest.mark.skipif(sys.platform != "linux", reason="jobs run in this process elsewhere")


def _pid(_progress: Progress) -> int:
    return os.getpid()


def test_results_come_in_the_order_of_the_jobs() -> None:
    assert run_jobs([lambda _: "a" * 1_000_000, lambda _: "b"]) == ["a" * 1_000_000, "b"]


def test_one_job_runs_in_this_process() -> None:
    assert run_jobs([_pid]) == [os.getpid()]


@forks
def test_two_jobs_run_in_two_other_processes() -> None:
    assert len({os.getpid(), *run_jobs([_pid, _pid])}) == 3


@forks
def test_one_job_apart_runs_in_another_process() -> None:
    assert run_jobs([_pid], apart=True) != [os.getpid()]


@forks
def test_an_error_of_a_worker_is_raised_here() -> None:
    def fail(_progress: Progress) -> int:
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        run_jobs([_pid, fail])


@forks
def test_a_worker_that_is_killed_says_what_to_do() -> None:
    def die(_progress: Progress) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    with pytest.raises(WorkerError, match="lint fewer targets at once"):
        run_jobs([_pid, die])


class _Last:
    """Ends the process that writes it."""

    def __reduce__(self) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return ""


@forks
def test_a_worker_that_is_killed_in_the_middle_of_its_answer_says_so_too() -> None:
    with pytest.raises(WorkerError, match="lint fewer targets at once"):
        run_jobs([lambda _: [], lambda _: ["a" * 1_000_000, _Last()]])


@forks
def test_answers_come_without_a_place_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> None:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(tempfile, "TemporaryFile", nowhere)
    assert run_jobs([lambda _: "a", lambda _: "b"]) == ["a", "b"]


@forks
def test_an_answer_that_no_file_has_room_for_comes_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", partial(open, "/dev/full", "r+b"))
    assert run_jobs([lambda _: "a" * 1_000_000, lambda _: "b"]) == ["a" * 1_000_000, "b"]


@forks
def test_progress_is_that_of_all_workers() -> None:
    heard: list[tuple[int, int]] = []

    def work(progress: Progress) -> int:
        progress(50, 100)
        return 1

    run_jobs([work, work], lambda done, of: heard.append((done, of)))
    assert heard[-1] == (100, 200)
