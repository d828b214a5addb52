"""The pictures of a finished run, in its folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hipporag_torch.errors import ConfigError
from hipporag_torch.evaluation.curves import recall_curve
from hipporag_torch.evaluation.metrics import metric_names
from hipporag_torch.evaluation.run import Evaluation
from hipporag_torch.index import Index
from hipporag_torch.tracking.protocol import Picture
from hipporag_torch.tracking.worst import draw_worst, require_drawing
from hipporag_torch.types import Ranking
from hipporag_torch.viz.curves import draw_curves
from hipporag_torch.viz.stages import draw_stages


@dataclass(frozen=True)
class PictureOptions:
    """Which pictures are drawn.

    charts: recall@k with its confidence band, and the seconds by stage. worst: of how many questions the
    sub-graph is drawn, at least 0; by: the metric by which they are the worst.

    Raises `ConfigError` for other values, and if something is to be drawn where matplotlib is not installed:
    before the run, not after it.
    """

    charts: bool = True
    worst: int = 5
    by: str = "recall@5"

    def __post_init__(self) -> None:
        if type(self.charts) is not bool:
            raise ConfigError(f"pictures.charts must be true or false, got {self.charts!r}")
        if type(self.worst) is not int or self.worst < 0:
            raise ConfigError(f"pictures.worst must be a whole number of at least 0, got {self.worst!r}")
        if self.charts or self.worst:
            require_drawing()

    def require_metric(self, ks: Sequence[int]) -> None:
        """Raise `ConfigError` unless a run with these cut-offs knows the metric `by`."""
        if self.by not in metric_names(ks):
            raise ConfigError(f"pictures.by must be one of {', '.join(metric_names(ks))}, got {self.by!r}")


def draw_pictures(
    options: PictureOptions,
    evaluation: Evaluation,
    *,
    name: str,
    seconds: Mapping[str, float],
    index: Index,
    retrieve: Callable[[str], Ranking],
    directory: Path,
) -> tuple[Picture, ...]:
    """Draw what `options` ask for into `directory`; what the run has no figures for is left out.

    retrieve: question → traced ranking of `index`; asked for the worst questions.
    """
    pictures: list[Picture] = []
    scored = {name for row in evaluation.rows for name in row.metrics}
    if options.charts and any(metric.startswith("recall@") for metric in scored):
        path = directory / "curves.png"
        draw_curves([recall_curve(evaluation, name)], path, title=f"Recall of {_questions(evaluation.rows)}")
        pictures.append(Picture("recall@k, with the 95 % interval of its mean", path))
    if options.charts and seconds:
        path = directory / "timings.png"
        draw_stages(seconds, path, title="Seconds by stage")
        pictures.append(Picture("seconds by stage", path))
    if options.worst and options.by in scored:
        pictures += draw_worst(
            evaluation.rows,
            index=index,
            retrieve=retrieve,
            directory=directory,
            metric=options.by,
            count=options.worst,
        )
    return tuple(pictures)


def _questions(rows: Sequence[object]) -> str:
    return f"{len(rows):,} question{'' if len(rows) == 1 else 's'}"
