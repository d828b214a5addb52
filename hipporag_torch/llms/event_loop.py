"""Asynchronous work behind a synchronous call, also where an event loop runs already, as in Jupyter."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Generic, TypeVar

Item = TypeVar("Item")
Put = Callable[[Item], Awaitable[None]]

_POLL_SECONDS = 0.01


def run_beside(
    produce: Callable[[Put[Item]], Awaitable[None]], consume: Callable[[Item], None], *, most_waiting: int
) -> None:
    """Run `produce` in a thread and an event loop of its own, and `consume` here with each item that it puts.

    At most about `most_waiting` items wait to be consumed; then `put` waits. An error of either side ends
    both and is raised. Ctrl-C ends the work, and what was put before is still consumed.
    """
    work = _Work(produce, most_waiting)
    with ThreadPoolExecutor(1, thread_name_prefix="hipporag-chat") as executor:
        future = executor.submit(lambda: asyncio.run(work.main()))
        future.add_done_callback(lambda _: work.ready.put(None))
        try:
            work.consume(consume)
        except KeyboardInterrupt:
            work.stop()
            work.consume(consume)
            raise
        finally:
            work.stop()
    future.result()


class _Work(Generic[Item]):
    """What both threads share. Items are put in a tuple, so that `None` alone means the end."""

    def __init__(self, produce: Callable[[Put[Item]], Awaitable[None]], most_waiting: int) -> None:
        self.ready: SimpleQueue[tuple[Item] | None] = SimpleQueue()
        self._produce = produce
        self._most_waiting = most_waiting
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopped = False

    async def main(self) -> None:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        # Looked at after the loop is known, as `stop` looks for the loop after it has set this.
        if not self._stopped:
            await self._produce(self._put)

    def consume(self, consume: Callable[[Item], None]) -> None:
        while (item := self.ready.get()) is not None:
            consume(*item)

    def stop(self) -> None:
        self._stopped = True
        if self._loop is None or self._loop.is_closed():
            return
        try:
            self._loop.call_soon_threadsafe(self._cancel)
        except RuntimeError:
            # It was closed in between: there is nothing left to stop.
            return

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _put(self, item: Item) -> None:
        while self.ready.qsize() >= self._most_waiting:
            await asyncio.sleep(_POLL_SECONDS)
        self.ready.put((item,))
