"""Several trackers as one."""

from collections.abc import Mapping, Sequence

from hipporag_torch.tracking.files import FilesTracker
from hipporag_torch.tracking.protocol import FinishedRun, RunStart, Tracker
from hipporag_torch.tracking.wandb import Mode, WandbTracker


class SeveralTrackers:
    """Tells each of `trackers` in turn. If one raises, the exception goes on at once."""

    def __init__(self, *trackers: Tracker) -> None:
        self._trackers = trackers

    @property
    def note(self) -> str:
        """Their notes, a line each."""
        return "\n".join(tracker.note for tracker in self._trackers if tracker.note)

    def begin(self, run: RunStart) -> None:
        for tracker in self._trackers:
            tracker.begin(run)

    def progress(self, questions: int, values: Mapping[str, float]) -> None:
        for tracker in self._trackers:
            tracker.progress(questions, values)

    def finish(self, run: FinishedRun) -> None:
        for tracker in self._trackers:
            tracker.finish(run)

    def fail(self, reason: str) -> None:
        for tracker in self._trackers:
            tracker.fail(reason)


def files_and_wandb(
    *,
    project: str = "hipporag-torch",
    entity: str | None = None,
    group: str | None = None,
    name: str | None = None,
    tags: Sequence[str] = (),
    mode: Mode = "auto",
    predictions: int | None = None,
) -> SeveralTrackers:
    """Plain files, and W&B beside them. The options are those of `WandbTracker`."""
    wandb = WandbTracker(
        project=project,
        entity=entity,
        group=group,
        name=name,
        tags=tags,
        mode=mode,
        predictions=predictions,
    )
    return SeveralTrackers(FilesTracker(), wandb)
