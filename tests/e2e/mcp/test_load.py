"""32 clients that read while one indexes 500 passages through a slow model."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import pytest
from mcp import Client

from .lab import ROOT, call

READERS = 32
# What a model takes for a call; 500 passages then take 10 s or more.
SECONDS = 0.01
# What a client does between two questions.
PAUSE_SECONDS = 1.0
QUESTIONS = ("Who founded Northwind?", "What did Ada found?", "Who saw glacier7?")


@pytest.fixture
def url(directory: Path) -> Iterator[str]:
    """A server in a process of its own, so that the clients take none of its time."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "tests.e2e.mcp.lab", str(directory), str(SECONDS), str(port)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, cwd=ROOT, env=env) as server:
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert server.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
        server.terminate()


class Readers:
    """Clients that ask on and on; an error of any read ends the test."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.connected = 0
        self.stop = anyio.Event()
        self.taken: list[float] = []

    async def read(self, offset: int) -> None:
        async with Client(self._url) as client:
            await call(client, "retrieve", query=QUESTIONS[0], top_k=5)
            self.connected += 1
            await anyio.sleep(PAUSE_SECONDS * offset / READERS)
            while not self.stop.is_set():
                start = time.perf_counter()
                await call(client, "retrieve", query=QUESTIONS[offset % 3], top_k=5)
                self.taken.append(time.perf_counter() - start)
                await anyio.sleep(PAUSE_SECONDS)

    async def during(self, work: Callable[[], Awaitable[object]]) -> list[float]:
        """Seconds of the reads while `work` runs."""
        self.taken = []
        await work()
        return self.taken


def p95(taken: list[float]) -> float:
    return sorted(taken)[int(0.95 * len(taken))]


@pytest.mark.slow
@pytest.mark.anyio
async def test_reads_during_a_long_write_all_succeed_and_take_little_longer(
    url: str, record_property: Callable[[str, object], None]
) -> None:
    readers = Readers(url)
    async with Client(url) as writer, anyio.create_task_group() as tasks:
        await call(writer, "index", documents=[f"Ada founded Northwind{number}" for number in range(100)])
        for number in range(READERS):
            tasks.start_soon(readers.read, number)
        while readers.connected < READERS:
            await anyio.sleep(0.05)
        await anyio.sleep(2)
        rest = await readers.during(lambda: anyio.sleep(8))
        documents = [f"Tove saw glacier{number}" for number in range(500)]
        during = await readers.during(lambda: call(writer, "index", documents=documents))
        readers.stop.set()
        assert (await call(writer, "index_stats"))["passages"] == 600
        found = await call(writer, "retrieve", query="Who saw glacier7?", top_k=1)
        assert found["passages"][0]["text"] == "Tove saw glacier7"
    for name, taken in (("rest", rest), ("during", during)):
        record_property(f"reads_{name}", len(taken))
        record_property(f"p95_{name}_ms", round(p95(taken) * 1000, 1))
    assert len(during) > READERS
    assert p95(during) <= 3 * p95(rest), (p95(rest), p95(during), len(rest), len(during))
