"""Folders of runs: which runs they stand for, and what to call these."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation.files import METRICS

OVERRIDES = Path(".hydra/overrides.yaml")


class RunFolders(NamedTuple):
    """`runs` are in order; `unfinished` lie beside some of them, without metrics."""

    runs: tuple[Path, ...]
    unfinished: tuple[Path, ...]


def find_runs(folders: Sequence[str | Path]) -> RunFolders:
    """The runs that `folders` stand for: a folder with runs below it for these, in natural order (1, 2, 10).

    A run that came before it is not repeated, so that one of them can be put first. A folder without any
    stands for itself: whoever reads it says what it lacks.
    """
    runs: list[Path] = []
    unfinished: list[Path] = []
    for folder in map(Path, folders):
        if (folder / METRICS).is_file() or not folder.is_dir():
            runs.append(folder)
            continue
        below = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
        below.sort(key=lambda path: _natural(path.name))
        finished = [path for path in below if (path / METRICS).is_file()]
        before = {os.path.abspath(run) for run in runs}
        runs += [path for path in finished or [folder] if os.path.abspath(path) not in before]
        unfinished += [path for path in below if path not in finished] if finished else []
    return RunFolders(tuple(runs), tuple(unfinished))


def run_names(folders: Sequence[Path], names: Sequence[str] | None = None) -> tuple[str, ...]:
    """What to call the runs in `folders`: `names`, what tells the jobs of a sweep from each other, or as much
    of each path's end as tells it from the others.

    A folder that is there again gets its number. Raises `InputError` unless there is one name for each,
    all different.
    """
    if names is not None:
        if len(names) != len(folders) or len(set(names)) != len(names) or not all(names):
            raise InputError(
                f"names must give each of the {len(folders)} runs a name of its own, got "
                f"{len(names)}: {', '.join(names)}; the runs are {', '.join(map(str, folders))}"
            )
        return tuple(names)
    if told := _sweep_names(folders):
        return told
    paths = [Path(os.path.abspath(folder)) for folder in folders]
    short = {path: _short_name(path, paths) for path in paths}
    times: dict[Path, int] = {}
    found = []
    for path in paths:
        times[path] = times.get(path, 0) + 1
        found.append(short[path] if times[path] == 1 else f"{short[path]} ({times[path]})")
    return tuple(found)


def _sweep_names(folders: Sequence[Path]) -> tuple[str, ...]:
    """The overrides in which the jobs of a sweep differ, as `damping=0.5 beta=1`; nothing for other runs."""
    files = [Path(folder) / OVERRIDES for folder in folders]
    if len({file.parents[2] for file in files}) != 1 or not all(file.is_file() for file in files):
        return ()
    stated = [yaml.safe_load(file.read_text(encoding="utf-8")) or [] for file in files]
    shared = set.intersection(*map(set, stated))
    names = [" ".join(_last(override) for override in job if override not in shared) for job in stated]
    return tuple(names) if len(set(names)) == len(names) and all(names) else ()


def _last(override: str) -> str:
    """`damping=0.5` of `ppr.damping=0.5`."""
    key, _, value = override.partition("=")
    return f"{key.rpartition('.')[2]}={value}"


def _short_name(path: Path, paths: Sequence[Path]) -> str:
    parts = path.parts
    for length in range(1, len(parts) + 1):
        end = parts[-length:]
        if not any(other.parts[-length:] == end for other in paths if other != path):
            return "/".join(end).replace("//", "/")
    return str(path)


def _natural(name: str) -> tuple[tuple[str, int], ...]:
    """Numbers by value: 2 before 10, whatever is around them. Equal ones by their digits are kept apart."""
    pieces = re.findall(r"(\D*)(\d*)", name)
    return (*((text, int(digits or -1)) for text, digits in pieces), (name, 0))
