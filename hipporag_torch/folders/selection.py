"""Which files of a folder are to be indexed, and why the others are not."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hipporag_torch.errors import InputError
from hipporag_torch.folders.globs import Globs
from hipporag_torch.folders.reports import SkipKind

GLOBS = ("*.md", "*.markdown", "*.txt", "*.rst")
MAX_BYTES = 1_000_000

DEPENDENCY_FOLDERS = frozenset(
    {
        "node_modules",
        "bower_components",
        "site-packages",
        "dist-packages",
        "venv",
        "virtualenv",
        "vendor",
        "third_party",
        "Pods",
        "__pycache__",
        "build",
        "dist",
        "out",
        "target",
        "_build",
        "htmlcov",
    }
)
"""Names of folders that hold what was installed or built."""

# A virtual environment and a cache say by these files what they are, whatever their names.
_MARKERS = ("pyvenv.cfg", "CACHEDIR.TAG")


@dataclass(frozen=True)
class Skipped:
    """A path that is not indexed, and why. A folder's ends with `/`, and stands for all that is below it."""

    path: str
    kind: SkipKind
    reason: str


@dataclass(frozen=True)
class Selection:
    """files: relative paths, ascending. unmatched: how many files no glob names; these are not skipped."""

    files: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    unmatched: int


def select(root: Path, globs: Globs, *, max_bytes: int = MAX_BYTES) -> Selection:
    """The files below `root`, a resolved path, by name and size; none of them is opened.

    A link to what is inside of the folder is followed unless that is read under another path. Raises
    `InputError` if the folder itself cannot be listed.
    """
    if max_bytes < 1:
        raise InputError(f"max_bytes must be at least 1, got {max_bytes}")
    walk = _Walk(root, globs, max_bytes)
    try:
        list(os.scandir(root))
    except OSError as error:
        raise InputError(f"the folder {str(root)!r} cannot be listed: {error.strerror}") from error
    walk.folders(str(root), "")
    walk.follow_links()
    skipped = sorted(walk.skipped, key=lambda skipped: skipped.path)
    return Selection(tuple(sorted(walk.files)), tuple(skipped), walk.unmatched)


@dataclass
class _Walk:
    """What has been seen so far. real: by resolved path, what listed folders and files are called."""

    root: Path
    globs: Globs
    max_bytes: int
    files: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    unmatched: int = 0
    real: dict[str, str] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)

    def skip(self, path: str, kind: SkipKind, reason: str) -> None:
        self.skipped.append(Skipped(path, kind, reason))

    def folders(self, directory: str, path: str) -> None:
        """Walk `directory`, which is called `path` ("" or ending with `/`), and all real folders below it."""
        todo = [(directory, path)]
        while todo:
            directory, path = todo.pop()
            self.real[directory] = path
            for entry in self._listed(directory, path):
                name = path + entry.name
                if not _is_unicode(entry.name):
                    self._odd_name(entry, path)
                elif entry.is_symlink():
                    self.links.append((entry.path, name))
                elif not entry.is_dir(follow_symlinks=False):
                    self._file(entry.path, name)
                elif self._is_wanted(entry.path, name):
                    todo.append((entry.path, f"{name}/"))

    def follow_links(self) -> None:
        """After all real folders, so that what a link leads to keeps its own path."""
        while self.links:
            links, self.links = sorted(self.links, key=lambda link: link[1]), []
            for link, path in links:
                self._link(link, path)

    def _listed(self, directory: str, path: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(directory) as entries:
                yield from sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:
            return  # it went while the folder was walked
        except OSError as error:
            self.skip(path, "unreadable", f"the folder cannot be listed: {error.strerror}")

    def _is_wanted(self, directory: str, path: str) -> bool:
        name = path.rpartition("/")[2]
        if name.startswith("."):
            self.skip(f"{path}/", "hidden", "a hidden folder")
        elif name in DEPENDENCY_FOLDERS or name.endswith((".egg-info", ".dist-info")):
            self.skip(f"{path}/", "dependencies", f"{name} is a folder of what was installed or built")
        elif marker := next((m for m in _MARKERS if os.path.lexists(os.path.join(directory, m))), None):
            self.skip(f"{path}/", "dependencies", f"a folder with {marker}: it was installed or is a cache")
        else:
            return True
        return False

    def _file(self, file: str, path: str) -> bool:
        """Whether the file is taken."""
        name = path.rpartition("/")[2]
        if not self.globs.match(path):
            self.unmatched += 1
            return False
        if name.startswith("."):
            self.skip(path, "hidden", "a hidden file")
            return False
        try:
            status = os.stat(file)
        except FileNotFoundError:
            return False
        except OSError as error:
            self.skip(path, "unreadable", f"the file cannot be looked at: {error.strerror}")
            return False
        if not stat.S_ISREG(status.st_mode):
            self.skip(path, "not_a_file", "neither a file nor a folder, but a pipe, socket or device")
        elif status.st_size > self.max_bytes:
            self.skip(path, "too_large", too_large(status.st_size, self.max_bytes))
        else:
            self.files.append(path)
            self.real[file] = path
            return True
        return False

    def _link(self, link: str, path: str) -> None:
        target = os.path.realpath(link)
        is_folder = os.path.isdir(target)
        if not is_folder and not self.globs.match(path):
            self.unmatched += 1
            return
        shown = f"{path}/" if is_folder else path
        if not os.path.exists(target):
            self.skip(shown, "link", "a link that leads nowhere, or to itself")
        elif not Path(target).is_relative_to(self.root):
            self.skip(shown, "link", "a link that leads out of the folder")
        elif target in self.real:
            there = self.real[target] or "./"
            self.skip(shown, "link", f"a link to {there}, which is read under that path")
        elif not is_folder:
            self._file(target, path)
        elif self._is_wanted(target, path):
            self.folders(target, f"{path}/")

    def _odd_name(self, entry: os.DirEntry[str], path: str) -> None:
        shown = path + os.fsencode(entry.name).decode("utf-8", "backslashreplace")
        if entry.is_dir():
            self.skip(f"{shown}/", "name", "the folder's name is not valid Unicode")
        elif self.globs.match(shown):
            self.skip(shown, "name", "the file's name is not valid Unicode")
        else:
            self.unmatched += 1


def too_large(size: int, max_bytes: int) -> str:
    """Why a file of `size` bytes is skipped."""
    return f"{size:,} bytes, more than max_bytes={max_bytes:,}"


def _is_unicode(name: str) -> bool:
    # The file system's undecodable bytes come as lone surrogates.
    return not any("\ud800" <= character <= "\udfff" for character in name)
