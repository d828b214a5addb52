"""Index a corpus, ask its questions, and measure what is found: python scripts/evaluate.py --help"""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from hipporag_torch.config import (
    build_dataset,
    build_models,
    build_reader,
    conf_dir,
    flag,
    require_known_keys,
)
from hipporag_torch.console import clean_errors, console, progress_bar, quiet_third_parties, table, warn
from hipporag_torch.console.reports import show_opened
from hipporag_torch.console.usage import show_costs, show_usage
from hipporag_torch.dry_run import run_costs
from hipporag_torch.errors import ConfigError
from hipporag_torch.evaluation import (
    Evaluation,
    check_gold,
    evaluate,
    read_answers,
    retrieval_depth,
    write_run,
)
from hipporag_torch.evaluation.summary import index_summary
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.opening import fill, lacks_corpus, open_memory, report_of
from hipporag_torch.readers.none import NoReader
from hipporag_torch.reports import AddReport
from hipporag_torch.types import Dataset


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="evaluate")
def main(cfg: DictConfig) -> None:
    quiet_third_parties()
    with clean_errors():
        require_known_keys(cfg, "evaluate")
        run(cfg, Path(HydraConfig.get().runtime.output_dir))


def run(cfg: DictConfig, directory: Path) -> None:
    ks = list(cfg.ks) if OmegaConf.is_list(cfg.ks) else cfg.ks
    top_k = retrieval_depth(ks, cfg.top_k)
    dataset = build_dataset(cfg).load()
    answers = None if cfg.answers is None else read_answers(cfg.answers)
    if answers is not None and not cfg.reader._target_.endswith(".NoReader"):
        raise ConfigError("answers come from a file or from a reader, got both; leave out answers or reader")
    models = build_models(cfg)
    fills = lacks_corpus(cfg)
    if flag(cfg, "dry_run"):
        questions = [question.text for question in dataset.questions]
        show_costs(run_costs(cfg, models, questions, dataset.documents if fills else None))
        console.print("[dim]dry run: no model was asked, nothing was written[/]")
        return
    overrides = list(HydraConfig.get().overrides.task)
    with open_memory(cfg, overrides, fills=fills, models=models) as memory:
        reader = build_reader(cfg, memory, models)
        if message := check_gold(dataset, memory.index.text).message:
            warn(message)
        if not fills:
            show_opened(cfg.index.path, memory.index)
            warn_absent(cfg, dataset, memory)
        start = time.perf_counter()
        with progress_bar() as progress:
            report = fill(memory, dataset.documents, progress) if fills else report_of(memory.index)
            indexed = time.perf_counter()
            evaluation = evaluate(
                dataset,
                memory.retriever,
                text=memory.index.text,
                ks=ks,
                top_k=top_k,
                batch_size=cfg.runtime.batch_size,
                answers=answers,
                reader=None if isinstance(reader, NoReader) else reader,
                progress=progress,
            )
        seconds = {"questions": time.perf_counter() - indexed}
        if fills:
            seconds = {**report.seconds, "index": indexed - start, **seconds}
        extra = {"seconds": seconds, "index": summary(cfg, memory, report, fills)}
        if models.usage:
            extra["usage"] = {role: asdict(usage) for role, usage in models.usage.items()}
        write_run(directory, evaluation, extra=extra)
        show(cfg, dataset, memory, report, evaluation)
        show_usage(models)
    spent = f"indexed in {seconds['index']:.1f} s, questions asked" if fills else "questions asked"
    console.print(f"{spent} in {seconds['questions']:.2f} s; written to {directory}", soft_wrap=True)


def summary(cfg: DictConfig, memory: HippoRAG, report: AddReport, fills: bool) -> dict[str, Any]:
    """What metrics.json says of the index."""
    said = index_summary(memory.index, report)
    if not fills:
        # Only an add sees what the embedder cuts.
        del said["truncated"]
    return said if cfg.index.path is None else {**said, "path": str(cfg.index.path)}


def warn_absent(cfg: DictConfig, dataset: Dataset, memory: HippoRAG) -> None:
    """Say so if the index, which is taken as it is, lacks passages of the corpus."""
    plan = memory.plan_add(dataset.documents)
    if absent := plan.passages_new:
        warn(
            f"{absent:,} of {absent + plan.passages_known:,} passages of the corpus are not in the index "
            f"{cfg.index.path}, so they cannot be found; scripts/index.py action=add puts them in. If it was "
            "made with another chunker, state that"
        )


def show(
    cfg: DictConfig, dataset: Dataset, memory: HippoRAG, report: AddReport, evaluation: Evaluation
) -> None:
    index = memory.index
    console.print(
        f"[bold]{dataset.name}[/]: {len(index.passages):,} passages, {len(index.phrases):,} phrases, "
        f"{len(index.facts):,} facts, {index.graph.num_edges:,} edges"
    )
    show_report(report, reads_facts=memory.retriever.reads == "graph")
    metrics = evaluation.metrics
    rows = [
        [
            str(k),
            *(
                _cell(metrics, f"{level}{kind}@{k}")
                for level in ("", "title/")
                for kind in ("recall", "all_recall")
            ),
        ]
        for k in cfg.ks
    ]
    console.print(table("", ["k", "recall", "all recall", "title recall", "title all recall"], rows))
    routes = ", ".join(f"{route} {count}" for route, count in evaluation.routes.items())
    console.print(f"MRR {_cell(metrics, 'mrr')} (title {_cell(metrics, 'title/mrr')}); routes: {routes}")
    if "em" in metrics:
        console.print(f"answers: exact match {_cell(metrics, 'em')}, F1 {_cell(metrics, 'f1')}")


def show_report(report: AddReport, *, reads_facts: bool) -> None:
    """What a person should know about an add that was not all plain."""
    if report.dropped:
        console.print("dropped: " + ", ".join(f"{kind} {count:,}" for kind, count in report.dropped.items()))
    if report.truncated:
        console.print(
            f"{len(report.truncated):,} passages are longer than the embedder reads; their ends are cut"
        )
    if report.without_facts and reads_facts:
        console.print(
            f"{len(report.without_facts):,} passages state nothing that the extractor found; "
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


if __name__ == "__main__":
    main()
