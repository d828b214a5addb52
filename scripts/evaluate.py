"""Index a corpus, ask its questions, and measure what is found: python scripts/evaluate.py --help"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from hipporag_torch.config import (
    build_dataset,
    build_models,
    build_reader,
    build_tracker,
    conf_dir,
    flag,
    plain,
    require_known_keys,
    stated_keys,
    takes_part,
)
from hipporag_torch.console import clean_errors, progress_bar, quiet_third_parties, warn
from hipporag_torch.console.evaluation import show_evaluation, show_expected, show_filled, show_index
from hipporag_torch.console.reports import show_opened
from hipporag_torch.console.rows import show_line
from hipporag_torch.console.usage import show_costs, show_usage
from hipporag_torch.dry_run import run_costs
from hipporag_torch.embedders.cached import CachedEmbedder
from hipporag_torch.embedders.device import resolved_device
from hipporag_torch.errors import ConfigError
from hipporag_torch.evaluation import (
    Evaluation,
    QuestionRow,
    check_gold,
    evaluate,
    read_answers,
    read_run,
    retrieval_depth,
)
from hipporag_torch.evaluation.draft import Draft
from hipporag_torch.evaluation.expected import check_expected, compare_expected
from hipporag_torch.evaluation.run import Keep
from hipporag_torch.evaluation.summary import index_summary
from hipporag_torch.extractors.openie import OpenIEExtractor
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.llms.roles import ChatModels
from hipporag_torch.opening import fill, lacks_corpus, open_memory, report_of
from hipporag_torch.protocols import Progress
from hipporag_torch.readers.none import NoReader
from hipporag_torch.recorded import Ask, recorded
from hipporag_torch.reports import AddReport
from hipporag_torch.run_config import RunFolder, decisive, resolved_config
from hipporag_torch.tracking import RunStart
from hipporag_torch.tracking.machine import machine_facts, versions
from hipporag_torch.tracking.pictures import PictureOptions, draw_pictures
from hipporag_torch.tracking.protocol import Picture
from hipporag_torch.types import Dataset

# Passages in the picture of a question: more are not read.
_DRAWN = 8


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="evaluate")
def main(cfg: DictConfig) -> None:
    quiet_third_parties()
    with clean_errors(go_on=sweeps()):
        require_known_keys(cfg, "evaluate")
        if flag(cfg, "dry_run"):
            show_dry_run(cfg)
            return
        directory = Path(HydraConfig.get().runtime.output_dir)
        folder = RunFolder(directory, resolved_config(cfg))
        if folder.is_finished():
            show_line(f"{directory} holds this run already; nothing was asked")
            show_outcome(cfg, read_run(directory))
        else:
            run(cfg, folder)


def show_dry_run(cfg: DictConfig) -> None:
    """What the run would ask of language models. Nothing is read but the data set, if it is at hand."""
    retrieval_depth(plain(cfg.ks), cfg.top_k)
    check_expected(plain(cfg.expected))
    source, models, fills = build_dataset(cfg), build_models(cfg), lacks_corpus(cfg)
    there = source.present()
    if there.missing:
        show_line(f"{there.message}; looked in {there.place}")
        if there.expected_passages and takes_part(cfg, "extractor", "llm"):
            calls = there.expected_passages * OpenIEExtractor.calls_per_passage
            show_line(f"extraction would take {calls:,} calls")
    else:
        dataset = source.load()
        questions = [question.text for question in dataset.questions]
        show_costs(run_costs(cfg, models, questions, dataset.documents if fills else None))
    show_line("dry run: no model was asked, nothing was written")


def run(cfg: DictConfig, folder: RunFolder) -> None:
    """A new run, or one that was stopped and goes on."""
    retrieval_depth(plain(cfg.ks), cfg.top_k)
    if sweeps() and "output" in stated_keys(HydraConfig.get().overrides.task):
        raise ConfigError("output is the folder of one run; a sweep's is hydra.sweep.dir=DIR")
    check_expected(plain(cfg.expected))
    pictures = PictureOptions(**plain(cfg.pictures))
    pictures.require_metric(plain(cfg.ks))
    tracker = build_tracker(cfg)
    device = str(resolved_device(cfg.runtime.device))
    dataset = build_dataset(cfg).load()
    models = build_models(cfg)
    fills = lacks_corpus(cfg)
    stated = list(HydraConfig.get().overrides.task)
    with open_memory(cfg, stated, fills=fills, models=models) as memory, progress_bar() as progress:
        ask = asker(cfg, dataset, memory, models, progress)
        if message := check_gold(dataset, memory.index.text).message:
            warn(message)
        report, seconds = filled(cfg, dataset, memory, progress, fills=fills)
        facts = {"dataset": dict(dataset.origin), "index": summary(cfg, memory, report, fills)}
        folder.write(versions() | {"machine": machine_facts(device)})
        began = time.perf_counter()

        def extra(evaluation: Evaluation) -> Mapping[str, Any]:
            seconds["questions"] = time.perf_counter() - began
            expected = compare_expected(evaluation.metrics, plain(cfg.expected))
            found = {"expected": [asdict(row) for row in expected]} if expected else {}
            return {"seconds": seconds, **facts, **spent(models, memory), **found}

        def draw(evaluation: Evaluation) -> tuple[Picture, ...]:
            return draw_pictures(
                pictures,
                evaluation,
                name=dataset.name,
                seconds=stages(seconds),
                index=memory.index,
                retrieve=lambda question: memory.retrieve([question], top_k=_DRAWN, trace=True)[0],
                directory=folder.directory,
            )

        evaluation = recorded(
            ask,
            start=start_of(folder, facts),
            draft=Draft(folder.directory, settings_of(folder, facts)),
            tracker=tracker,
            device=device,
            extra=extra,
            draw=draw,
            say=show_line,
        )
        show_index(dataset.name, memory.index)
        show_filled(report, reads_facts=memory.retriever.reads == "graph")
    show_outcome(cfg, evaluation)
    show_usage(models)
    took = f"indexed in {seconds['index']:.1f} s, questions asked" if fills else "questions asked"
    show_line(f"{took} in {seconds['questions']:.2f} s; written to {folder.directory}")


def asker(cfg: DictConfig, dataset: Dataset, memory: HippoRAG, models: ChatModels, progress: Progress) -> Ask:
    """What asks the questions, with the options of `cfg`."""
    answers = None if cfg.answers is None else read_answers(cfg.answers)
    reader = build_reader(cfg, memory, models)
    if answers is not None and not isinstance(reader, NoReader):
        raise ConfigError("answers come from a file or from a reader, got both; leave out answers or reader")
    traces = flag(cfg, "trace")

    def ask(done: Sequence[QuestionRow], keep: Keep) -> Evaluation:
        if done:
            show_line(f"going on: {len(done):,} of {len(dataset.questions):,} questions were asked before")
        return evaluate(
            dataset,
            memory.retriever,
            text=memory.index.text,
            ks=plain(cfg.ks),
            top_k=cfg.top_k,
            batch_size=cfg.runtime.batch_size,
            answers=answers,
            reader=None if isinstance(reader, NoReader) else reader,
            traced=memory.index if traces else None,
            done=done,
            keep=keep,
            progress=progress,
        )

    return ask


def filled(
    cfg: DictConfig, dataset: Dataset, memory: HippoRAG, progress: Progress, *, fills: bool
) -> tuple[AddReport, dict[str, float]]:
    """Index the corpus, or say what the index lacks of it; the report and the seconds by stage."""
    if not fills:
        show_opened(cfg.index.path, memory.index)
        warn_absent(cfg, dataset, memory)
        return report_of(memory.index), {}
    began = time.perf_counter()
    report = fill(memory, dataset.documents, progress)
    return report, {**report.seconds, "index": time.perf_counter() - began}


def warn_absent(cfg: DictConfig, dataset: Dataset, memory: HippoRAG) -> None:
    """Say so if the index, which is taken as it is, lacks passages of the corpus."""
    plan = memory.plan_add(dataset.documents)
    if absent := plan.passages_new:
        warn(
            f"{absent:,} of {absent + plan.passages_known:,} passages of the corpus are not in the index "
            f"{cfg.index.path}, so they cannot be found; scripts/index.py action=add puts them in. If it was "
            "made with another chunker, state that"
        )


def summary(cfg: DictConfig, memory: HippoRAG, report: AddReport, fills: bool) -> dict[str, Any]:
    """What metrics.json says of the index."""
    said = index_summary(memory.index, report)
    if not fills:
        # Only an add sees what the embedder cuts.
        del said["truncated"]
    return said if cfg.index.path is None else {**said, "path": str(cfg.index.path)}


def settings_of(folder: RunFolder, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the run's rows."""
    return {
        "config": decisive(folder.config),
        "dataset": facts["dataset"].get("fingerprint"),
        "index": facts["index"]["digest"],
    }


