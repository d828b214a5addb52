"""Files of a data set repository on the Hugging Face hub: found in the cache, or fetched into it."""

import os
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import quote

from hipporag_torch.errors import ConfigError, DatasetError

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SECONDS = 10.0


@dataclass(frozen=True)
class Commit:
    """One state of a repository, for ever; `found` says who named it."""

    sha: str
    found: Literal["stated", "hub", "cache"]


@dataclass(frozen=True)
class HubFiles:
    """Files `names` of the data set repository `repo` (owner/name).

    revision: a commit, branch or tag; None is the branch main.
    """

    repo: str
    revision: str | None
    names: tuple[str, ...]

    def stated_commit(self) -> Commit | None:
        """The commit that `revision` is by itself."""
        if self.revision is None or _COMMIT.fullmatch(self.revision) is None:
            return None
        return Commit(self.revision, "stated")

    def cached(self, name: str, commit: Commit | None = None) -> Path | None:
        """A file of the commit, or of what the cache last knew as `revision`, if the cache has it."""
        from huggingface_hub import try_to_load_from_cache

        revision = commit.sha if commit else self.revision
        path = try_to_load_from_cache(self.repo, name, revision=revision, repo_type="dataset")
        return Path(path) if isinstance(path, str) else None

    def commit(self) -> Commit:
        """The commit that `revision` is now: as stated, by the hub, or, where that can't be asked, the cache.

        Raises `DatasetError` if the hub has no such repository or revision, or if nothing knows.
        """
        stated = self.stated_commit()
        if stated is not None:
            return stated
        if _offline():
            return self._cached_commit(_not_asked())
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError

        try:
            sha = HfApi().dataset_info(self.repo, revision=self.revision, timeout=_SECONDS).sha
        except (*_failures(), ValueError) as error:
            # A hub that says no is not overruled by the cache; one that is busy or broken has not said it.
            status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
            if 400 <= status < 500 and status not in (408, 429):
                raise self._refused(_reason(error)) from error
            return self._cached_commit(_reason(error), error)
        if sha is None or _COMMIT.fullmatch(sha) is None:
            raise self._refused(f"the hub named {sha!r} as its commit, expected 40 hexadecimal digits")
        return Commit(sha, "hub")

    def fetch(self, name: str, commit: Commit) -> Path:
        """A file, from the cache or else from the hub.

        Raises `ConfigError` where the package datasets is not installed, `DatasetError` if the hub does not
        deliver.
        """
        # The package's download manager asks the hub even for what is in the cache.
        path = self.cached(name, commit)
        if path is not None:
            return path
        if _offline():
            raise self._refused(_not_asked(), commit, name)
        if find_spec("datasets") is None:
            raise ConfigError(
                f"fetching {name} of {self.repo} needs the package datasets, which is not installed; "
                "pip install 'hipporag-torch[datasets]', or put the files into a folder and set "
                "dataset.folder=DIR"
            )
        try:
            if commit.found == "hub":
                # By the branch's name, so that the cache learns which commit it is.
                path = _download(self.repo, self.revision or "main", name)
                if _commit_of(path, name) == commit.sha:
                    return path
            return _download(self.repo, commit.sha, name)
        except (*_failures(), ValueError) as error:
            raise self._refused(_reason(error), commit, name) from error

    def cache_folder(self) -> Path:
        """Where the cache keeps the repository, there or not."""
        from huggingface_hub import constants

        return Path(constants.HF_HUB_CACHE) / f"datasets--{self.repo.replace('/', '--')}"

    def _cached_commit(self, why: str, error: Exception | None = None) -> Commit:
        for name in self.names:
            path = self.cached(name)
            if path is not None:
                return Commit(_commit_of(path, name), "cache")
        raise self._refused(why) from error

    def _refused(self, why: str, commit: Commit | None = None, name: str = "") -> DatasetError:
        """`name` is the file that is not to be had; without it, all of them that the cache lacks."""
        from huggingface_hub import constants

        missing = [name] if name else [each for each in self.names if self.cached(each) is None]
        where = f"{self.repo} at {commit.sha if commit else self.revision or 'main'}"
        return DatasetError(
            f"there is no {' and no '.join(missing or self.names)} of the hub's data set {where}: "
            f"not in the cache {self.cache_folder()}, and not from {constants.ENDPOINT} ({why}). Put "
            f"{' and '.join(self.names)} into a folder and set dataset.folder=DIR; or copy that cache from a "
            "machine that has them; or connect this machine to the hub and check dataset.repo and "
            "dataset.revision"
        )


def _download(repo: str, revision: str, name: str) -> Path:
    from datasets import DownloadManager

    # Of one address it makes one path.
    return Path(str(DownloadManager().download(f"hf://datasets/{repo}@{quote(revision, safe='')}/{name}")))


def _commit_of(path: Path, name: str) -> str:
    """The commit of a file in the cache: …/snapshots/COMMIT/NAME, and the name may have folders."""
    return path.parents[len(PurePosixPath(name).parts) - 1].name


def _offline() -> bool:
    from huggingface_hub import constants

    return constants.HF_HUB_OFFLINE


def _not_asked() -> str:
    # Either makes the hub's client stay offline.
    names = [name for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") if os.environ.get(name)]
    return f"not asked: {' and '.join(names) or 'HF_HUB_OFFLINE'} is set"


def _failures() -> tuple[type[Exception], ...]:
    """What goes wrong between here and the hub."""
    from huggingface_hub.errors import HfHubHTTPError

    # The hub's client library changed its HTTP library twice; this is the root of that library's errors.
    return OSError, HfHubHTTPError.__mro__[1]


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2]).rstrip(".")[:300] or type(error).__name__
