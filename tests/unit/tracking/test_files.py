from dataclasses import replace
from pathlib import Path

import pytest

from hipporag_torch.errors import InputError
from hipporag_torch.tracking import FilesTracker, FinishedRun, RunStart, SeveralTrackers, tracked


def lines(start: RunStart) -> list[str]:
    return (start.directory / "progress.jsonl").read_text("utf-8").splitlines()


def test_each_step_is_a_line_as_soon_as_it_is_told(start: RunStart) -> None:
    tracker = FilesTracker()
    tracker.begin(start)
    assert lines(start) == []
    tracker.progress(32, {"recall@5": 0.5, "seconds": 1.25})
    assert lines(start) == ['{"questions": 32, "recall@5": 0.5, "seconds": 1.25}']
    tracker.progress(64, {"recall@5": 1 / 3})
    assert lines(start)[1:] == ['{"questions": 64, "recall@5": 0.3333333333333333}']


def test_a_run_that_goes_on_keeps_the_steps_that_it_goes_on_from(start: RunStart) -> None:
    killed = FilesTracker()
    killed.begin(start)
    for questions in (2, 4, 6):
        killed.progress(questions, {"mrr": questions / 8})
    with (start.directory / "progress.jsonl").open("a") as file:
        file.write('{"questions": 8, "mr')
    tracker = FilesTracker()
    with tracked(tracker, replace(start, done=4)):
        tracker.progress(6, {"mrr": 0.0})
        tracker.progress(8, {"mrr": 1.0})
    assert lines(start) == [
        '{"questions": 2, "mrr": 0.25}',
        '{"questions": 4, "mrr": 0.5}',
        '{"questions": 6, "mrr": 0.0}',
        '{"questions": 8, "mrr": 1.0}',
    ]


def test_a_new_run_in_the_same_folder_begins_anew(start: RunStart, finished: FinishedRun) -> None:
    tracker = FilesTracker()
    for value in (0.25, 0.75):
        tracker.begin(start)
        tracker.progress(2, {"mrr": value})
        tracker.finish(finished)
    assert lines(start) == ['{"questions": 2, "mrr": 0.75}']


def test_a_damaged_step_is_named(start: RunStart) -> None:
    start.directory.mkdir()
    (start.directory / "progress.jsonl").write_text('{"questions": 2}\n{"mrr": 1}\n')
    with pytest.raises(
        InputError, match=r"progress\.jsonl, line 2 is no step of a run: '{\"mrr\": 1}'; delete"
    ):
        FilesTracker().begin(replace(start, done=4))


def test_values_must_be_finite(start: RunStart) -> None:
    tracker = FilesTracker()
    tracker.begin(start)
    with pytest.raises(InputError, match=r"progress\.jsonl cannot hold {'mrr': nan}"):
        tracker.progress(2, {"mrr": float("nan")})
    assert lines(start) == []


def test_why_a_run_failed_is_there_until_it_begins_again(start: RunStart) -> None:
    tracker = FilesTracker()
    failed = start.directory / "failed.txt"
    with pytest.raises(ZeroDivisionError), tracked(tracker, start):
        1 / 0  # noqa: B018
    assert failed.read_text() == "ZeroDivisionError: division by zero\n"
    with tracked(tracker, start):
        assert not failed.exists()


def test_a_finished_run_does_not_fail(start: RunStart, finished: FinishedRun) -> None:
    tracker = FilesTracker()
    tracker.begin(start)
    tracker.finish(finished)
    tracker.fail("an error while showing the results")
    assert not (start.directory / "failed.txt").exists()


def test_a_step_without_a_run_is_refused() -> None:
    with pytest.raises(InputError, match="call begin before progress"):
        FilesTracker().progress(1, {})


class Refusing(FilesTracker):
    """Cannot begin."""

    def begin(self, run: RunStart) -> None:
        raise InputError("no server")


def test_where_one_tracker_cannot_begin_the_others_fail(start: RunStart, tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="no server"),
        tracked(SeveralTrackers(FilesTracker(), Refusing()), start),
    ):
        pass
    assert (start.directory / "failed.txt").read_text() == "InputError: no server\n"
