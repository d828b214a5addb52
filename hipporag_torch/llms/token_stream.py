"""Showing a reply's text while its tokens come."""

from collections.abc import Callable
from typing import Any

_INCOMPLETE = "�"


class TokenStream:
    """A streamer of transformers: `show` gets what is new in the text, as soon as it is whole characters.

    decode: the text of all tokens so far. prompt_tokens: how many come first that are not the reply's.
    """

    def __init__(
        self, show: Callable[[str], None], decode: Callable[[list[int]], str], *, prompt_tokens: int
    ) -> None:
        self._show, self._decode, self._left_out = show, decode, prompt_tokens
        self._tokens: list[int] = []
        self._shown = ""

    def put(self, value: Any) -> None:
        """Tokens of a batch of one; the prompt's come first."""
        tokens = value.flatten().tolist()
        skipped = min(self._left_out, len(tokens))
        self._left_out -= skipped
        self._tokens += tokens[skipped:]
        text = self._decode(self._tokens)
        # A character of several tokens is shown when it is complete.
        if not text.endswith(_INCOMPLETE):
            self._add(text)

    def end(self) -> None:
        """No tokens follow."""
        self._add(self._decode(self._tokens))

    def _add(self, text: str) -> None:
        if len(text) > len(self._shown) and text.startswith(self._shown):
            self._show(text[len(self._shown) :])
            self._shown = text