def start_of(folder: RunFolder, facts: Mapping[str, Any]) -> RunStart:
    """The run as a tracker is told of it: one of a sweep goes by its number, in the sweep's group."""
    sweep = Path(HydraConfig.get().sweep.dir).name
    return RunStart(
        name=f"{sweep}/{folder.directory.name}" if sweeps() else folder.directory.name,
        directory=folder.directory,
        config=folder.config,
        facts=facts,
        group=sweep if sweeps() else None,
    )


def sweeps() -> bool:
    """Whether this is a job of a sweep."""
    return HydraConfig.get().mode == RunMode.MULTIRUN


def spent(models: ChatModels, memory: HippoRAG) -> dict[str, Any]:
    """What was asked of models: of language models by role, with the money, and of the embedder."""
    usage = {role: asdict(its) for role, its in models.usage.items()}
    money = {role: its.money(usage) for role, usage in models.usage.items() if (its := models.prices(role))}
    found: dict[str, Any] = {"usage": usage, "money": money}
    if isinstance(memory.embedder, CachedEmbedder):
        found["texts"] = {"embedded": memory.embedder.misses, "from_cache": memory.embedder.hits}
    return {name: value for name, value in found.items() if value}


def stages(seconds: Mapping[str, float]) -> dict[str, float]:
    """The stages without the sum of some of them."""
    return {name: value for name, value in seconds.items() if name != "index"}


def show_outcome(cfg: DictConfig, evaluation: Evaluation) -> None:
    show_evaluation(evaluation, plain(cfg.ks))
    show_expected(compare_expected(evaluation.metrics, plain(cfg.expected)))


if __name__ == "__main__":
    main()
