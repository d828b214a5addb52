"""Fair timing: contenders take turns, and the median of the rounds counts."""

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch

Row = dict[str, Any]
"""One line of a benchmark's table: column → text or number."""


def interleaved_ms(
    contenders: Sequence[Callable[[], object]], *, rounds: int, device: torch.device
) -> list[float]:
    """Median milliseconds of each contender over `rounds` in which they take turns, after one unmeasured."""
    measured: list[list[float]] = [[] for _ in contenders]
    for number in range(rounds + 1):
        for times, contender in zip(measured, contenders, strict=True):
            start = time.perf_counter()
            contender()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            if number > 0:
                times.append((time.perf_counter() - start) * 1e3)
    return [median(times) for times in measured]
