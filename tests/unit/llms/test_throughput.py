"""The benchmark of chat requests, small."""

import pytest
import torch

from hipporag_torch.benchmarks.throughput import ThroughputBenchmark
from hipporag_torch.errors import ConfigError


def test_many_in_flight_are_faster_than_one_at_a_time():
    steps: list[tuple[str, int, int]] = []
    benchmark = ThroughputBenchmark(
        device=torch.device("cpu"),
        latency_seconds=0.1,
        concurrency=8,
        single_prompts=3,
        many_prompts=24,
        rounds=1,
        memory_prompts=[5, 20],
    )
    one, many, few, most = benchmark.run(lambda *step: steps.append(step))
    assert all(set(row) == set(benchmark.columns) for row in (one, many, few, most))
    assert 0 < one["requests_per_second"] < 10
    assert many["ratio"] == pytest.approx(many["requests_per_second"] / one["requests_per_second"])
    assert many["ratio"] > 2
    assert many["reached"] is None, "the target is stated for 64"
    assert few["peak_mb"] > 0
    assert most["bytes_per_prompt"] == pytest.approx((most["peak_mb"] - few["peak_mb"]) * 1e6 / 15)
    assert steps == [("benchmark", done, 3) for done in (1, 2, 3)]


@pytest.mark.parametrize(
    "options",
    [
        {"rounds": 0},
        {"concurrency": 0},
        {"latency_seconds": 0},
        {"memory_prompts": [5, 5]},
        {"many_prompts": 0},
    ],
)
def test_options_out_of_range(options: dict[str, int]):
    with pytest.raises(ConfigError, match=f"benchmark.{next(iter(options))} must"):
        ThroughputBenchmark(device=torch.device("cpu"), **options)
