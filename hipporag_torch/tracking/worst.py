"""Pictures of the questions that a run did worst on."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.evaluation.rows import QuestionRow
from hipporag_torch.explanation import explain
from hipporag_torch.index import Index
from hipporag_torch.tracking.protocol import Picture
from hipporag_torch.types import Ranking
from hipporag_torch.viz.html import write_html
from hipporag_torch.viz.png import draw_png

WORST = "worst"


def require_drawing() -> None:
    """Raise `ConfigError` where matplotlib is not installed; call it before the run, not at its end."""
    if find_spec("matplotlib") is None:
        raise ConfigError(
            "the pictures of a run need matplotlib, which is not installed; pip install "
            "'hipporag-torch[viz]', or do without them: pictures.charts=false pictures.worst=0"
        )


def worst_rows(rows: Sequence[QuestionRow], *, metric: str, count: int = 5) -> tuple[QuestionRow, ...]:
    """At most `count` rows with the lowest `metric`, the lowest first; of equal ones the earlier question.

    Rows without it, which have no gold, are left out. Raises `InputError` for a metric that no row has.
    """
    if count < 0:
        raise InputError(f"count must be at least 0, got {count}")
    scored = [row for row in rows if metric in row.metrics]
    if rows and not scored:
        known = list(dict.fromkeys(name for row in rows for name in row.metrics))
        raise InputError(f"no question has the metric {metric!r}; there are {', '.join(known) or 'none'}")
    # sorted() keeps the order of equals.
    return tuple(sorted(scored, key=lambda row: row.metrics[metric])[:count])


def draw_worst(
    rows: Sequence[QuestionRow],
    *,
    index: Index,
    retrieve: Callable[[str], Ranking],
    directory: str | Path,
    metric: str = "recall@5",
    count: int = 5,
) -> tuple[Picture, ...]:
    """Draw the sub-graph of each of the worst questions as `directory`/worst/01.png and .html, and so on.

    retrieve: question → ranking of `index`, traced; as many passages are drawn as it gives. A question that
    did not walk is drawn with its passages alone. Raises as `worst_rows` and `explain` do, and `ConfigError`
    without matplotlib.
    """
    require_drawing()
    folder = Path(directory) / WORST
    pictures: list[Picture] = []
    for number, row in enumerate(worst_rows(rows, metric=metric, count=count), start=1):
        folder.mkdir(parents=True, exist_ok=True)
        explanation = explain(index, retrieve(row.question))
        png, html = folder / f"{number:02}.png", folder / f"{number:02}.html"
        draw_png(explanation, png)
        write_html(explanation, html)
        pictures.append(Picture(f"{metric} {row.metrics[metric]:.2f}: {row.question}", png, html))
    return tuple(pictures)
