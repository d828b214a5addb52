"""How many tokens a prompt has, where its tokenizer is not at hand."""

import re

from hipporag_torch.chat import Prompt

# A run of Latin letters, a run of digits, a run of blanks, any other character.
_PIECES = re.compile(r"[A-Za-z]+|[0-9]+|[ \t]+|\s|[^\sA-Za-z0-9]")
# What chat templates put around a message, and before the reply.
_PER_MESSAGE = 5
_PER_REPLY = 3


def estimated_tokens(prompt: Prompt) -> int:
    """Rather too many than too few: usual byte-pair tokenizers stay below it in nearly every text."""
    return _PER_REPLY + sum(_PER_MESSAGE + estimated_text_tokens(message.text) for message in prompt)


def estimated_text_tokens(text: str) -> int:
    """A token for every 4 letters or part of it, every 2 digits, every other ASCII mark; 2 for others."""
    return sum(_tokens(piece) for piece in _PIECES.findall(text))


def _tokens(piece: str) -> int:
    first = piece[0]
    if first.isascii() and first.isalpha():
        return -(-len(piece) // 4)
    if first.isascii() and first.isdigit():
        return -(-len(piece) // 2)
    if first in " \t":
        # One blank belongs to the word behind it.
        return 0 if len(piece) == 1 else 1
    return 1 if first.isascii() or first.isspace() else min(2, len(first.encode("utf-8", "replace")))
