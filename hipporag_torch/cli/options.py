"""The options that commands share."""

import argparse
import textwrap
from collections.abc import Callable
from typing import Any

INDEX_VARIABLE = "HIPPORAG_INDEX"
_WIDTH = 100

Commands = Any
"""What `ArgumentParser.add_subparsers` gives; argparse keeps its type to itself."""


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    summary: str,
    about: str,
    example: str,
) -> argparse.ArgumentParser:
    """A command with the options that all have: --index and --json.

    summary: its line among the others. about: what it does. example: calls of it, one a line.
    """
    lines = "\n".join(f"  {line}" for line in example.splitlines())
    parser = commands.add_parser(
        name,
        help=summary,
        description=textwrap.fill(about, _WIDTH),
        epilog=f"examples:\n{lines}",
        usage=f"hipporag-torch {name} {{}} [options] [key=value …]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--index", metavar="DIR", help=f"the index; default: ${INDEX_VARIABLE}")
    parser.add_argument(
        "--json", action="store_true", help="one JSON document on standard output, nothing else"
    )
    parser.set_defaults(run=run)
    return parser


def takes(parser: argparse.ArgumentParser, name: str, **more: Any) -> None:
    """What the command is about, first in its usage."""
    shown = f"{name} [{name} …]" if more.get("nargs") == "+" else name
    parser.usage = str(parser.usage).replace("{}", shown)
    parser.add_argument(name.lower(), metavar=name, **more)


def takes_nothing(parser: argparse.ArgumentParser) -> None:
    """The command is about the whole index."""
    parser.usage = str(parser.usage).replace("{} ", "")


def add_models(parser: argparse.ArgumentParser, llm: str) -> None:
    """--llm, --llm-base-url and --embedder. llm: what a chat model would do."""
    add = parser.add_argument
    add("--llm", metavar="MODEL", help=f"a chat model that {llm}; without it no language model is asked")
    add(
        "--llm-base-url",
        metavar="URL",
        help="where it is, an OpenAI-compatible endpoint; default: OpenAI's own",
    )
    add(
        "--embedder",
        metavar="NAME",
        help="an option of conf/embedder, or a sentence-transformers model; an index knows its own",
    )


def positive(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number
