"""hipporag-torch COMMAND: which commands there are, and how one ends."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import metadata

from hipporag_torch.cli import ask, explain, index_folder, remove, sources, stats
from hipporag_torch.cli.output import UsageError, note
from hipporag_torch.console import clean_errors, quiet_third_parties

PROGRAM = "hipporag-torch"
USAGE, INTERRUPTED = 2, 130

_EPILOG = """\
examples:
  hipporag-torch index-folder notes --index memory
  hipporag-torch ask "Who founded Northwind Press?" --index memory

HIPPORAG_INDEX names the index where --index does not. Without further settings no language model is asked and
nothing is downloaded. Settings stand behind the options as key=value, such as retriever=bm25.

exit status: 0 done, 1 something failed (one line on standard error says what, and what to do), 2 called in a
wrong way, 130 interrupted.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit status. `arguments` are those of the process by default."""
    asked, rest = parser().parse_known_args(arguments)
    # What no option takes are settings: argparse itself takes no list behind options.
    asked.overrides = rest
    quiet_third_parties()
    try:
        with clean_errors():
            return asked.run(asked)
    except UsageError as error:
        note(f"{PROGRAM} {asked.command}: {error}")
        return USAGE
    except KeyboardInterrupt:
        note("interrupted; nothing was changed")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has seen enough; Python would complain when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def parser() -> argparse.ArgumentParser:
    """The parser of all commands. Each puts its name and what runs it into the result."""
    made = argparse.ArgumentParser(
        prog=PROGRAM,
        description="A memory of documents: index a folder, ask questions, see why a passage was found.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    version = metadata.version("hipporag-torch")
    made.add_argument("--version", action="version", version=f"{PROGRAM} {version}")
    commands = made.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (ask, index_folder, stats, sources, remove, explain):
        command.add_to(commands)
    return made
