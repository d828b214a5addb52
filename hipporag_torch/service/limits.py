"""What a call may ask for: sizes, and the folders that it may name."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.types import Document


@dataclass(frozen=True)
class Limits:
    """The most that one call may hand in. Texts are counted in characters, metadata in bytes of JSON."""

    text_chars: int = 1_000_000
    question_chars: int = 10_000
    documents: int = 1_000
    batch_chars: int = 8_000_000
    metadata_depth: int = 8
    metadata_bytes: int = 16_384

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is not int or value < 1:
                raise ConfigError(f"serve.limits.{field.name} must be at least 1, got {value!r}")

    def check_question(self, question: str) -> None:
        """Raise `InputError` if it is too long."""
        if len(question) > self.question_chars:
            raise InputError(
                f"the question has {len(question):,} characters, at most {self.question_chars:,} may be "
                "asked; ask a shorter one"
            )

    def check_names(self, name: str, values: Sequence[str]) -> None:
        """Raise `InputError` if there are too many, or if one is longer than a text may be."""
        if len(values) > self.documents:
            raise InputError(
                f"{name} has {len(values):,} entries, at most {self.documents:,} may be named in one call; "
                "make several calls"
            )
        for value in values:
            self._check_text(value, f"one of {name}")

    def check_documents(self, documents: Sequence[Document]) -> None:
        """Raise `InputError` for no document, too many, or one that is too large."""
        if not documents:
            raise InputError("documents is empty; give at least one document with a text")
        if len(documents) > self.documents:
            raise InputError(
                f"there are {len(documents):,} documents, at most {self.documents:,} may be handed in at "
                "once; make several calls"
            )
        for number, document in enumerate(documents):
            what = f"document {number}"
            self._check_text(document.text, what)
            if document.source_id is not None:
                self._check_text(document.source_id, f"the source_id of {what}", self.question_chars)
            self.check_metadata(document.metadata, what)
        if (total := sum(len(document.text) for document in documents)) > self.batch_chars:
            raise InputError(
                f"the documents have {total:,} characters together, at most {self.batch_chars:,} may be "
                "handed in at once; make several calls"
            )

    def _check_text(self, text: str, what: str, most: int | None = None) -> None:
        most = most or self.text_chars
        if len(text) > most:
            raise InputError(
                f"{what} has {len(text):,} characters, at most {most:,} are taken; cut it into several "
                "documents with the same source_id"
            )

    def check_metadata(self, metadata: Mapping[str, Any], what: str) -> None:
        """Raise `InputError` if it is too deep or too large; `what` names its document."""
        if (depth := depth_of(dict(metadata))) > self.metadata_depth:
            raise InputError(
                f"the metadata of {what} is {depth} levels deep, at most {self.metadata_depth} are taken; "
                "flatten it"
            )
        size = len(json.dumps(dict(metadata), ensure_ascii=False).encode("utf-8", "surrogatepass"))
        if size > self.metadata_bytes:
            raise InputError(
                f"the metadata of {what} takes {size:,} bytes, at most {self.metadata_bytes:,} are taken; "
                "put what is long into the text"
            )


def depth_of(value: Any) -> int:
    """How many lists and mappings lie inside one another: 1 for {}, 0 for a number."""
    deepest, level = 0, [value]
    while True:
        nested = [inner for inner in level if isinstance(inner, dict | list)]
        if not nested:
            return deepest
        deepest += 1
        level = [v for inner in nested for v in (inner.values() if isinstance(inner, dict) else inner)]


class Roots:
    """The folders below which a call may name paths; given at launch, so that no client can widen them."""

    def __init__(self, folders: Iterable[str | Path]) -> None:
        self.folders: tuple[Path, ...] = tuple(_root(folder) for folder in folders)

    def folder(self, path: str) -> Path:
        """The folder `path`, all links and `..` resolved. A relative one is below the only root.

        Raises `InputError` if it lies outside, or is no folder. Whether a path outside exists is not told.
        """
        if not self.folders:
            raise InputError(
                "no folder may be read: the server was started without --root; start it with --root FOLDER"
            )
        if not path.strip() or "\0" in path:
            raise InputError(f"path must name a folder, got {path!r:.80}")
        given = Path(path)
        if not given.is_absolute():
            first, *others = self.folders
            if others:
                raise InputError(f"path must be absolute, there are several roots, got {path!r:.200}")
            given = first / given
        try:
            resolved = given.resolve()
        except (OSError, RuntimeError):
            # A loop of links leads nowhere.
            resolved = None
        if resolved is None or not any(resolved.is_relative_to(root) for root in self.folders):
            raise InputError(
                f"{path!r:.200} is outside of the folders that this server may read; name one below "
                f"{', '.join(map(str, self.folders))}, or start the server with another --root"
            )
        if not resolved.is_dir():
            raise InputError(f"{path!r:.200} is not a folder that exists; name a folder")
        return resolved


def _root(folder: str | Path) -> Path:
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ConfigError(f"--root {folder} is not a folder; name one that exists")
    return path.resolve()
