"""Extract a corpus into a file, without indexing it: python scripts/extract.py --help"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import hydra
from omegaconf import DictConfig, OmegaConf

from hipporag_torch.config import (
    build_chunker,
    build_dataset,
    build_extractor,
    build_models,
    build_text,
    conf_dir,
    flag,
    require_known_keys,
    use_threads,
)
from hipporag_torch.console import clean_errors, console, progress_bar, quiet_third_parties, warn
from hipporag_torch.console import reports as show
from hipporag_torch.console.rows import num_passages, show_line, show_rows
from hipporag_torch.console.usage import show_costs, show_usage
from hipporag_torch.costs import Costs
from hipporag_torch.errors import BackendError, BudgetError, InputError
from hipporag_torch.export.upstream import upstream_doc, write_docs
from hipporag_torch.journal import ExtractionJournal
from hipporag_torch.llms.roles import ChatModels
from hipporag_torch.protocols import EstimatesUsage, Extractor, ExtractsEach, Progress
from hipporag_torch.reports import FailedPassage
from hipporag_torch.shards import OutputFiles, Shard, found_files, merge
from hipporag_torch.sources import merged, pieces_of
from hipporag_torch.types import Passage

_PASSAGES_AT_ONCE = 256


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="extract")
def main(cfg: DictConfig) -> None:
    quiet_third_parties()
    with clean_errors():
        require_known_keys(cfg, "extract")
        use_threads(cfg)
        shard = None if cfg.shard is None else Shard.parse(cfg.shard)
        files = OutputFiles.at(cfg.output, shard)
        if cfg.merge is None:
            extract(cfg, shard, files)
        else:
            join(cfg, shard, files)


def extract(cfg: DictConfig, shard: Shard | None, files: OutputFiles) -> None:
    passages = passages_of(cfg, shard)
    models = build_models(cfg)
    extractor = build_extractor(cfg, models)
    permanent = flag(cfg, "retry.permanent")
    journal = ExtractionJournal.read_only(files.journal, extractor.producer)
    require_own(files.output, journal, overwrite=flag(cfg, "overwrite"))
    if flag(cfg, "dry_run"):
        todo = [p for p in passages.values() if not journal.is_done(p.id, permanent=permanent)]
        plan(files, passages, todo, extractor, models)
        return
    with ExtractionJournal.opened(files.journal, extractor.producer) as journal, progress_bar() as progress:
        todo = [p for p in passages.values() if not journal.is_done(p.id, permanent=permanent)]
        try:
            run(extractor, todo, journal, progress)
        except (BudgetError, BackendError):
            done = sum(journal.is_done(passage_id, permanent=True) for passage_id in passages)
            if done:
                warn(
                    f"{done:,} of {num_passages(len(passages))} are extracted and kept in {files.journal}; "
                    "the same command goes on from there"
                )
            show_usage(models)
            raise
    failed = write(files, passages, journal)
    finish(files, passages, len(todo), failed, models)


def passages_of(cfg: DictConfig, shard: Shard | None) -> Mapping[str, Passage]:
    """The passages of the corpus, or of a shard of it, in the corpus's order, by id."""
    documents = build_dataset(cfg).documents()
    passages = list(merged((), pieces_of(documents, build_chunker(cfg), build_text(cfg))).values())
    return {passage.id: passage for passage in (passages if shard is None else shard.of(passages))}


def require_own(output: Path, journal: ExtractionJournal, *, overwrite: bool) -> None:
    """Raise `InputError` if the output is not what this extractor has written here."""
    if output.exists() and not overwrite and not len(journal):
        raise InputError(
            f"{output} exists already, and beside it no journal of this extractor; give another output, or "
            "overwrite=true to replace it"
        )


def plan(
    files: OutputFiles,
    passages: Mapping[str, Passage],
    todo: Sequence[Passage],
    extractor: Extractor,
    models: ChatModels,
) -> None:
    show_rows(
        [
            ("passages", f"{len(todo):,} to extract, {len(passages) - len(todo):,} finished already"),
            ("output", str(files.output)),
        ]
    )
    usage = extractor.estimate(todo) if isinstance(extractor, EstimatesUsage) else None
    show_costs({"extraction": Costs(usage, models.prices("extraction"))} if usage and usage.calls else {})
    console.print("[dim]dry run: no model was asked, nothing was written[/]")


def run(
    extractor: Extractor, todo: Sequence[Passage], journal: ExtractionJournal, progress: Progress
) -> None:
    """Extract; each passage is written down once it is finished, or its block if the extractor can't tell."""
    if isinstance(extractor, ExtractsEach):
        extractor.extract_each(todo, journal.append, progress)
        return
    for start in range(0, len(todo), _PASSAGES_AT_ONCE):
        block = todo[start : start + _PASSAGES_AT_ONCE]
        for passage, extraction in zip(block, extractor.extract(block), strict=True):
            journal.append(passage, extraction)
        progress("extract", start + len(block), len(todo))


def write(
    files: OutputFiles, passages: Mapping[str, Passage], journal: ExtractionJournal
) -> list[FailedPassage]:
    """Write the output and the failures, which are returned."""
    failed: list[FailedPassage] = []
    ids = sorted(passages)

    def docs():
        for passage_id, extraction in zip(ids, journal.extractions(ids), strict=True):
            if extraction.status == "failed":
                sources = tuple(source.source_id for source in passages[passage_id].sources)
                its = (extraction.reason, extraction.reply, extraction.permanent)
                failed.append(FailedPassage(passage_id, sources, *its))
            else:
                yield upstream_doc(passages[passage_id], extraction)

    write_docs(docs(), files.output, overwrite=True)
    files.write_failed(failed)
    return failed


def finish(
    files: OutputFiles,
    passages: Mapping[str, Passage],
    num_tried: int,
    failed: Sequence[FailedPassage],
    models: ChatModels,
) -> None:
    show_rows(
        [
            ("passages", f"{len(passages) - len(failed):,} extracted, {len(failed):,} failed"),
            ("", f"{num_tried:,} of these tried now, {len(passages) - num_tried:,} finished before"),
        ]
    )
    show_usage(models)
    show.warn_failed(failed, f"are listed in {files.failed}; the same command tries them again")
    show_line(f"written to {files.output}")


def join(cfg: DictConfig, shard: Shard | None, files: OutputFiles) -> None:
    if shard is not None:
        raise InputError("merge puts shards together, shard makes one; set one of the two")
    patterns = OmegaConf.to_container(cfg.merge) if OmegaConf.is_list(cfg.merge) else [cfg.merge]
    found = found_files([str(pattern) for pattern in patterns])  # type: ignore[union-attr]
    if flag(cfg, "dry_run"):
        show_line(f"would merge {len(found)} files into {files.output}: {', '.join(map(str, found))}")
        return
    done = merge(found, files, build_text(cfg), overwrite=flag(cfg, "overwrite"))
    show_rows([("files", f"{len(done.files):,}"), ("passages", f"{done.num_docs:,}")])
    show.warn_failed(done.failed, f"are listed in {files.failed}")
    show_line(f"written to {files.output}")


if __name__ == "__main__":
    main()
