"""An evaluation that is recorded as it goes: kept question by question, tracked, written, drawn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hipporag_torch.evaluation import Evaluation, QuestionRow, write_run
from hipporag_torch.evaluation.draft import Draft
from hipporag_torch.evaluation.run import Keep
from hipporag_torch.tracking import FinishedRun, Picture, RunningMeans, RunStart, Tracker, tracked
from hipporag_torch.tracking.machine import machine_facts

Ask = Callable[[Sequence[QuestionRow], Keep], Evaluation]
"""(rows of questions that were asked before, what keeps the others' rows) → the whole run."""


def recorded(
    ask: Ask,
    *,
    start: RunStart,
    draft: Draft,
    tracker: Tracker,
    device: str,
    extra: Callable[[Evaluation], Mapping[str, Any]],
    draw: Callable[[Evaluation], tuple[Picture, ...]],
    say: Callable[[str], None],
) -> Evaluation:
    """Run `ask` and leave the run in its folder, `start.directory`.

    Each batch is on the disk before the next is asked: wherever the run is stopped, its next call goes on
    behind the last whole batch of `draft`. The tracker is told of the course, and of the end, however it
    comes.

    extra: what metrics.json holds beside the metrics; see `write_run`. draw: makes the pictures. device:
    whose memory is told. say: told where the run is recorded, if the tracker has a note of that.
    """
    done = draft.rows()
    draft.begin(done)
    with tracked(tracker, replace(start, done=len(done))):
        if tracker.note:
            say(tracker.note)
        running = RunningMeans(tracker, done=done, device=device)

        def keep(rows: Sequence[QuestionRow]) -> None:
            draft.keep(rows)
            running.keep(rows)

        evaluation = ask(done, keep)
        summary = {**extra(evaluation), "resumed": {"questions": len(done)}}
        pictures = draw(evaluation)
        write_run(start.directory, evaluation, extra=summary)
        tracker.finish(
            FinishedRun(
                evaluation=evaluation, extra=summary, pictures=pictures, machine=machine_facts(device)
            )
        )
        draft.done()
    return evaluation
