"""Compare many ways to retrieve from one index: python scripts/study.py --help"""

import json
import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from rich.markup import escape

from hipporag_torch.building import regraphed
from hipporag_torch.config import (
    build_dataset,
    build_graph_options,
    build_make_retriever,
    build_models,
    build_study,
    conf_dir,
    flag,
    require_known_keys,
    stated_groups,
    what_is_read,
)
from hipporag_torch.console import clean_errors, console, progress_bar, quiet_third_parties, table, warn
from hipporag_torch.console.reports import show_opened
from hipporag_torch.console.rows import show_line
from hipporag_torch.console.usage import show_usage
from hipporag_torch.errors import ConfigError
from hipporag_torch.evaluation import Evaluation, check_gold, evaluate, retrieval_depth, write_run
from hipporag_torch.evaluation.study import StudyRow, drawn_ends, require_metric, study_rows
from hipporag_torch.evaluation.variants import Study, Variant
from hipporag_torch.graph_construction import AnyGraphOptions
from hipporag_torch.hipporag import HippoRAG, MakeRetriever
from hipporag_torch.llms.roles import ChatModels
from hipporag_torch.opening import fill, lacks_corpus, open_memory
from hipporag_torch.protocols import Progress
from hipporag_torch.types import Dataset

# What does not touch passages, text or vectors.
GROUPS = ("seeding", "linker", "ppr", "graph", "retriever", "fact_filter")
READS = ("texts", "vectors", "graph")


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="study")
def main(cfg: DictConfig) -> None:
    quiet_third_parties()
    with clean_errors():
        require_known_keys(cfg, "study")
        run(cfg, Path(HydraConfig.get().runtime.output_dir))


def run(cfg: DictConfig, directory: Path) -> None:
    ks = list(cfg.ks) if OmegaConf.is_list(cfg.ks) else cfg.ks
    retrieval_depth(ks, cfg.top_k)
    study = build_study(cfg)
    own = list(HydraConfig.get().overrides.task)
    configs = {variant.name: variant_config(own, variant) for variant in study.variants}
    dataset = build_dataset(cfg).load()
    models = build_models(cfg)
    fills = lacks_corpus(cfg)
    with open_memory(reading_most(cfg, configs), own, fills=fills, models=models) as memory:
        # All of them now: an option out of range shows before anything is indexed.
        makers = {name: retriever_maker(name, config, memory, models) for name, config in configs.items()}
        if message := check_gold(dataset, memory.index.text).message:
            warn(message)
        with progress_bar() as progress:
            if fills:
                fill(memory, dataset.documents, progress)
            else:
                show_opened(cfg.index.path, memory.index)
            graphs = graph_options(cfg, configs, study, memory)
            runs = ask_all(cfg, dataset, memory, study, makers, graphs, directory, progress)
        rows = study_rows(study, runs)
        content = json.dumps([asdict(row) for row in rows], ensure_ascii=False, indent=2)
        (directory / "study.json").write_text(content + "\n", encoding="utf-8")
        index = memory.index
        console.print(
            f"[bold]{escape(dataset.name)}[/]: {len(dataset.questions):,} questions, "
            f"{len(index.passages):,} passages, {len(index.phrases):,} phrases, {len(index.facts):,} facts"
        )
        show(rows, ks)
        show_usage(models)
    console.print(f"written to {directory}", soft_wrap=True)


def variant_config(own: Sequence[str], variant: Variant) -> DictConfig:
    """The run's config with the variant's overrides."""
    if others := sorted(stated_groups(variant.overrides) - set(GROUPS)):
        raise ConfigError(
            f"study.variants: {variant.name} states {', '.join(others)}; the variants share one index, so "
            f"they may state {', '.join(GROUPS)}"
        )
    try:
        config = hydra.compose("study", [*own, *variant.overrides])
    except HydraException as error:
        raise ConfigError(f"study.variants: {variant.name}: {' '.join(str(error).split())}") from error
    require_known_keys(config, "study")
    return config


