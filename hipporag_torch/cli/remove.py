"""hipporag-torch remove: take sources out of an index."""

from argparse import Namespace

from hipporag_torch.cli.memories import open_as_it_is
from hipporag_torch.cli.options import Commands, add_command, takes
from hipporag_torch.cli.output import confirmed, emit, note
from hipporag_torch.cli.rows import removed_row
from hipporag_torch.cli.settings import settings_of
from hipporag_torch.console import progress_bar
from hipporag_torch.console.reports import show_removed
from hipporag_torch.console.rows import LISTED, num_passages, shortened
from hipporag_torch.errors import InputError
from hipporag_torch.reports import RemoveReport


def add_to(commands: Commands) -> None:
    """Add the command to the parser's."""
    parser = add_command(
        commands,
        "remove",
        run,
        summary="take sources out of an index",
        about="Take sources out of an index, in one change. What other sources hold too stays. It asks "
        "first, unless --yes is given. `sources` lists the names.",
        example="hipporag-torch remove notes-3fa9c2d1/old.md --index memory --preview\n"
        "hipporag-torch remove notes-3fa9c2d1/old.md notes-3fa9c2d1/older.md --index memory --yes",
    )
    takes(parser, "SOURCE", nargs="+", help="a source's name, whole")
    parser.add_argument("--preview", action="store_true", help="say what would go, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(asked: Namespace) -> int:
    """1 if a person says no."""
    settings = settings_of(asked)
    with open_as_it_is(settings, read_only=asked.preview) as memory:
        report = memory.plan_remove(source_ids=asked.source)
        _require_found(report)
        if not asked.preview:
            what = f"{num_passages(report.passages_removed)} would be removed"
            if not confirmed(asked, what, "--preview"):
                note("nothing was changed")
                return 1
            with progress_bar() as progress:
                report = memory.remove(source_ids=asked.source, progress=progress)
    if asked.json:
        emit(removed_row(report, preview=asked.preview))
    else:
        show_removed(report, would=asked.preview)
    return 0


def _require_found(report: RemoveReport) -> None:
    if report.passages_removed or report.passages_kept:
        return
    named = ", ".join(repr(shortened(name)) for name in report.not_found[:LISTED])
    raise InputError(
        f"the index has no source {named}; hipporag-torch sources lists those that it "
        "has (and key=value goes behind an option)"
    )
