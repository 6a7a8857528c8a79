"""Jobs run at once in forked processes, where the system can fork; one after another elsewhere."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from typing import BinaryIO, TypeVar, cast

from shapecheck.errors import ShapecheckError

T = TypeVar("T")
Progress = Callable[[int, int], None]  # hears how much is done, of how much
Job = Callable[[Progress], T]
_SOME = 50  # a worker reports progress after so many steps


class WorkerError(ShapecheckError):
    """A worker that ended without an answer; the text says what to do."""


def run_jobs(
    jobs: Sequence[Job[T]], progress: Progress | None = None, *, apart: bool = False
) -> list[T]:
    """What every job returns, in order; an exception of a job is raised here.

    A job that is alone gets a process of its own only `apart`: it ends with all that it held.

    The results come through files from our own children: they have to be plain data.
    """
    if (len(jobs) < 2 and not apart) or sys.platform != "linux":
        return [job(progress or _silent) for job in jobs]
    running: dict[int, Connection] = {}
    answers: dict[Connection, BinaryIO] = {}
    try:
        for job in jobs:
            mine, theirs = Pipe(duplex=False)
            answers[mine] = _file()
            pid = os.fork()
            if not pid:
                _work(job, theirs, answers[mine], tell=progress is not None)
            theirs.close()
            running[pid] = mine
        return cast("list[T]", _gather(answers, progress))
    finally:
        for file in answers.values():
            file.close()
        for pid, connection in running.items():
            connection.close()
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _file() -> BinaryIO:
    """A file that nobody else sees, in memory where there is no place to write."""
    try:
        return cast("BinaryIO", tempfile.TemporaryFile())
    except OSError:
        return open(os.memfd_create("shapecheck"), "w+b")


def _silent(_done: int, _of: int) -> None:
    pass


def _work(job: Job[object], connection: Connection, file: BinaryIO, *, tell: bool) -> None:
    """The life of a child: the job, its answer, and an end without any clean-up."""

    def report(done: int, of: int) -> None:
        if done % _SOME == 0:
            connection.send(("progress", (done, of)))

    try:
        try:
            answer = job(report if tell else _silent)
        except BaseException as error:  # raised by the parent
            message = ("error", error)
        else:
            message = ("written", None) if _is_written(answer, file) else ("answer", answer)
        connection.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
    finally:
        os._exit(0)


def _is_written(answer: object, file: BinaryIO) -> bool:
    """Whether there was room for it; the parent reads it when all that the job held is gone."""
    try:
        pickle.dump(answer, file, pickle.HIGHEST_PROTOCOL)
        file.flush()
    except OSError:
        return False
    return True


def _gather(answers: dict[Connection, BinaryIO], progress: Progress | None) -> list[object]:
    results: dict[Connection, object] = {}
    shares = dict.fromkeys(answers, (0, 0))
    while len(results) < len(answers):
        for one in wait([each for each in answers if each not in results]):
            connection = cast("Connection", one)
            try:
                kind, value = connection.recv()
            except EOFError:
                raise WorkerError(
                    "a worker of the analysis was killed, perhaps for want of memory; "
                    "lint fewer targets at once"
                ) from None
            if kind == "written":
                with suppress(EOFError):
                    connection.recv()  # its end
                answers[connection].seek(0)
                results[connection] = pickle.load(answers[connection])
            elif kind == "answer":
                results[connection] = value
            elif kind == "error":
                raise value
            elif progress is not None:
                shares[connection] = value
                done, of = zip(*shares.values(), strict=True)
                progress(sum(done), sum(of))
    return [results[one] for one in answers]
