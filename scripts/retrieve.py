"""Index a corpus and ask it questions: python scripts/retrieve.py --help"""

import json
from dataclasses import asdict
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from rich.markup import escape

from hipporag_torch.config import build_dataset, build_models, conf_dir, flag, require_known_keys
from hipporag_torch.console import clean_errors, console, progress_bar, quiet_third_parties, table, warn
from hipporag_torch.console.reports import show_opened, warn_of_failed
from hipporag_torch.console.rows import mostly_from, seeds_text, shortened
from hipporag_torch.console.usage import show_costs, show_usage
from hipporag_torch.dry_run import run_costs
from hipporag_torch.errors import ConfigError
from hipporag_torch.opening import fill, lacks_corpus, open_memory
from hipporag_torch.retrievers.questions import check_call
from hipporag_torch.types import Ranking, Trace


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="retrieve")
def main(cfg: DictConfig) -> None:
    quiet_third_parties()
    with clean_errors():
        require_known_keys(cfg, "retrieve")
        run(cfg, Path(HydraConfig.get().runtime.output_dir))


def run(cfg: DictConfig, directory: Path) -> None:
    questions = asked(cfg)
    check_call(questions, cfg.top_k)
    models = build_models(cfg)
    fills = lacks_corpus(cfg)
    documents = build_dataset(cfg).documents() if fills else None
    if flag(cfg, "dry_run"):
        show_costs(run_costs(cfg, models, questions, documents))
        console.print("[dim]dry run: no model was asked, nothing was written[/]")
        return
    overrides = list(HydraConfig.get().overrides.task)
    with open_memory(cfg, overrides, fills=fills, models=models) as memory:
        if documents is not None:
            with progress_bar() as progress:
                report = fill(memory, documents, progress)
            warn_of_failed(report.failed)
        else:
            show_opened(cfg.index.path, memory.index)
        rankings = memory.retrieve(questions, top_k=cfg.top_k, trace=cfg.trace)
    lines = [json.dumps(asdict(ranking), ensure_ascii=False, sort_keys=True) for ranking in rankings]
    (directory / "rankings.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for ranking in rankings:
        show(ranking)
    show_usage(models)
    console.print(f"written to {directory / 'rankings.jsonl'}", soft_wrap=True)


def asked(cfg: DictConfig) -> list[str]:
    """The question or questions of `cfg.question`."""
    if OmegaConf.is_missing(cfg, "question") or cfg.question is None:
        raise ConfigError("question is not set; give it as 'question=\"Who founded it?\"' or a list of them")
    question = OmegaConf.to_container(cfg.question) if OmegaConf.is_list(cfg.question) else cfg.question
    return [str(q) for q in question] if isinstance(question, list) else [str(question)]


def show(ranking: Ranking) -> None:
    console.print(f"\n[bold]{escape(ranking.question)}[/]  [dim]route {ranking.route}[/]")
    for number, thought in enumerate(ranking.thoughts, start=1):
        console.print(f"[dim]thought {number}:[/] {escape(thought)}", highlight=False, emoji=False)
    traced = {passage.passage_id: passage for passage in ranking.trace.passages} if ranking.trace else {}
    rows = [
        [
            str(place),
            f"{score:.4f}",
            shortened(passage.text, 160),
            ", ".join(phrase for phrase, _ in traced[passage.id].through[:3]) if passage.id in traced else "",
            mostly_from(traced.get(passage.id)),
        ]
        for place, (passage, score) in enumerate(zip(ranking.passages, ranking.scores, strict=True), start=1)
    ]
    columns = ["", "score", "passage", "through", "mostly from"]
    console.print(table("", columns, rows, text_columns=5))
    if ranking.trace:
        show_trace(ranking.trace)
    if ranking.reason:
        warn(shortened(ranking.reason, 300))


def show_trace(trace: Trace) -> None:
    """What the question named, the facts kept and the phrases that seed, where there are some."""
    kept = [f"({'; '.join(traced.fact.parts)})" for traced in trace.facts if traced.kept]
    for name, text in (
        ("names", ", ".join(trace.linked)),
        ("facts", ", ".join(kept)),
        ("seeds", seeds_text(trace)),
    ):
        if text:
            console.print(f"{name} {escape(text)}", style="dim", highlight=False, emoji=False)


if __name__ == "__main__":
    main()
