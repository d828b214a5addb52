"""Compare evaluations of the same questions: python scripts/compare.py RUN_A RUN_B [RUN_C ...]"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from rich.markup import escape

from hipporag_torch.config import conf_dir, flag, require_known_keys
from hipporag_torch.console import clean_errors, console, table, warn
from hipporag_torch.console.rows import show_line
from hipporag_torch.errors import ConfigError
from hipporag_torch.evaluation import Comparison, QuestionPair, RunTable, read_run
from hipporag_torch.evaluation.compare import shared_metrics
from hipporag_torch.evaluation.curves import curve_of
from hipporag_torch.evaluation.differences import Differences, QuestionDifference, find_differences
from hipporag_torch.evaluation.markdown import bare, markdown_table, outward, short_metric, table_columns
from hipporag_torch.evaluation.run_folders import find_runs, run_names
from hipporag_torch.viz.curves import draw_curves
from hipporag_torch.viz.png import require_matplotlib

RUNS: list[str] = []
# Of the seeds that one run has alone.
LISTED_SEEDS = 4


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="compare")
def main(cfg: DictConfig) -> None:
    with clean_errors():
        require_known_keys(cfg, "compare")
        run(cfg, RUNS, Path(HydraConfig.get().runtime.output_dir))


def run(cfg: DictConfig, given: Sequence[str], directory: Path) -> None:
    if flag(cfg, "png"):
        require_matplotlib()
    folders, unfinished = find_runs(given)
    if len(folders) < 2:
        raise ConfigError(
            f"two folders are needed, got {list(given)}: python scripts/compare.py RUN_A RUN_B [RUN_C ...], "
            "or a folder that holds several runs"
        )
    names = run_names(folders, texts(cfg, "names"))
    runs = {name: read_run(folder) for name, folder in zip(names, folders, strict=True)}
    for folder in unfinished:
        warn(f"{folder} is left out: it holds no metrics.json, so it is not a finished run")
    compared = RunTable(runs, resamples=cfg.resamples, seed=cfg.seed, confidence=cfg.confidence)
    columns = table_columns(compared, texts(cfg, "columns"))
    first, *others = names
    metrics = texts(cfg, "metrics")
    comparisons = {
        name: [
            compared.compare(first, name, metric)
            for metric in (shared_metrics(runs[first], runs[name]) if metrics is None else metrics)
        ]
        for name in others
    }
    shown = {name: compared.compare(first, name, cfg.show) for name in others}
    differences = {name: find_differences(compared, first, name, cfg.show) for name in others}
    record = all_of_it(compared, folders, comparisons, differences, cfg.show)
    content = json.dumps(record, ensure_ascii=False, indent=1)
    (directory / "comparison.json").write_text(content + "\n", encoding="utf-8")
    (directory / "table.md").write_text(markdown_table(compared, columns, cfg.show), encoding="utf-8")
    drawn = cfg.png and draw(compared, directory / "comparison.png")
    if len(names) == 2:
        show_two(cfg, folders, comparisons[others[0]], shown[others[0]], differences[others[0]])
    else:
        show_many(compared, folders, columns, shown)
    written = ["comparison.json", "table.md", *(["comparison.png"] if drawn else [])]
    show_line(f"\nwritten to {directory}: {', '.join(written)}")


def texts(cfg: DictConfig, key: str) -> list[str] | None:
    """A list of texts, or None for null."""
    value = OmegaConf.select(cfg, key)
    if value is not None and not OmegaConf.is_list(value):
        raise ConfigError(f"{key} must be a list such as '{key}=[one,two]', got {value!r:.80}")
    return None if value is None else [str(item) for item in value]


def draw(compared: RunTable, path: Path) -> bool:
    """Whether there was something to draw: questions without gold passages have no recall."""
    curves = [curve for name in compared.names if (curve := curve_of(compared, name))]
    if curves:
        draw_curves(curves, path, title=f"recall@k with {100 * compared.confidence:.4g} % intervals")
    return bool(curves)


def all_of_it(
    compared: RunTable,
    folders: Sequence[Path],
    comparisons: Mapping[str, Sequence[Comparison]],
    differences: Mapping[str, Differences],
    metric: str,
) -> dict[str, Any]:
    """What comparison.json holds; both mappings are by the run that is compared with the first."""
    first = compared.names[0]
    return {
        "runs": [
            run_record(compared, name, folder) for name, folder in zip(compared.names, folders, strict=True)
        ],
        "resamples": compared.resamples,
        "seed": compared.seed,
        "confidence": compared.confidence,
        "questions": {row.id: row.question for row in compared.rows(first)},
        "comparisons": [
            comparison_record(first, name, comparison)
            for name, of_run in comparisons.items()
            for comparison in of_run
        ],
        "differences": [
            {"a": first, "b": name, "metric": metric, **asdict(of_run)}
            for name, of_run in differences.items()
        ],
    }


def run_record(compared: RunTable, name: str, folder: Path) -> dict[str, Any]:
    means = {metric: compared.mean(name, metric) for metric in compared.metrics_of(name)}
    return {
        "name": name,
        "folder": str(folder),
        "metrics": {metric: asdict(mean) for metric, mean in means.items() if mean},
    }


def comparison_record(a: str, b: str, comparison: Comparison) -> dict[str, Any]:
    """The questions' texts stand once in the file; those that are equal are ids alone."""

    def values(pairs: Sequence[QuestionPair]) -> list[dict[str, Any]]:
        return [{"id": pair.id, "a": pair.a, "b": pair.b} for pair in pairs]

    return {
        "a": a,
        "b": b,
        **{key: value for key, value in vars(comparison).items() if key not in ("won", "lost", "equal")},
        "won": values(comparison.won),
        "lost": values(comparison.lost),
        "equal": [pair.id for pair in comparison.equal],
    }


