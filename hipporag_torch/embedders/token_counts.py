"""How many tokens a text has, without loading the model that reads them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

TokenCounter = Callable[[list[str]], list[int]]


def counter_of_folder(folder: Path) -> TokenCounter | None:
    """A counter from the folder's `tokenizer.json`, special tokens included; None if there is none."""
    from tokenizers import Tokenizer

    if not (folder / "tokenizer.json").is_file():
        return None
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda texts: [len(encoding.ids) for encoding in tokenizer.encode_batch(texts)]


def counter_of_model(model: "SentenceTransformer") -> TokenCounter:
    """A counter from a loaded model's tokenizer, special tokens included."""

    def count(texts: list[str]) -> list[int]:
        # verbose=False: that a text is too long is the answer here, not a mishap to warn of.
        counted = model.tokenizer(texts, truncation=False, verbose=False)
        return [len(ids) for ids in counted["input_ids"]]

    return count
