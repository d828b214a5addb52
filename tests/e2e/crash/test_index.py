"""The durable index against kills, torn writes and full disks at every step of every change."""

import os
from itertools import islice
from pathlib import Path

import pytest

from . import operations
from .client import Zygote
from .conftest import MakeLab
from .crash_lab import MODES, check_all_or_nothing
from .ordering import unsynced
from .places import read_only, small_disk

OPERATIONS = Path(operations.__file__)
CHANGES = ("add", "update", "remove", "compact", "reembed")
# Kills come before every step; the other faults before each third one, HIPPORAG_ALL_FAULTS=1 at all of them.
STRIDE = 1 if os.environ.get("HIPPORAG_ALL_FAULTS") else 3
# Written in place: it says who writes, and no state depends on it.
SCRATCH = (".partial", "writer.lock")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("template") / "index"
    operations.make(directory)
    return directory


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_killed_before_any_step_it_is_as_before_or_as_after(
    crash_lab: MakeLab, template: Path, change: str
) -> None:
    lab = crash_lab(OPERATIONS, template)
    seen = check_all_or_nothing(lab, change, "state", lab.trials(change, ["kill"]))
    assert seen["before"]
    assert seen["after"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "kill"])
def test_an_add_survives_every_other_fault_at_its_steps(
    crash_lab: MakeLab, template: Path, mode: str
) -> None:
    lab = crash_lab(OPERATIONS, template)
    trials = islice(lab.trials("add", [mode]), 0, None, STRIDE)
    seen = check_all_or_nothing(lab, "add", "state", trials)
    # A short write is no failure, the next one writes the rest; most others hit what comes before the commit.
    assert seen["after" if mode == "short" else "before"]


@pytest.mark.slow
def test_a_making_that_is_killed_can_be_begun_again(crash_lab: MakeLab, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    lab = crash_lab(OPERATIONS, empty)
    for trial in lab.trials("create", ["kill"]):
        lab.run("create", trial.directory)
        after = lab.inspect("state", trial.directory)
        assert len(after["passages"]) == 1, trial.description


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_is_named_before_it_is_on_the_disk(crash_lab: MakeLab, template: Path, change: str) -> None:
    assert not unsynced(crash_lab(OPERATIONS, template).steps(change), scratch=SCRATCH)


@pytest.mark.slow
@pytest.mark.parametrize("free", [0, 8_000, 20_000, 40_000])
def test_a_full_disk_is_an_error_and_leaves_what_was(template: Path, tmp_path: Path, free: int) -> None:
    with small_disk(OPERATIONS, tmp_path, mebibytes=8) as (zygote, disk):
        before = _state(zygote, disk / "before", template)
        report = zygote.run("add", disk / "index", template=template, free=free)
        assert report.raised
        assert "StoreError" in report.raised
        assert zygote.run("state", disk / "index", free=1 << 20).completed_or_fail("state") == before


def _state(zygote: Zygote, directory: Path, template: Path) -> object:
    found = zygote.run("state", directory, template=template, free=1 << 20)
    return found.completed_or_fail("state")


@pytest.mark.slow
def test_a_read_only_mount_can_be_searched(template: Path) -> None:
    with read_only(OPERATIONS, template) as zygote:
        result = zygote.run("ask", template).completed_or_fail("ask")
        assert result == ["graph", "Ada Vale founded Northwind Press"]
