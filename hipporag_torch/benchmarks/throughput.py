"""Chat requests a second over an endpoint that takes a fixed time for each, and the memory of a batch."""

import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import torch

from hipporag_torch.benchmarks import chat_stub
from hipporag_torch.benchmarks.timing import Row
from hipporag_torch.chat import Message, Prompt
from hipporag_torch.errors import BackendError, ConfigError
from hipporag_torch.llms.openai import OpenAIChatModel
from hipporag_torch.protocols import Progress, no_progress

_PASSAGE = "The river Thames flows through London, the capital of the United Kingdom. " * 10
_LEAST_RATIO = 30.0


class ThroughputBenchmark:
    """Many requests in flight against one at a time, over the official SDK and a stub in its own process.

    latency_seconds: what the stub takes for each. concurrency: requests in flight.
    single_prompts: asked one at a time; many_prompts: asked with `concurrency` in flight; rounds: of each,
        the medians count.
    memory_prompts: sizes of the batches whose peak memory is measured, ascending: what Python holds beyond
        the prompts, in megabytes of 10⁶ bytes, replies included.

    `ratio` is of requests a second, for 64 in flight to be at least 30.
    """

    columns = ("what", "requests_per_second", "ratio", "peak_mb", "bytes_per_prompt", "reached")

    def __init__(
        self,
        *,
        device: torch.device,
        latency_seconds: float = 0.2,
        concurrency: int = 64,
        single_prompts: int = 20,
        many_prompts: int = 1280,
        rounds: int = 3,
        memory_prompts: Sequence[int] = (200, 2000),
    ) -> None:
        for name, count in (
            ("concurrency", concurrency),
            ("single_prompts", single_prompts),
            ("many_prompts", many_prompts),
            ("rounds", rounds),
            *(("memory_prompts", count) for count in memory_prompts),
        ):
            if count < 1:
                raise ConfigError(f"benchmark.{name} must be at least 1, got {count}")
        if not latency_seconds > 0:
            raise ConfigError(f"benchmark.latency_seconds must be above 0, got {latency_seconds}")
        if list(memory_prompts) != sorted(set(memory_prompts)):
            raise ConfigError(f"benchmark.memory_prompts must ascend, got {list(memory_prompts)}")
        self._latency, self._concurrency, self._rounds = latency_seconds, concurrency, rounds
        self._single, self._many, self._memory = single_prompts, many_prompts, list(memory_prompts)

    def run(self, progress: Progress = no_progress) -> list[Row]:
        """One row for one at a time, one for many in flight, one for each batch whose memory is measured."""
        rows: list[Row] = []
        with _stub(self._latency) as url:
            one, many = (
                OpenAIChatModel(model="stub", base_url=url, api_key_env=None, concurrency=number)
                for number in (1, self._concurrency)
            )
            # The first batch of a process pays for imports.
            many.reply(_prompts(1))
            slow, fast = [], []
            for number in range(self._rounds):
                slow.append(_per_second(one, self._single))
                fast.append(_per_second(many, self._many))
                progress("benchmark", number + 1, self._rounds + len(self._memory))
            ratio = median(fast) / median(slow)
            rows.append(_row("1 in flight", median(slow)))
            reached = ratio >= _LEAST_RATIO if self._concurrency == 64 else None
            rows.append(_row(f"{self._concurrency} in flight", median(fast), ratio=ratio, reached=reached))
            smallest = None
            for number, count in enumerate(self._memory):
                peak = _peak_bytes(many, count)
                row = _row(f"{count:,} prompts", None, peak_mb=peak / 1e6)
                if smallest is not None:
                    row["bytes_per_prompt"] = (peak - smallest[1]) / (count - smallest[0])
                smallest = smallest or (count, peak)
                rows.append(row)
                progress("benchmark", self._rounds + number + 1, self._rounds + len(self._memory))
        return rows


@contextmanager
def _stub(latency_seconds: float) -> Iterator[str]:
    command = [sys.executable, str(Path(chat_stub.__file__)), str(latency_seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port:
            raise BackendError(f"the stub server did not start: {' '.join(command)}")
        # Leaving the block closes its input, which ends it.
        yield f"http://127.0.0.1:{port}/v1"


def _prompts(count: int) -> list[Prompt]:
    return [(Message("user", f"{number}: {_PASSAGE}"),) for number in range(count)]


def _per_second(model: OpenAIChatModel, count: int) -> float:
    prompts = _prompts(count)
    start = time.perf_counter()
    replies = model.reply(prompts)
    seconds = time.perf_counter() - start
    if failed := [reply.error for reply in replies if reply.finish == "error"]:
        raise BackendError(f"{len(failed)} of {count} requests to the stub failed: {failed[0]}")
    return count / seconds


def _peak_bytes(model: OpenAIChatModel, count: int) -> int:
    prompts = _prompts(count)
    tracemalloc.start()
    try:
        model.reply(prompts)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _row(
    what: str,
    requests_per_second: float | None,
    *,
    ratio: float | None = None,
    peak_mb: float | None = None,
    reached: bool | None = None,
) -> Row:
    return {
        "what": what,
        "requests_per_second": requests_per_second,
        "ratio": ratio,
        "peak_mb": peak_mb,
        "bytes_per_prompt": None,
        "reached": reached,
    }
