"""Writes wait for one another, can be watched and cancelled, and end when the service does."""

import threading
from collections.abc import Iterator

import pytest

from hipporag_torch.errors import HippoRAGError
from hipporag_torch.protocols import Progress
from hipporag_torch.service.write_queue import Advance, ServiceClosed, WriteQueue, WriteStopped


class Slow:
    """Work that goes on step by step until `finish` is set."""

    def __init__(self) -> None:
        self.began, self.finish = threading.Event(), threading.Event()

    def __call__(self, progress: Progress) -> str:
        self.began.set()
        steps = 0
        while not self.finish.wait(0.005):
            steps += 1
            progress("step", steps, steps + 1)
        return "done"


@pytest.fixture
def queue() -> Iterator[WriteQueue]:
    queue = WriteQueue(most_waiting=2)
    yield queue
    queue.close()


def test_writes_run_in_order_and_one_at_a_time(queue: WriteQueue):
    slow, order = Slow(), []
    first = queue.submit("first", slow)
    assert slow.began.wait(5)
    second = queue.submit("second", lambda _: order.append(2))
    third = queue.submit("third", lambda _: order.append(3))
    assert queue.running is first
    assert queue.num_waiting == 2
    assert not order
    slow.finish.set()
    third.result(5)
    assert first.result() == "done"
    assert second.is_done
    assert order == [2, 3]


def test_a_cancelled_write_that_waits_is_never_begun(queue: WriteQueue):
    slow, begun = Slow(), []
    queue.submit("first", slow)
    assert slow.began.wait(5)
    waiting = queue.submit("second", lambda _: begun.append(2))
    waiting.cancel()
    assert queue.num_waiting == 0
    with pytest.raises(WriteStopped, match="before it began"):
        waiting.result()
    slow.finish.set()
    queue.submit("third", lambda _: None).result(5)
    assert not begun


def test_a_cancelled_write_that_runs_stops_at_its_next_step(queue: WriteQueue):
    slow = Slow()
    running = queue.submit("first", slow)
    assert slow.began.wait(5)
    running.cancel()
    with pytest.raises(WriteStopped, match="first was stopped"):
        running.result(5)
    assert queue.submit("second", lambda _: "still here").result(5) == "still here"


def test_the_error_of_a_write_is_its_own(queue: WriteQueue):
    def failing(_: Progress) -> None:
        raise HippoRAGError("no")

    broken = queue.submit("first", failing)
    with pytest.raises(HippoRAGError, match="no"):
        broken.result(5)
    assert queue.submit("second", lambda _: 2).result(5) == 2


def test_more_than_may_wait_are_refused_but_for_what_is_the_services_own(queue: WriteQueue):
    slow = Slow()
    queue.submit("first", slow)
    assert slow.began.wait(5)
    waiting = [queue.submit("next", lambda _: None) for _ in range(2)]
    with pytest.raises(HippoRAGError, match="2 writes are waiting already"):
        queue.submit("one more", lambda _: None)
    own = queue.submit("refresh", lambda _: "own", own=True)
    waiting[0].cancel()
    waiting[1].cancel()
    slow.finish.set()
    assert own.result(5) == "own"


def test_closing_stops_what_runs_cancels_what_waits_and_refuses_the_rest():
    queue, slow, begun = WriteQueue(most_waiting=9), Slow(), []
    running = queue.submit("first", slow)
    assert slow.began.wait(5)
    waiting = queue.submit("second", lambda _: begun.append(2))
    queue.close()
    for write in (running, waiting):
        with pytest.raises(WriteStopped):
            write.result(0)
    assert not begun
    with pytest.raises(ServiceClosed, match="shutting down"):
        queue.submit("third", lambda _: None)


def test_progress_counts_on_over_the_stages():
    steps = [
        ("extract", 1, 2),
        ("extract", 2, 2),
        ("embed", 0, 3),
        ("embed", 3, 3),
        ("embed", 1, 1),
        ("sync", 0, 0),
    ]
    advance, seen = Advance(), []
    for step in steps:
        advance = advance.then(*step)
        seen.append((advance.done, advance.total))
    assert seen == [(1, 2), (2, 2), (2, 5), (5, 5), (6, 6), (6, 6)]