def show_two(
    cfg: DictConfig,
    folders: Sequence[Path],
    comparisons: Sequence[Comparison],
    shown: Comparison,
    differences: Differences,
) -> None:
    console.print(escape(f"A {folders[0]}\nB {folders[1]}\n"), soft_wrap=True)
    rows = [
        [c.metric, f"{c.mean_a:.3f}", f"{c.mean_b:.3f}", *signed(c), *shares(c)]
        for c in sorted(comparisons, key=lambda c: _natural(c.metric))
    ]
    columns = ["metric", "A", "B", "B − A", "low", "high", "B > A", "won", "lost"]
    title = f"B against A, {shown.questions} questions; low and high bound B − A at {cfg.confidence:.0%}"
    console.print(table(title, columns, rows))
    show_groups(differences, cfg.show)
    for name, questions in (("won", differences.won), ("lost", differences.lost)):
        show_questions(name, questions, cfg.show, cfg.show_questions)


def show_many(
    compared: RunTable, folders: Sequence[Path], columns: Sequence[str], shown: Mapping[str, Comparison]
) -> None:
    width = max(map(len, compared.names))
    for name, folder in zip(compared.names, folders, strict=True):
        show_line(f"{name:{width}}  {folder}")
    console.print()
    cells = [[name, *(mean_lines(compared, name, metric) for metric in columns)] for name in compared.names]
    title = f"means, and their intervals at {compared.confidence:.0%}"
    console.print(table(title, ["run", *map(short_metric, columns)], cells))
    first, metric = compared.names[0], next(iter(shown.values())).metric
    rows = [[name, f"{c.mean_b:.3f}", *signed(c), *shares(c)] for name, c in shown.items()]
    title = f"{metric} against {first}, {next(iter(shown.values())).mean_a:.3f}; low and high bound Δ"
    console.print(table(escape(title), ["run", metric, "Δ", "low", "high", "Δ > 0", "won", "lost"], rows))
    show_line("where and why they differ: in comparison.json, or compare two of them")


def mean_lines(compared: RunTable, name: str, metric: str) -> str:
    """`.765` over `.70–.83`: so that eight metrics stand side by side."""
    mean = compared.mean(name, metric)
    return f"{bare(mean.mean, 3)}\n{'–'.join(outward(mean))}" if mean else "–"


def signed(c: Comparison) -> list[str]:
    return [f"{value:+.3f}" for value in (c.difference, c.low, c.high)]


def shares(c: Comparison) -> list[str]:
    return [f"{c.share_positive:.0%}", str(len(c.won)), str(len(c.lost))]


def _natural(metric: str) -> tuple[str, int]:
    """Passages before titles, and recall@2 before recall@10."""
    name, _, k = metric.partition("@")
    return name, int(k or 0)


def show_groups(differences: Differences, metric: str) -> None:
    """Those divisions that divide the questions at all."""
    rows = [
        [
            division if number == 0 else "",
            group.name,
            str(group.questions),
            str(group.won),
            str(group.lost),
            f"{group.difference:+.3f}",
        ]
        for division, groups in differences.groups.items()
        if len(groups) > 1
        for number, group in enumerate(groups)
    ]
    if rows:
        title = f"where they differ by {escape(metric)}; B − A is the mean of the group"
        console.print(table(title, ["by", "", "questions", "won", "lost", "B − A"], rows, text_columns=2))


def show_questions(name: str, questions: Sequence[QuestionDifference], metric: str, limit: int) -> None:
    console.print(f"\n[bold]{name}[/] by {escape(metric)}: {len(questions)}")
    for question in questions[:limit]:
        show_line(f"  {question.a:.2f} → {question.b:.2f}  {question.question}")
        for line in why(question):
            show_line(f"               {line}")
    if len(questions) > limit:
        console.print(f"  … and {len(questions) - limit} more; show_questions=N lists more")


def why(question: QuestionDifference) -> list[str]:
    """What is known to differ between the two ways, in a line or two."""
    ranks = [
        ", ".join("–" if r is None else str(r) for r in rs) for rs in (question.ranks_a, question.ranks_b)
    ]
    facts = [f"gold at {ranks[0]} → {ranks[1]}"] if ranks[0] or ranks[1] else []
    if question.route_a != question.route_b:
        facts.append(f"route {question.route_a} → {question.route_b}")
    if question.farthest_a != question.farthest_b:
        facts.append(f"farthest gold {question.farthest_a} → {question.farthest_b}")
    seeds = [
        f"only {run}: {few(phrases)}"
        for run, phrases in (("A", question.only_a), ("B", question.only_b))
        if phrases and question.seeds_shared is not None
    ]
    lines = ["  ".join(facts), f"seeds {'  '.join(seeds)}" if seeds else ""]
    return [line for line in lines if line]


def few(phrases: Sequence[str]) -> str:
    more = len(phrases) - LISTED_SEEDS
    return ", ".join(phrases[:LISTED_SEEDS]) + (f" +{more}" if more > 0 else "")


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The folders and Hydra's own arguments. A folder may be called what Hydra would read as a setting."""
    folders, settings = [], []
    for argument in arguments:
        is_setting = argument.startswith("-") or re.match(r"[+~\w./@]+=", argument)
        (settings if is_setting and not Path(argument).is_dir() else folders).append(argument)
    return folders, settings


if __name__ == "__main__":
    RUNS, sys.argv[1:] = split_arguments(sys.argv[1:])
    main()
