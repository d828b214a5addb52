"""Asynchronous work beside a synchronous caller."""

import asyncio
import threading
import time

import pytest

from hipporag_torch.llms.event_loop import Put, run_beside


def test_items_are_consumed_where_the_caller_is_in_the_order_of_their_puts():
    threads: set[int] = set()
    got: list[int | None] = []

    async def produce(put: Put[int | None]) -> None:
        threads.add(threading.get_ident())
        for item in (3, None, 1):
            await put(item)

    run_beside(produce, got.append, most_waiting=1)
    assert got == [3, None, 1]
    assert threading.get_ident() not in threads


def test_a_slow_consumer_slows_the_producer():
    """What was paid for and waits to be taken is what a crash would lose."""
    put_so_far, ahead = 0, []

    async def produce(put: Put[int]) -> None:
        nonlocal put_so_far
        for number in range(20):
            await put(number)
            put_so_far += 1

    def consume(number: int) -> None:
        time.sleep(0.02)
        ahead.append(put_so_far - number)

    run_beside(produce, consume, most_waiting=2)
    assert max(ahead) <= 4


def test_an_error_of_the_producer_comes_after_what_it_put():
    got: list[int] = []

    async def produce(put: Put[int]) -> None:
        await put(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_beside(produce, got.append, most_waiting=1)
    assert got == [1]


def test_an_error_of_the_consumer_ends_the_producer():
    ended = threading.Event()

    async def produce(put: Put[int]) -> None:
        try:
            await put(1)
            await asyncio.sleep(60)
        finally:
            ended.set()

    def consume(item: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_beside(produce, consume, most_waiting=1)
    assert ended.is_set()
