"""Timing of works that change something."""

from hipporag_torch.benchmarks.timing import interleaved_seconds


def test_works_take_turns_once_a_round_without_a_warm_up() -> None:
    calls: list[tuple[str, int]] = []
    seconds = interleaved_seconds(
        [lambda number: calls.append(("a", number)), lambda number: calls.append(("b", number))], rounds=3
    )
    assert calls == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert len(seconds) == 2
