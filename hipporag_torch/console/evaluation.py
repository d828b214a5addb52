"""A run of questions, as a person reads it on a terminal."""

from collections.abc import Sequence

from hipporag_torch.console import console, table, warn
from hipporag_torch.console.rows import num_passages, show_line
from hipporag_torch.evaluation import Evaluation
from hipporag_torch.evaluation.expected import ExpectedRow
from hipporag_torch.index import Index
from hipporag_torch.reports import AddReport


def show_index(name: str, index: Index) -> None:
    """What was searched."""
    show_line(
        f"{name}: {num_passages(len(index.passages))}, {len(index.phrases):,} phrases, "
        f"{len(index.facts):,} facts, {index.graph.num_edges:,} edges"
    )


def show_evaluation(evaluation: Evaluation, ks: Sequence[int]) -> None:
    """Recall at both levels, MRR, the routes, and how well answers fit."""
    metrics = evaluation.metrics
    kinds = [f"{level}{kind}" for level in ("", "title/") for kind in ("recall", "all_recall")]
    rows = [[str(k), *(_cell(metrics, f"{kind}@{k}") for kind in kinds)] for k in ks]
    console.print(table("", ["k", "recall", "all recall", "title recall", "title all recall"], rows))
    routes = ", ".join(f"{route} {count}" for route, count in evaluation.routes.items())
    console.print(f"MRR {_cell(metrics, 'mrr')} (title {_cell(metrics, 'title/mrr')}); routes: {routes}")
    if "em" in metrics:
        console.print(f"answers: exact match {_cell(metrics, 'em')}, F1 {_cell(metrics, 'f1')}")


def show_expected(rows: Sequence[ExpectedRow]) -> None:
    """What was found beside what was published; nothing without that."""
    cells = [
        [
            row.metric,
            "–" if row.got is None else f"{row.got:.4f}",
            f"{row.low:.3f} to {row.high:.3f}",
            "–" if row.within is None else "yes" if row.within else "NO",
            row.source,
        ]
        for row in rows
    ]
    if cells:
        console.print(table("expected", ["metric", "found", "published", "within", "source"], cells))


def show_filled(report: AddReport, *, reads_facts: bool) -> None:
    """What a person should know about an add that was not all plain."""
    if report.dropped:
        console.print("dropped: " + ", ".join(f"{kind} {count:,}" for kind, count in report.dropped.items()))
    if report.truncated:
        console.print(f"{num_passages(report.truncated)} longer than the embedder reads; their ends are cut")
    if report.without_facts and reads_facts:
        console.print(
            f"{num_passages(report.without_facts)} state nothing that the extractor found; "
            "they are found by their vectors alone"
        )
    if report.failed:
        first, total = report.failed[0], report.passages_added + report.passages_known
        warn(
            f"{len(report.failed):,} of {total:,} passages have no extraction and are found "
            f"by their vectors alone; the first: {first.passage_id}, {first.reason}"
        )


def _cell(metrics: dict[str, float], name: str) -> str:
    return f"{metrics[name]:.4f}" if name in metrics else "–"
