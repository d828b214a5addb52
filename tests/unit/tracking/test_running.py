from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipporag_torch.evaluation.rows import QuestionRow
from hipporag_torch.evaluation.run import means
from hipporag_torch.tracking import FinishedRun, RunningMeans, RunStart

from .conftest import ROWS

METRICS = st.dictionaries(st.sampled_from(["recall@5", "mrr", "em"]), st.floats(0, 1))


class Told:
    """A tracker that keeps what it is told."""

    note = ""

    def __init__(self) -> None:
        self.steps: list[tuple[int, Mapping[str, float]]] = []

    def begin(self, run: RunStart) -> None: ...

    def progress(self, questions: int, values: Mapping[str, float]) -> None:
        self.steps.append((questions, values))

    def finish(self, run: FinishedRun) -> None: ...

    def fail(self, reason: str) -> None: ...


def test_a_metric_is_the_mean_of_those_that_have_it() -> None:
    told = Told()
    running = RunningMeans(told)
    running.keep(ROWS[:1])
    running.keep(ROWS[1:])
    assert [questions for questions, _ in told.steps] == [1, 3]
    first, last = (values for _, values in told.steps)
    assert (first["recall@5"], last["recall@5"]) == (1.0, 0.75)
    assert (first["em"], last["em"]) == (0.0, 0.0)
    assert 0 <= first["seconds"] <= last["seconds"] < 60
    assert 1 < last["rss_bytes"] <= last["peak_rss_bytes"]


def test_rows_of_an_earlier_run_count() -> None:
    told = Told()
    RunningMeans(told, done=ROWS[:1]).keep(ROWS[2:])
    ((questions, values),) = told.steps
    assert (questions, values["recall@1"]) == (2, 0.25)


@given(rows=st.lists(METRICS, max_size=12), cut=st.integers(0, 12))
def test_the_last_means_are_the_runs(rows: list[dict[str, float]], cut: int) -> None:
    made = [QuestionRow(f"q{i}", "?", "graph", (), (), (), (), m) for i, m in enumerate(rows)]
    running = RunningMeans(Told(), done=made[:cut])
    running.keep(made[cut:])
    of_run = means(made)
    assert running.means == pytest.approx({name: of_run[name] for name in running.means})
    assert running.means.keys() == {name for row in rows for name in row}
