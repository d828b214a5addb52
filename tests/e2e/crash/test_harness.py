"""The harness itself: that it sees every step, and finds each fault of the toys that have one."""

from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from .client import Step, Zygote
from .conftest import MakeLab
from .crash_lab import MODES, CrashLab, check_all_or_nothing
from .ordering import unsynced
from .places import read_only, small_disk

TOYS = Path(__file__).with_name("toys.py")


@pytest.fixture(scope="session")
def zygote(zygote_of: Callable[[Path], Zygote]) -> Zygote:
    return zygote_of(TOYS)


@pytest.fixture(scope="session")
def template(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("template") / "toy"
    directory.mkdir()
    zygote.run("make", directory).completed_or_fail("make")
    return directory


@pytest.fixture
def lab(crash_lab: MakeLab, template: Path) -> CrashLab:
    return crash_lab(TOYS, template)


def test_every_durable_step_is_seen_those_of_sqlite_too(lab: CrashLab) -> None:
    journal, records = "names.sqlite-journal", "names.sqlite"
    steps = [(step.call.replace("fdatasync", "fsync"), step.path) for step in lab.steps("good")]
    # How many writes a page of the journal takes is SQLite's affair.
    assert [step for step, _ in groupby(steps)] == [
        ("create", "partial"),
        ("write", "partial"),
        ("fsync", "partial"),
        ("rename", "partial"),
        ("fsync", "."),
        ("open", records),
        ("create", journal),
        ("pwrite", journal),
        ("fsync", journal),
        ("fsync", "."),
        ("pwrite", journal),
        ("fsync", journal),
        ("pwrite", records),
        ("fsync", records),
        ("unlink", journal),
        ("unlink", "before"),
    ]


def test_steps_that_python_does_not_take_itself_are_seen(lab: CrashLab) -> None:
    steps = [(step.call, step.path, step.detail) for step in lab.steps("by_other_ways")]
    assert [step for step in steps if step[0] != "sendfile"] == [
        ("create", "stdio", "0"),
        ("write", "stdio", "23"),
        ("create", "vector", "0"),
        ("writev", "vector", "10"),
        ("create", "copy", "0"),
        ("mkdir", "folder", "0"),
        ("link", "vector", "folder/linked"),
        ("unlink", "folder/linked", "0"),
        ("unlink", "folder", "0"),
        ("truncate", "copy", "3"),
    ]


def test_a_write_is_torn_in_the_middle_whoever_makes_it(lab: CrashLab) -> None:
    left: dict[str, bytes] = {}
    for trial in lab.trials("by_other_ways", ["tear"]):
        torn = trial.report.steps[-1].path
        left[torn] = (trial.directory / torn).read_bytes()
    assert left["stdio"] == b"by the C li"
    assert left["vector"] == b"abcde"


def test_a_sound_operation_is_all_or_nothing_whatever_goes_wrong(lab: CrashLab) -> None:
    steps = lab.steps("good")
    seen = check_all_or_nothing(lab, "good", "state", lab.trials("good", list(MODES)))
    writing, taking = sum(step.writes for step in steps), sum(step.takes_space for step in steps)
    assert seen.total() == 2 * len(steps) + 2 * writing + 2 * taking
    assert min(seen["before"], seen["after"]) >= 2
    assert not unsynced(steps)


@pytest.mark.parametrize(
    ("operation", "mode", "complaint"),
    [
        ("named_too_early", "kill", "after is named and not there"),
        ("named_too_early", "eio", "after is named and not there"),
        ("in_place", "kill", "0 bytes of before"),
        ("in_place", "tear", "4500 bytes of before"),
        ("silent", "short", "4500 bytes of after"),
        ("swallowing", "enospc", "lost without a word"),
        ("swallowing", "full", "lost without a word"),
        ("wandering", "kill", "its steps were"),
    ],
)
def test_an_unsound_operation_is_caught(lab: CrashLab, operation: str, mode: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_all_or_nothing(lab, operation, "state", lab.trials(operation, [mode]))


def test_what_only_a_power_failure_shows_is_seen_in_the_order_of_the_steps(lab: CrashLab) -> None:
    assert unsynced(lab.steps("unsynced")) == [
        "step 3 (rename partial after) gives a name to what is not synced",
        "step 2 (write partial 9001): after is never synced after it",
    ]


def test_a_name_that_nothing_refers_to_may_stand_for_what_is_not_synced() -> None:
    calls = [
        "create .tmp 0",
        "write .tmp 9",
        "rename .tmp a.partial",
        "fsync a.partial 0",
        "rename a.partial a",
    ]
    steps = [Step(number, *call.split()) for number, call in enumerate(calls, start=1)]
    assert unsynced(steps, scratch=(".partial",)) == [
        "step 5 (rename a.partial a): the directory . is never synced after it"
    ]
    assert unsynced([*steps, Step(6, "fsync", ".", "0")], scratch=(".partial",)) == []


def test_a_torn_write_ends_in_the_middle_and_a_disk_fills_up_in_the_middle_of_one(lab: CrashLab) -> None:
    torn = next(lab.trials("good", ["tear"]))
    assert (torn.directory / "partial").read_bytes() == b"a" * 4500
    assert torn.report.killed
    trials = lab.trials("good", ["full"])
    assert next(trials).report.raised.startswith("OSError: [Errno 28] No space left on device: ")
    full = next(trials)
    assert (full.directory / "partial").read_bytes() == b"a" * 4500
    assert full.report.raised == "OSError: [Errno 28] No space left on device"
    assert [str(step) for step in full.report.steps[-2:]] == ["write partial 9001", "write partial 4501"]


def test_a_failure_on_top_of_a_failure_can_be_tried(lab: CrashLab) -> None:
    journal_is_hot = "unlink names.sqlite-journal"
    first = next(trial for trial in lab.trials("good", ["kill"]) if journal_is_hot in trial.description)
    again = lab.keep(first.directory)
    # SQLite rolls the first failure back before it goes on, in steps that can go wrong too.
    assert again.count("good") > lab.count("good")
    assert check_all_or_nothing(again, "good", "state", again.trials("good", ["kill", "tear"]))["before"]


def test_an_operation_is_killed_at_random_moments_the_same_ones_for_a_seed(lab: CrashLab) -> None:
    seen = check_all_or_nothing(lab, "good", "state", lab.random_kills("good", count=12, seed=7))
    assert seen.total() == 12


def test_an_operation_that_does_not_end_is_ended_and_named(zygote: Zygote, tmp_path: Path) -> None:
    report = zygote.run("hanging", tmp_path, timeout=0.2)
    assert report.timed_out
    assert not report.killed
    with pytest.raises(AssertionError, match="hanging did not end in time"):
        report.completed_or_fail("hanging")


def test_no_step_of_many_threads_is_lost(zygote: Zygote, tmp_path: Path) -> None:
    steps = zygote.run("threaded", tmp_path).steps
    assert len([step for step in steps if step.call == "write"]) == 1600
    assert len(steps) == 1604


def test_a_small_disk_refuses_and_leaves_what_was(template: Path, tmp_path: Path) -> None:
    with small_disk(TOYS, tmp_path, mebibytes=2) as (zygote, disk):
        seen = set()
        for free in range(0, 40_000, 4096):
            report = zygote.run("good", disk / "toy", template=template, free=free)
            state = zygote.run("state", disk / "toy", free=1 << 19).completed_or_fail("state")
            assert state == ("after" if report.completed else "before"), f"{free} bytes left: {report}"
            seen.add(report.raised)
            zygote.run("good", disk / "toy").completed_or_fail("good, with space again")
    assert seen == {
        "",
        "OSError: [Errno 28] No space left on device",
        "OperationalError: database or disk is full",
    }
    assert not list(tmp_path.iterdir()), "the disk was to be seen by the zygote alone"


def test_a_read_only_directory_can_be_looked_at(zygote: Zygote, template: Path, tmp_path: Path) -> None:
    directory = tmp_path / "toy"
    zygote.run("state", directory, template=template)
    with read_only(TOYS, directory) as reader:
        assert reader.run("state", directory).result == "before"
        raised = reader.run("write_a_file", directory).raised
    assert raised.startswith("OSError: [Errno 30] Read-only file system")
    assert zygote.run("write_a_file", directory).result == "written"
