"""Make an index directory, change it, look after it: python scripts/index.py --help"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from rich.markup import escape

from hipporag_torch import upkeep
from hipporag_torch.config import (
    build_cache,
    build_chunker,
    build_dataset,
    build_embedder,
    build_extractor,
    build_graph_options,
    build_models,
    build_reply_caches,
    conf_dir,
    embedder_settings,
    flag,
    require_known_keys,
    stated_groups,
    stated_keys,
    use_threads,
)
from hipporag_torch.console import clean_errors, console, progress_bar, quiet_third_parties
from hipporag_torch.console import reports as show
from hipporag_torch.console import upkeep as state
from hipporag_torch.embedders.absent import AbsentEmbedder
from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.export import export_graphml, export_parquet, export_upstream, read_upstream
from hipporag_torch.extractors.absent import AbsentExtractor
from hipporag_torch.extractors.stored import StoredExtractor
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.indexer import Indexer
from hipporag_torch.llms.pricing import Prices
from hipporag_torch.llms.roles import ChatModels
from hipporag_torch.maintenance import RebuildReport
from hipporag_torch.opening import (
    kept_embedder,
    named_path,
    open_index,
    planning_memory,
    repairing_embedder,
    store_of,
)
from hipporag_torch.protocols import Chunker, Extractor
from hipporag_torch.types import Document


@dataclass(frozen=True)
class Call:
    """What was asked for. `stated` are the groups and keys that the command line names."""

    cfg: DictConfig
    stated: frozenset[str]

    @property
    def preview(self) -> bool:
        return self.cfg.preview or self.cfg.dry_run

    @cached_property
    def models(self) -> ChatModels:
        return build_models(self.cfg)

    @property
    def prices(self) -> Prices | None:
        """Of the model that extracts."""
        return self.models.prices("extraction")

    def extractor(self) -> Extractor:
        return build_extractor(self.cfg, self.models)

    def opened(
        self,
        *,
        embeds: bool = False,
        extractor: Extractor | None = None,
        chunker: Chunker | None = None,
        makes: bool = False,
        leaving: str = "",
    ) -> HippoRAG:
        """The index; for a preview read-only, and without a model that only doing would need.

        leaving: a stated group that is not what the index has but what it is to get.
        """
        return open_index(
            self.cfg,
            self.stated - {leaving},
            embeds=embeds and not self.preview,
            extractor=extractor,
            chunker=chunker,
            makes=makes and not self.preview,
            read_only=self.preview,
            vectors=leaving != "embedder",
        )


def add(call: Call) -> int:
    documents = _of_source(build_dataset(call.cfg).documents(), call.cfg.source_id)
    return _add(call, documents, call.extractor(), build_chunker(call.cfg))


def import_(call: Call) -> int:
    path = named_path(call.cfg, "import.path")
    documents = _of_source(read_upstream(path), call.cfg.source_id)
    return _add(call, documents, StoredExtractor(path=path), None)


def _add(call: Call, documents: Sequence[Document], extractor: Extractor, chunker: Chunker | None) -> int:
    new = not store_of(call.cfg, read_only=call.preview).is_made
    if new and call.preview:
        console.print(
            f"there is no index in {escape(call.cfg.index.path)} yet; it would be made", soft_wrap=True
        )
        show.show_plan(
            planning_memory(call.cfg, extractor=extractor, chunker=chunker).plan_add(documents), call.prices
        )
        return 0
    with call.opened(embeds=True, extractor=extractor, chunker=chunker, makes=True) as memory:
        if call.preview:
            show.show_plan(memory.plan_add(documents), call.prices)
            return 0
        with progress_bar() as progress:
            report = memory.add(documents, progress, on_error=call.cfg.on_error)
    if new:
        console.print(f"made the index {escape(call.cfg.index.path)}", highlight=False, soft_wrap=True)
    show.show_added(report, call.prices)
    return 1 if report.stopped else 0


def update(call: Call) -> int:
    source_id = call.cfg.source_id
    if source_id is None:
        raise ConfigError("action=update replaces what one source holds; give it as source_id=NAME")
    documents = build_dataset(call.cfg).documents()
    extractor, chunker = call.extractor(), build_chunker(call.cfg)
    with call.opened(embeds=True, extractor=extractor, chunker=chunker) as memory:
        if call.preview:
            show.show_plan(memory.plan_update(str(source_id), documents), call.prices)
            return 0
        with progress_bar() as progress:
            report = memory.update(str(source_id), documents, progress, on_error=call.cfg.on_error)
    show.show_updated(report, call.prices)
    return 0


def remove(call: Call) -> int:
    named = {name: _strings(call.cfg.remove[name], f"remove.{name}") for name in call.cfg.remove}
    if not any(named.values()):
        lists = "remove.source_ids, remove.passage_ids or remove.texts, each a list"
        raise ConfigError(f"action=remove needs to be told what: {lists}: 'remove.source_ids=[notes.md]'")
    with call.opened() as memory:
        if call.preview:
            report = memory.plan_remove(**named)
        else:
            with progress_bar() as progress:
                report = memory.remove(**named, progress=progress)
    show.show_removed(report, would=call.preview)
    # Something that was named is there, even if another source keeps it.
    return 0 if report.passages_removed or report.passages_kept else 1


def stats(call: Call) -> int:
    with call.opened() as memory:
        state.show_stats(memory.stats())
    return 0


def check(call: Call) -> int:
    with progress_bar() as progress:
        report = upkeep.check(store_of(call.cfg), progress, quick=call.cfg.check.quick)
    state.show_checked(report)
    return 1 if report.findings else 0


def repair(call: Call) -> int:
    store = store_of(call.cfg, read_only=call.preview)
    store.require_made()
    if call.preview:
        with progress_bar() as progress:
            report = upkeep.check(store, progress)
        console.print("repair would mend what it can of this:" if report.findings else "nothing to mend")
        state.show_checked(report)
        return 0
    with progress_bar() as progress:
        report = upkeep.repair(store, repairing_embedder(call.cfg, call.stated), progress)
    state.show_repaired(report)
    return 1 if report.unmended else 0


def compact(call: Call) -> int:
    with call.opened() as memory:
        if call.preview:
            disk = memory.stats().disk
            assert disk is not None
            state.show_to_compact(disk)
            return 0
        with progress_bar() as progress:
            report = memory.compact(
                progress, cache=build_cache(call.cfg), replies=build_reply_caches(call.cfg)
            )
    state.show_compacted(report)
    return 0


def export(call: Call) -> int:
    asked = call.cfg.export
    formats = ("parquet", "graphml", "upstream")
    if asked.format not in formats:
        raise ConfigError(f"export.format must be one of {', '.join(formats)}, got {asked.format!r}")
    if asked.texts and asked.format != "graphml":
        raise ConfigError(f"export.texts is for export.format=graphml; {asked.format} always has the texts")
    path = named_path(call.cfg, "export.path")
    with call.opened() as memory:
        index = memory.index
        if call.preview:
            paths = _parquet_paths(memory, path) if asked.format == "parquet" else [path]
            if not asked.overwrite and (there := [str(p) for p in paths if p.exists()]):
                raise InputError(f"{there[0]} exists already; give another path, or export.overwrite=true")
            state.show_exported(paths, len(index.failed) if asked.format == "upstream" else 0, would=True)
            return 0
        if asked.format == "parquet":
            done = export_parquet(index, path, overwrite=asked.overwrite)
        elif asked.format == "graphml":
            done = export_graphml(index, path, texts=asked.texts, overwrite=asked.overwrite)
        else:
            done = export_upstream(index, path, overwrite=asked.overwrite)
    state.show_exported(done.paths, done.left_out)
    return 0


def _parquet_paths(memory: HippoRAG, folder: Path) -> list[Path]:
    from hipporag_torch.export.tables import tables_of

    return [folder / f"{table.name}.parquet" for table in tables_of(memory.index)]


def reembed(call: Call) -> int:
    if "embedder" not in call.stated and call.cfg.index.vectors is None:
        raise ConfigError(
            "action=reembed needs the embedder to go on with, embedder=…, or the precision to keep vectors "
            "in, index.vectors=float32 or float16"
        )
    with call.opened(leaving="embedder") as memory:
        if "embedder" in call.stated:
            embedder = build_embedder(call.cfg)
            settings = embedder_settings(call.cfg, embedder.identity)
        else:
            store = store_of(call.cfg)
            embedder, settings = kept_embedder(call.cfg, store), store.identity().main.settings
        if call.preview:
            state.show_to_reembed(memory.stats(), embedder.identity)
            return 0
        with progress_bar() as progress:
            report = memory.reembed(embedder, progress, vectors=call.cfg.index.vectors, settings=settings)
    state.show_reembedded(report)
    return 0


def reextract(call: Call) -> int:
    producer = call.cfg.reextract.producer
    with call.opened(embeds=True, extractor=call.extractor()) as memory:
        if call.preview:
            show.show_plan(memory.plan_reextract(producer=producer), call.prices)
            return 0
        with progress_bar() as progress:
            report = memory.reextract(progress, producer=producer, on_error=call.cfg.on_error)
    show.show_extracted(report, call.prices)
    return 1 if report.stopped else 0


def rebuild_graph(call: Call) -> int:
    if "graph" not in call.stated:
        raise ConfigError(
            "action=rebuild_graph needs the options to weigh edges by: graph=reference, graph.fact_weight=1"
        )
    options = build_graph_options(call.cfg)
    with call.opened(leaving="graph") as memory, progress_bar() as progress:
        start, index = time.perf_counter(), memory.index
        if call.preview:
            # No model is asked, so it is simply done and thrown away.
            planned = Indexer(
                embedder=AbsentEmbedder(identity=index.embedder),
                extractor=AbsentExtractor(),
                text=index.text,
                graph=options,
            ).rebuild_graph(index, progress=progress)
            edges = index.graph.num_edges, planned.graph.num_edges
            report = RebuildReport(*edges, time.perf_counter() - start)
        else:
            report = memory.rebuild_graph(options, progress)
    state.show_rebuilt(report)
    return 0


def retry(call: Call) -> int:
    permanent = call.cfg.retry.permanent
    with call.opened(embeds=True, extractor=call.extractor()) as memory:
        if call.preview:
            show.show_plan(memory.plan_retry_failed(permanent=permanent), call.prices)
            return 0
        with progress_bar() as progress:
            report = memory.retry_failed(progress, permanent=permanent, on_error=call.cfg.on_error)
    show.show_extracted(report, call.prices)
    return 1 if report.stopped else 0


_EVERY = frozenset({"action", "index", "runtime", "hydra"})
_PLANS = frozenset({"preview", "dry_run"})
_OPENS = _PLANS | {"embedder", "text", "graph"}
_EXTRACTS = frozenset({"extractor", "llm", "extraction_llm", "budget", "on_error"})


@dataclass(frozen=True)
class Action:
    """What an action does, and the keys and groups that it reads beside those that all read."""

    run: Callable[[Call], int]
    reads: frozenset[str]


ACTIONS = {
    "add": Action(add, _OPENS | _EXTRACTS | {"dataset", "chunker", "source_id"}),
    "update": Action(update, _OPENS | _EXTRACTS | {"dataset", "chunker", "source_id"}),
    "remove": Action(remove, _OPENS | {"remove"}),
    "stats": Action(stats, _OPENS - _PLANS),
    "check": Action(check, frozenset({"check"})),
    "repair": Action(repair, _PLANS | {"embedder"}),
    "compact": Action(compact, _OPENS),
    "export": Action(export, _OPENS | {"export"}),
    "import": Action(import_, _OPENS | {"import", "source_id", "on_error"}),
    "reembed": Action(reembed, _OPENS),
    "reextract": Action(reextract, _OPENS | _EXTRACTS | {"reextract"}),
    "rebuild_graph": Action(rebuild_graph, _OPENS),
    "retry": Action(retry, _OPENS | _EXTRACTS | {"retry"}),
}


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="index")
def main(cfg: DictConfig) -> None:
    quiet_third_parties()
    with clean_errors():
        require_known_keys(cfg, "index")
        action = chosen(cfg, overrides := list(HydraConfig.get().overrides.task))
        require_read(cfg.action, action, overrides)
        use_threads(cfg)
        status = action.run(Call(cfg, stated_groups(overrides)))
        if cfg.preview or cfg.dry_run:
            console.print("[dim]preview: nothing was changed[/]")
    sys.exit(status)


def chosen(cfg: DictConfig, overrides: Sequence[str]) -> Action:
    """The action of `cfg`, if its settings can be."""
    known = ", ".join(ACTIONS)
    if OmegaConf.is_missing(cfg, "action"):
        raise ConfigError(f"action is not set; give it as action=NAME, one of {known}")
    if cfg.action not in ACTIONS:
        raise ConfigError(f"there is no action {cfg.action!r}; it must be one of {known}")
    for key in ("preview", "dry_run", "check.quick", "export.overwrite", "export.texts", "retry.permanent"):
        flag(cfg, key)
    if cfg.on_error not in ("quarantine", "fail"):
        raise ConfigError(f"on_error must be quarantine or fail, got {cfg.on_error!r}")
    return ACTIONS[cfg.action]


def require_read(name: str, action: Action, overrides: Sequence[str]) -> None:
    """Raise `ConfigError` for a stated key that the action does not read: nothing is ignored silently."""
    for key in stated_keys(overrides):
        group = key.split(".")[0]
        if group in _EVERY | action.reads:
            continue
        readers = ", ".join(other for other, its in ACTIONS.items() if group in its.reads)
        raise ConfigError(f"{key} is set, but action={name} does not read it; it is for {readers}")


def _of_source(documents: Sequence[Document], source_id: str | None) -> list[Document]:
    if source_id is None:
        return list(documents)
    return [replace(document, source_id=str(source_id)) for document in documents]


def _strings(value: object, key: str) -> list[str]:
    if not OmegaConf.is_list(value):
        raise ConfigError(f"{key} must be a list, got {value!r:.80}; write '{key}=[…]'")
    return [str(item) for item in value]  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
