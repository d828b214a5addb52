"""Taking turns between processes: one at a time embeds what a cache that they share lacks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from hipporag_torch.errors import BackendError


@contextmanager
def turn(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock `path` while the block runs; others wait for as long as it takes.

    The system drops the lock when its holder ends, however it ends. A thread may take it again while it
    holds it. path: an empty file, made if it is not there, in a folder that is. waiting: called once if
    somebody else holds it.

    Raises `BackendError` if the file cannot be made, or the file system has no locks.
    """
    # The library's stand-in for systems without locks outlives a killed holder: none is better.
    lock = FileLock(path, is_singleton=True, fallback_to_soft=False)
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            waiting()
            lock.acquire()
    except OSError as error:
        raise BackendError(
            f"the lock {path} of the embedding cache could not be taken: {error}; it must be a file that may "
            "be written, on a file system with locks; runtime.cache_dir names another folder, "
            "runtime.cache=false does without"
        ) from error
    try:
        yield
    finally:
        lock.release()
