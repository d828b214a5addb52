"""Writes, one after the other in a thread of their own; each can be waited for, watched and cancelled."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from hipporag_torch.errors import HippoRAGError
from hipporag_torch.protocols import Progress

Result = TypeVar("Result")
Work = Callable[[Progress], Result]


class WriteStopped(Exception):  # noqa: N818
    """A write was told to stop before its commit: nothing of it is in the index.

    Not one of the library's errors, so that nothing takes it for a failed passage or file.
    """


class ServiceClosed(HippoRAGError):  # noqa: N818
    """The service is shutting down, so the call was not done."""


@dataclass(frozen=True)
class Advance:
    """How far a write is. `done` and `total` count on over its stages, so `done` never falls."""

    stage: str = ""
    stage_done: int = 0
    stage_total: int = 0
    done: int = 0
    total: int = 0

    def then(self, stage: str, done: int, total: int) -> "Advance":
        """This, and `progress(stage, done, total)`."""
        before = self.done - self.stage_done
        if stage != self.stage or done < self.stage_done:
            before = self.done
        return Advance(stage, done, total, before + done, before + max(total, done))


class Write(Generic[Result]):
    """A write that waits, runs or has run. own: it is the service's, no caller's."""

    def __init__(self, action: str, work: Work[Result], *, own: bool = False) -> None:
        self.action, self.own = action, own
        self.advance = Advance()
        self._work = work
        self._future: Future[Result] = Future()
        self._stop = threading.Event()

    @property
    def is_done(self) -> bool:
        return self._future.done()

    def cancel(self) -> None:
        """Drop it from the queue; if it runs, stop it at its next step, unless it has committed by then."""
        self._stop.set()
        self._future.cancel()

    def result(self, timeout: float | None = None) -> Result:
        """What it gave; waits for it. Raises what it raised, and `WriteStopped` if it was cancelled."""
        try:
            return self._future.result(timeout)
        except CancelledError:
            raise WriteStopped(f"{self.action} was cancelled before it began") from None

    def run(self) -> None:
        """Do it here, unless it was cancelled."""
        if not self._future.set_running_or_notify_cancel():
            return
        try:
            self._progress("", 0, 0)
            self._future.set_result(self._work(self._progress))
        except BaseException as error:  # noqa: BLE001  it is raised where the result is asked for
            self._future.set_exception(error)

    def _progress(self, stage: str, done: int, total: int) -> None:
        if self._stop.is_set():
            raise WriteStopped(f"{self.action} was stopped; what it had paid for is kept for the next try")
        self.advance = self.advance.then(stage, done, total)


class WriteQueue:
    """Runs writes in the order in which they were submitted.

    most_waiting: writes that may wait, at least 1; one more is refused.
    """

    def __init__(self, *, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._waiting: deque[Write[Any]] = deque()
        self._running: Write[Any] | None = None
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="hipporag-writes", daemon=True)
        self._thread.start()

    @property
    def running(self) -> Write[Any] | None:
        return self._running

    @property
    def num_waiting(self) -> int:
        """Callers' writes that wait."""
        with self._changed:
            return self._num_waiting()

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs or waits."""
        with self._changed:
            return self._running is None and not self._waiting

    def submit(self, action: str, work: Work[Result], *, own: bool = False) -> Write[Result]:
        """Queue `work`. own: it is the service's, so it is queued even if no more may wait."""
        write = Write(action, work, own=own)
        with self._changed:
            if self._closed:
                raise ServiceClosed(f"the service is shutting down, so {action} was not done; call it again")
            waiting = self._num_waiting()
            if waiting >= self._most_waiting and not own:
                raise HippoRAGError(
                    f"{waiting} writes are waiting already, at most {self._most_waiting} may; try again later"
                )
            self._waiting.append(write)
            self._changed.notify()
        return write

    def _num_waiting(self) -> int:
        return sum(not write.is_done and not write.own for write in self._waiting)

    def close(self, *, wait: bool = True) -> None:
        """Cancel what waits, stop what runs (it commits or is rolled back), and wait for that."""
        with self._changed:
            self._closed = True
            for write in self._waiting:
                write.cancel()
            if self._running is not None:
                self._running.cancel()
            self._changed.notify()
        if wait and threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._running = None
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                self._running = self._waiting.popleft()
            self._running.run()
