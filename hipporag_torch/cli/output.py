"""What a command says: one JSON document, a line on standard error, a question to a person."""

import json
import sys
from argparse import Namespace
from typing import Any

from hipporag_torch.console import ask_yes_or_no


class UsageError(Exception):
    """The command was called in a way that it cannot be. The message is one line, with the way out."""


def emit(document: Any) -> None:
    """Write one JSON document to standard output. Pure ASCII, whatever the terminal's encoding."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
    sys.stdout.flush()


def note(line: str) -> None:
    """A line on standard error, as it is."""
    sys.stderr.write(line + "\n")


def confirmed(asked: Namespace, what: str, look: str) -> bool:
    """Whether a person agrees to `what`; `--yes` agrees in advance.

    look: the option that shows what would be done. Raises `UsageError` where nobody can be asked.
    """
    if asked.yes:
        return True
    if asked.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"{what}, and there is nobody to ask; add --yes to do it, or {look} to look first; "
            "nothing was changed"
        )
    return ask_yes_or_no(f"{what}. Go on?")
