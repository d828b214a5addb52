"""Compare two evaluations of the same questions: python scripts/compare.py RUN_A RUN_B"""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from rich.markup import escape

from hipporag_torch.config import conf_dir, require_known_keys
from hipporag_torch.console import clean_errors, console, table
from hipporag_torch.errors import ConfigError
from hipporag_torch.evaluation import Comparison, QuestionPair, compare_runs, compare_table, read_run

RUNS: list[str] = []


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="compare")
def main(cfg: DictConfig) -> None:
    with clean_errors():
        require_known_keys(cfg, "compare")
        if len(RUNS) != 2:
            raise ConfigError(f"two folders are needed, got {RUNS}: python scripts/compare.py RUN_A RUN_B")
        run(cfg, RUNS[0], RUNS[1], Path(HydraConfig.get().runtime.output_dir))


def run(cfg: DictConfig, folder_a: str, folder_b: str, directory: Path) -> None:
    run_a, run_b = read_run(folder_a), read_run(folder_b)
    options = {"resamples": cfg.resamples, "seed": cfg.seed, "confidence": cfg.confidence}
    metrics = None if cfg.metrics is None else list(cfg.metrics)
    comparisons = compare_table(run_a, run_b, metrics=metrics, **options)
    shown = compare_runs(run_a, run_b, metric=cfg.show, **options)
    content = json.dumps([asdict(c) for c in comparisons], ensure_ascii=False, indent=2)
    (directory / "comparison.json").write_text(content + "\n", encoding="utf-8")
    console.print(escape(f"A {folder_a}\nB {folder_b}\n"), soft_wrap=True)
    rows = [
        [
            c.metric,
            f"{c.mean_a:.3f}",
            f"{c.mean_b:.3f}",
            f"{c.difference:+.3f}",
            f"{c.low:+.3f}",
            f"{c.high:+.3f}",
            f"{c.share_positive:.0%}",
            str(len(c.won)),
            str(len(c.lost)),
        ]
        for c in sorted(comparisons, key=lambda c: _natural(c.metric))
    ]
    columns = ["metric", "A", "B", "B − A", "low", "high", "B > A", "won", "lost"]
    title = f"B against A, {shown.questions} questions; low and high bound B − A at {cfg.confidence:.0%}"
    console.print(table(title, columns, rows))
    show_questions(shown, cfg.show_questions)
    console.print(f"\nwritten to {directory / 'comparison.json'}", soft_wrap=True)


def _natural(metric: str) -> tuple[str, int]:
    """Passages before titles, and recall@2 before recall@10."""
    name, _, k = metric.partition("@")
    return name, int(k or 0)


def show_questions(comparison: Comparison, limit: int) -> None:
    kinds: tuple[tuple[str, Sequence[QuestionPair]], ...] = (
        ("won", comparison.won),
        ("lost", comparison.lost),
    )
    for name, pairs in kinds:
        console.print(f"\n[bold]{name}[/] by {comparison.metric}: {len(pairs)}")
        for pair in pairs[:limit]:
            console.print(f"  {pair.a:.2f} → {pair.b:.2f}  {escape(pair.question)}", soft_wrap=True)
        if len(pairs) > limit:
            console.print(f"  … and {len(pairs) - limit} more; show_questions=N lists more")


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
