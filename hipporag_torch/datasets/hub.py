"""A data set in a repository of the Hugging Face hub, or in a folder that holds the same files."""

import re
from pathlib import Path, PurePosixPath

from hipporag_torch.datasets.counts import Expected
from hipporag_torch.datasets.folders import Folder
from hipporag_torch.datasets.hub_files import Commit, HubFiles
from hipporag_torch.datasets.loading import Reading, Shape
from hipporag_torch.datasets.rows import SUFFIXES
from hipporag_torch.datasets.source import Presence
from hipporag_torch.errors import ConfigError, DatasetError
from hipporag_torch.types import Dataset, Document

HIPPORAG_2 = "osunlp/HippoRAG_2"


class HubDataset:
    """Two plain files of a hub repository, read as `LocalDataset` reads them.

    name: the data set's name. repo: owner/name on the hub; None if the files are only ever in `folder`.
    revision: a commit, branch or tag. None: what main is when it is first needed, and then the same for as
        long as this object lives; the origin says which commit that was.
    corpus, questions: the files; None is `{name}_corpus.json` and `{name}.json`.
    folder: a folder that holds them; the hub and its cache are then never looked at.
    shape, limit: see `LocalDataset`.
    expected_passages, expected_questions: the counts of the whole files, at least 1; None is not checked.

    `datasets` fetches the files into the hub's cache (HF_HUB_CACHE). It does not read them: its reader fills
    in keys that a row lacks and turns texts that look like dates into dates.
    """

    def __init__(
        self,
        *,
        name: str,
        repo: str | None = HIPPORAG_2,
        revision: str | None = None,
        corpus: str | None = None,
        questions: str | None = None,
        folder: str | Path | None = None,
        shape: Shape = "auto",
        expected_passages: int | None = None,
        expected_questions: int | None = None,
        limit: int | None = None,
    ) -> None:
        if not name.strip():
            raise ConfigError(f"dataset.name must not be empty, got {name!r}; name the data set")
        if repo is not None and re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", repo, re.ASCII) is None:
            raise ConfigError(
                f"dataset.repo must be owner/name of a data set on the hub, got {repo!r}; "
                "for files on this machine set dataset.folder"
            )
        if revision is not None and not revision.strip():
            raise ConfigError(f"dataset.revision must be a commit, branch or tag, or null, got {revision!r}")
        self._reading = Reading(shape, limit, Expected(expected_passages, expected_questions))
        self._name = name
        self._corpus = _file(corpus or f"{name}_corpus.json", "corpus")
        self._questions = _file(questions or f"{name}.json", "questions")
        self._folder = (
            None if folder is None else Folder(Path(folder), self._corpus, self._questions, "dataset.folder")
        )
        self._hub = None if repo is None else HubFiles(repo, revision, (self._corpus, self._questions))
        self._commit = None if self._hub is None else self._hub.stated_commit()

    def load(self) -> Dataset:
        """Fetch both files if need be, and read them.

        The origin has `files` (names, sizes, SHA-256), their `fingerprint`, and the counts of the whole set
        as `passages` and `questions`; beside them `path`, or `repo`, `revision` (a commit) and
        `revision_from`: it was `stated`, or named by the `hub`, or, that being out of reach, by the `cache`.

        Raises `DatasetError` if a file is not to be had, as `LocalDataset.load` does, and for a count that
        is not the expected one; `ConfigError` where the package that fetches is not installed.
        """
        if self._folder is not None:
            corpus, questions = self._folder.require(self._corpus, self._questions)
            return self._reading.dataset(self._name, corpus, questions, {"path": str(self._folder.path)})
        hub, commit = self._resolved()
        corpus, questions = (hub.fetch(name, commit) for name in hub.names)
        where = {"repo": hub.repo, "revision": commit.sha, "revision_from": commit.found}
        return self._reading.dataset(self._name, corpus, questions, where)

    def documents(self) -> tuple[Document, ...]:
        """The corpus alone; there need be no questions. Raises as `load` does."""
        if self._folder is not None:
            return self._reading.documents(*self._folder.require(self._corpus))
        hub, commit = self._resolved()
        return self._reading.documents(hub.fetch(self._corpus, commit))

    def present(self) -> Presence:
        """Which of the two files are in the folder, or in the hub's cache; the hub is not asked."""
        expected = self._reading.expected
        if self._folder is not None:
            return self._folder.present(expected)
        hub = self._hub
        return Presence(
            place="no folder and no repository" if hub is None else str(hub.cache_folder()),
            corpus_name=self._corpus,
            questions_name=self._questions,
            corpus=None if hub is None else hub.cached(self._corpus, self._commit),
            questions=None if hub is None else hub.cached(self._questions, self._commit),
            expected_passages=expected.passages,
            expected_questions=expected.questions,
        )

    def _resolved(self) -> tuple[HubFiles, Commit]:
        if self._hub is None:
            raise DatasetError(
                f"the data set {self._name} has no known repository on the hub: put {self._corpus} and "
                f"{self._questions} into a folder and set dataset.folder=DIR, or set dataset.repo to "
                "a repository that has them"
            )
        if self._commit is None:
            self._commit = self._hub.commit()
        return self._hub, self._commit


def _file(name: str, option: str) -> str:
    """A file's name inside a repository, or a `ConfigError`: other names mean something else in a hub URL."""
    path = PurePosixPath(name)
    if (
        path.is_absolute()
        or ".." in path.parts
        or re.search(r"[\\@?#%:]", name)
        or path.suffix not in SUFFIXES
    ):
        raise ConfigError(
            f"dataset.{option} must name a file inside the repository or folder that ends in "
            f"{', '.join(SUFFIXES)}, got {name!r}"
        )
    return name
