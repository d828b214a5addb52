"""Fair timing: contenders take turns, and the median of the rounds counts."""

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch

Row = dict[str, Any]
"""One line of a benchmark's table: column → text or number."""

# A turn calls its contender again and again for so long: none is charged for the caches that others filled.
_TURN_SECONDS = 0.1


def interleaved_ms(
    contenders: Sequence[Callable[[], object]], *, rounds: int, device: torch.device
) -> list[float]:
    """Milliseconds per call of each contender: the median over `rounds` in which they take turns."""
    for contender in contenders:
        contender()
    measured: list[list[float]] = [[] for _ in contenders]
    for _ in range(rounds):
        for times, contender in zip(measured, contenders, strict=True):
            times.append(_turn_ms(contender, device))
    return [median(times) for times in measured]


def interleaved_seconds(contenders: Sequence[Callable[[int], object]], *, rounds: int) -> list[float]:
    """Seconds per call of each contender: the median over `rounds` in which they take turns.

    Each is called once a round, with the number of the round, and never to warm up: for what changes
    something by its call.
    """
    measured: list[list[float]] = [[] for _ in contenders]
    for number in range(rounds):
        for times, contender in zip(measured, contenders, strict=True):
            start = time.perf_counter()
            contender(number)
            times.append(time.perf_counter() - start)
    return [median(times) for times in measured]


def _turn_ms(contender: Callable[[], object], device: torch.device) -> float:
    calls, start = 0, time.perf_counter()
    while calls == 0 or time.perf_counter() - start < _TURN_SECONDS:
        contender()
        calls += 1
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    return (time.perf_counter() - start) / calls * 1e3
