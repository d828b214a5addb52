"""hipporag-torch index-folder: bring an index in step with a folder of text files."""

from argparse import Namespace
from dataclasses import dataclass

from hipporag_torch.cli.memories import without_retriever
from hipporag_torch.cli.options import Commands, add_command, add_models, takes
from hipporag_torch.cli.output import confirmed, emit, note
from hipporag_torch.cli.rows import folder_row
from hipporag_torch.cli.settings import Settings, settings_of
from hipporag_torch.config import build_chunker, build_embedder, build_extractor, build_models, use_threads
from hipporag_torch.console import console, progress_bar
from hipporag_torch.console.folders import show_folder_plan, show_folder_report
from hipporag_torch.errors import ConfigError
from hipporag_torch.folders import GLOBS, FolderPlan, FolderReport, apply_plan, plan_folder
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.llms.roles import ChatModels
from hipporag_torch.opening import open_index, planning_memory, store_of
from hipporag_torch.protocols import Chunker, Extractor, Progress

_READS = frozenset({"extractor", "chunker", "llm", "extraction_llm", "budget", "serve.confirm_above"})
_INTERRUPTED = 130


def add_to(commands: Commands) -> None:
    """Add the command to the parser's."""
    parser = add_command(
        commands,
        "index-folder",
        run,
        summary="bring an index in step with a folder of text files",
        about="Bring an index in step with a folder of Markdown, reStructuredText and text files; it is "
        "made if there is none. Files that have not changed cost a reading, those that have are "
        "replaced, each in one change. First the plan is shown; above 50 passages to extract "
        "(serve.confirm_above=N) it asks before it begins. Stopped, also by Ctrl-C, it keeps what is "
        "done, and the same command goes on with the rest.",
        example="hipporag-torch index-folder notes --index memory --dry-run\n"
        "hipporag-torch index-folder notes --index memory --prune --yes\n"
        "hipporag-torch index-folder docs --index memory --glob '*.md' --glob 'guide/**/*.rst'",
    )
    takes(parser, "PATH", help="the folder")
    add = parser.add_argument
    add(
        "--glob",
        action="append",
        metavar="PATTERN",
        help=f"which files; repeatable; default: {' '.join(GLOBS)}",
    )
    add("--prune", action="store_true", help="take out what the index holds of files that are gone")
    add("--name", help="what the folder is called in the index, for one that moves; default: by its path")
    add("--dry-run", action="store_true", help="show the plan, with every file, and do nothing")
    add("--yes", action="store_true", help="do not ask")
    add_models(parser, "extracts entities and facts, two calls for each passage")


@dataclass(frozen=True)
class _Work:
    """A call with the parts that it works with."""

    asked: Namespace
    settings: Settings
    models: ChatModels
    extractor: Extractor
    chunker: Chunker | None

    def opened(self, *, makes: bool = False) -> HippoRAG:
        """The index; made only if `makes`: until then an empty memory stands for one that is not there."""
        new = not store_of(self.settings.cfg).is_made
        if new and not makes:
            return planning_memory(self.settings.cfg, extractor=self.extractor)
        return open_index(
            without_retriever(self.settings.cfg),
            self.settings.stated,
            embeds=not self.asked.dry_run,
            extractor=self.extractor,
            makes=makes,
            read_only=self.asked.dry_run,
            models=self.models,
        )

    def plan(self, memory: HippoRAG) -> FolderPlan:
        asked = self.asked
        with progress_bar() as progress:
            return plan_folder(
                memory,
                asked.path,
                globs=tuple(asked.glob or GLOBS),
                prune=asked.prune,
                name=asked.name,
                chunker=self.chunker,
                progress=progress,
            )

    def embedder_of(self, memory: HippoRAG) -> str:
        """The name of what embeds: the index's own, or that of the settings for one that is not made."""
        cfg = self.settings.cfg
        if store_of(cfg).is_made:
            return memory.index.embedder.name
        # Some models have to be loaded before they know who they are.
        named = cfg.embedder.get("name") or cfg.embedder.get("model")
        return str(named or build_embedder(cfg).identity.name)


def run(asked: Namespace) -> int:
    """1 if something of the plan was not done, or a person says no."""
    settings = settings_of(asked, _READS)
    cfg = settings.cfg
    use_threads(cfg)
    above = cfg.serve.confirm_above
    if above is not None and (type(above) is not int or above < 0):
        raise ConfigError(f"serve.confirm_above must be 0 (always) or more, or null for never, got {above!r}")
    models = build_models(cfg)
    chunker = build_chunker(cfg) if "chunker" in settings.stated else None
    work = _Work(asked, settings, models, build_extractor(cfg, models), chunker)
    with work.opened() as memory:
        plan = work.plan(memory)
        told = {"extractor": work.extractor.producer, "embedder": work.embedder_of(memory)}
        if not asked.json:
            show_folder_plan(plan, **told, prices=models.prices("extraction"), files=asked.dry_run)
        if asked.dry_run:
            if asked.json:
                emit(folder_row(plan, None, **told))
            else:
                console.print("\n[dim]dry run: nothing was changed[/]")
            return 0
        extracted = plan.passages_new + plan.passages_retried
        if above is not None and extracted > above:
            what = (
                f"{extracted:,} passages would be extracted, with {plan.extractor_calls:,} calls of a model"
            )
            if not confirmed(asked, what, "--dry-run"):
                note("nothing was changed")
                return 1
    return _apply(work, plan, told)


def _apply(work: _Work, plan: FolderPlan, told: dict[str, str]) -> int:
    steps = _Steps()
    try:
        # A folder without a file that changes anything makes no index.
        with work.opened(makes=bool(plan.changes)) as memory, progress_bar() as progress:
            report = apply_plan(memory, plan, steps.counting(progress), chunker=work.chunker)
    except KeyboardInterrupt:
        note(
            f"interrupted; {steps.done:,} of {len(plan.changes):,} files are done and stay in the index; the "
            "same command again goes on with the rest"
        )
        return _INTERRUPTED
    _tell(work, plan, report, told)
    return 0 if report.ok else 1


def _tell(work: _Work, plan: FolderPlan, report: FolderReport, told: dict[str, str]) -> None:
    if work.asked.json:
        emit(folder_row(plan, report, **told))
    else:
        console.print()
        show_folder_report(report, work.models.prices("extraction"))


class _Steps:
    """How many files are done."""

    done = 0

    def counting(self, progress: Progress) -> Progress:
        """`progress`, which is noted on the way."""

        def advance(stage: str, done: int, total: int) -> None:
            if stage == "sync":
                self.done = done
            progress(stage, done, total)

        return advance