def reading_most(cfg: DictConfig, configs: Mapping[str, DictConfig]) -> DictConfig:
    """`cfg` with the retriever of the variant that needs most of an index."""
    most = max(configs.values(), key=lambda config: READS.index(what_is_read(config)))
    cfg = deepcopy(cfg)
    cfg.retriever = most.retriever
    return cfg


def retriever_maker(name: str, config: DictConfig, memory: HippoRAG, models: ChatModels) -> MakeRetriever:
    try:
        return build_make_retriever(config, memory.embedder, models)
    except ConfigError as error:
        raise ConfigError(f"study.variants: {name}: {error}") from error


def graph_options(
    cfg: DictConfig, configs: Mapping[str, DictConfig], study: Study, memory: HippoRAG
) -> dict[AnyGraphOptions, list[Variant]]:
    """The variants by the graph that they walk on, so that there is only one beside the index's own."""
    built_with = memory.index.graph_options
    variants: dict[AnyGraphOptions, list[Variant]] = {built_with: []}
    for variant in study.variants:
        options = built_with
        if "graph" in stated_groups(variant.overrides):
            if build_graph_options(cfg) != built_with:
                raise ConfigError(
                    f"study.variants: {variant.name} changes graph options, but the index {cfg.index.path} "
                    f"has others than the run: {built_with}; state them with graph=…, graph.KEY=VALUE"
                )
            options = build_graph_options(configs[variant.name])
        variants.setdefault(options, []).append(variant)
    return variants


def ask_all(
    cfg: DictConfig,
    dataset: Dataset,
    memory: HippoRAG,
    study: Study,
    makers: Mapping[str, MakeRetriever],
    graphs: Mapping[AnyGraphOptions, Sequence[Variant]],
    directory: Path,
    progress: Progress,
) -> dict[str, Evaluation]:
    """Each variant's run; written as soon as it is done."""
    runs: dict[str, Evaluation] = {}
    total = len(study.variants) * len(dataset.questions)

    def asked(_stage: str, done: int, _total: int) -> None:
        progress("evaluate", len(runs) * len(dataset.questions) + done, total)

    for options, variants in graphs.items():
        same = options == memory.index.graph_options
        index = memory.index if same else regraphed(memory.index, options, progress)
        for variant in variants:
            start = time.perf_counter()
            run = evaluate(
                dataset,
                makers[variant.name](index),
                text=index.text,
                ks=list(cfg.ks),
                top_k=cfg.top_k,
                batch_size=cfg.runtime.batch_size,
                traced=index if flag(cfg, "trace") else None,
                progress=asked,
            )
            require_metric(run, study.metric)
            extra = {"seconds": {"questions": time.perf_counter() - start}, "variant": asdict(variant)}
            write_run(directory / variant.name, run, extra=extra)
            runs[variant.name] = run
    return runs


def show(rows: Sequence[StudyRow], ks: Sequence[int]) -> None:
    means = {f"R@{k}": f"recall@{k}" for k in ks} | ({"all@5": "all_recall@5"} if 5 in ks else {})
    cells = [[row.name, *(_cell(row.metrics.get(name)) for name in means.values())] for row in rows]
    console.print(table("", ["variant", *means], cells))
    values = [rows[0].metric] if rows[0].search is None else [rows[0].metric, "search", "held out"]
    cells = [[row.name, *_values(row), *_difference(row)] for row in rows]
    title = f"against {rows[0].baseline}; low, high: 95% interval of Δ"
    console.print(table(title, ["variant", *values, "Δ", "low", "high", "won", "lost"], cells))
    if ends := drawn_ends(rows):
        cells = [[end, row.name, *_values(row)] for end, row in ends.items()]
        title = f"of the variants drawn, by {values[:2][-1]}"
        console.print(table(title, ["", "variant", *values], cells, text_columns=2))
        for end, row in ends.items():
            show_line(f"{end}: {' '.join(row.overrides)}")


def _values(row: StudyRow) -> list[str]:
    return [_cell(value) for value in (row.value, row.search, row.held_out) if value is not None]


def _difference(row: StudyRow) -> list[str]:
    signed = [f"{value:+.3f}" for value in (row.difference, row.low, row.high)]
    return [*signed, str(row.won), str(row.lost)]


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    main()
