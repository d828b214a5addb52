"""hipporag-torch stats: what an index holds."""

from argparse import Namespace

from hipporag_torch.cli.memories import open_as_it_is
from hipporag_torch.cli.options import Commands, add_command, takes_nothing
from hipporag_torch.cli.output import emit
from hipporag_torch.cli.rows import stats_row
from hipporag_torch.cli.settings import settings_of
from hipporag_torch.console.upkeep import show_stats


def add_to(commands: Commands) -> None:
    """Add the command to the parser's."""
    parser = add_command(
        commands,
        "stats",
        run,
        summary="what an index holds, was built with and has failed at",
        about="Say what an index holds, was built with and has failed at. No model is loaded.",
        example="hipporag-torch stats --index memory\nhipporag-torch stats --index memory --json",
    )
    takes_nothing(parser)


def run(asked: Namespace) -> int:
    """Show the statistics."""
    with open_as_it_is(settings_of(asked)) as memory:
        stats = memory.stats()
    if asked.json:
        emit(stats_row(stats))
    else:
        show_stats(stats)
    return 0
