import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import wandb

from hipporag_torch.errors import ConfigError, InputError
from hipporag_torch.tracking import FinishedRun, RunStart, files_and_wandb, tracked
from hipporag_torch.tracking.wandb import WandbTracker

from ...wandb_log import WandbLog, only_log
from .conftest import CONFIG

pytestmark = pytest.mark.usefixtures("wandb_home")


@pytest.fixture
def new_session(wandb_home: Path) -> Iterator[None]:
    """W&B reads the environment anew, and forgets it again."""
    wandb.teardown()
    yield
    wandb.teardown()


def recorded(start: RunStart, finished: FinishedRun, **options: Any) -> WandbLog:
    tracker = WandbTracker(mode="offline", **options)
    with tracked(tracker, start):
        tracker.progress(1, {"recall@5": 1.0, "seconds": 0.5})
        tracker.progress(3, {"recall@5": 0.75, "seconds": 1.5})
        tracker.finish(finished)
    return only_log(start.directory)


def test_the_summary_is_metrics_json(start: RunStart, finished: FinishedRun) -> None:
    log = recorded(start, finished)
    written = json.loads((start.directory / "metrics.json").read_text("utf-8"))
    assert len(written) == 14
    assert {name: log.summary[name] for name in written} == written
    others = {
        name for name in log.summary if not name.startswith(("_", "tables/", "charts/", "pic", "pages/"))
    }
    assert others == {*written, "machine"}
    assert log.summary["machine"] == {"cpus": 2}
    assert log.exit_code == 0


def test_the_run_says_what_it_was_made_with(start: RunStart, finished: FinishedRun) -> None:
    log = recorded(start, finished, project="p", entity="team", group="g", name="n", tags=["a", "b"])
    assert {key: value for key, value in log.config.items() if key != "_wandb"} == {
        **CONFIG,
        "facts": {"dataset": {"passages": 4}},
    }
    run = log.run
    assert (run.project, run.entity, run.run_group, run.display_name) == ("p", "team", "g", "n")
    assert (list(run.tags), run.job_type) == (["a", "b"], "evaluate")


def test_each_step_is_in_the_curves(start: RunStart, finished: FinishedRun) -> None:
    steps = [step for step in recorded(start, finished).history if "progress/questions" in step]
    assert [{k: v for k, v in step.items() if k.startswith("progress/")} for step in steps] == [
        {"progress/questions": 1, "progress/recall@5": 1.0, "progress/seconds": 0.5},
        {"progress/questions": 3, "progress/recall@5": 0.75, "progress/seconds": 1.5},
    ]


def test_tables_and_pictures_are_there(start: RunStart, finished: FinishedRun) -> None:
    log = recorded(start, finished)
    predictions = log.table("tables/predictions")
    assert [row[:2] for row in predictions["data"]] == [
        ["q1", "Où coule le\u2028Danube ?"],
        ["q2", "Why?"],
        ["q3", "Who?"],
    ]
    q1 = dict(zip(predictions["columns"], predictions["data"][0], strict=True))
    assert (q1["gold"], q1["ranked"], q1["scores"], q1["f1"]) == (["p1"], ["p2", "p1"], [0.75, 0.1], 1 / 3)
    assert log.table("tables/recall") == {
        "columns": ["k", "recall", "title/recall"],
        "data": [[1, 0.25, None], [5, 0.75, 1.0]],
    }
    assert log.table("tables/seconds")["data"] == [["index", 1.5], ["questions", 0.1 + 0.2]]
    assert log.table("tables/usage")["data"] == [["reading", 1, 20, 0.125], ["filter", 2, 9, None]]
    for name, kind, suffix in (
        ("pictures/worst/01", "image-file", ".png"),
        ("pictures/curves", "image-file", ".png"),
        ("pages/worst/01", "html-file", ".html"),
    ):
        media = log.summary[name]
        assert media["_type"] == kind
        original = start.directory / f"{name.split('/', 1)[1]}{suffix}"
        assert (log.folder / "files" / media["path"]).read_bytes() == original.read_bytes()
    assert log.summary["pictures/worst/01"]["caption"] == "recall@5 0.00: Où ?"


def test_the_artifact_names_the_runs_own_files(start: RunStart, finished: FinishedRun) -> None:
    artifact = recorded(start, finished).artifacts["evaluation"]
    assert {item.path: item.local_path for item in artifact.manifest.contents} == {
        name: str((start.directory / name).resolve())
        for name in ("config.yaml", "metrics.json", "predictions.jsonl")
    }


@pytest.mark.parametrize(("predictions", "rows"), [(2, 2), (9, 3), (None, 3)])
def test_the_table_of_predictions_is_as_long_as_asked(
    start: RunStart, finished: FinishedRun, predictions: int | None, rows: int
) -> None:
    log = recorded(start, finished, predictions=predictions)
    assert len(log.table("tables/predictions")["data"]) == rows


def test_no_table_of_predictions(start: RunStart, finished: FinishedRun) -> None:
    assert "tables/predictions" not in recorded(start, finished, predictions=0).summary


def test_no_key_and_no_command_line_in_what_is_written(
    start: RunStart,
    finished: FinishedRun,
    wandb_home: Path,
    new_session: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    key = "0123456789abcdef" * 2 + "01234567"
    monkeypatch.setenv("WANDB_API_KEY", key)
    monkeypatch.setattr("sys.argv", ["evaluate.py", "llm.headers.x=SECRET-HEADER"])
    log = recorded(start, finished)
    assert log.kinds.isdisjoint({"environment", "metadata"})
    files = [path for folder in (start.directory, wandb_home) for path in folder.rglob("*") if path.is_file()]
    assert any(path.suffix == ".wandb" for path in files)
    for path in files:
        content = path.read_bytes()
        assert key.encode() not in content, path
        assert b"SECRET-HEADER" not in content, path


def test_two_runs_in_one_process_at_once(
    start: RunStart, other_start: RunStart, finished: FinishedRun
) -> None:
    first, second = (WandbTracker(mode="offline", tags=["t"]) for _ in range(2))
    first.begin(start)
    second.begin(other_start)
    second.progress(2, {"recall@5": 0.0})
    first.progress(1, {"recall@5": 1.0})
    first.finish(finished)
    second.finish(replace(finished, pictures=()))
    one, other = only_log(start.directory), only_log(other_start.directory)
    assert (one.run.display_name, other.run.display_name) == ("musique-graph", "other")
    assert (one.run.run_group, other.run.run_group) == ("", "sweep-1")
    assert one.run.run_id != other.run.run_id
    assert [log.history[0]["progress/recall@5"] for log in (one, other)] == [1.0, 0.0]
    assert one.exit_code == other.exit_code == 0
    assert "pictures/curves" in one.summary
    assert "pictures/curves" not in other.summary


@pytest.mark.parametrize("error", [ValueError("no such passage"), KeyboardInterrupt()])
def test_a_run_that_raises_is_marked_as_failed(start: RunStart, error: BaseException) -> None:
    tracker = files_and_wandb(mode="offline")

    def run() -> None:
        with tracked(tracker, start):
            tracker.progress(1, {"recall@5": 1.0})
            raise error

    with pytest.raises(type(error)) as caught:
        run()
    assert caught.value is error
    log = only_log(start.directory)
    assert log.exit_code == 1
    reason = f"{type(error).__name__}: {error}".rstrip(": ")
    assert log.summary["failed"] == reason
    assert (start.directory / "failed.txt").read_text() == reason + "\n"
    assert log.history[0]["progress/recall@5"] == 1.0


def test_it_prints_nothing_and_says_how_to_upload(
    start: RunStart, finished: FinishedRun, capfd: pytest.CaptureFixture[str]
) -> None:
    tracker = files_and_wandb()
    with tracked(tracker, start):
        tracker.finish(finished)
    assert capfd.readouterr() == ("", "")
    (folder,) = (start.directory / "wandb").glob("offline-run-*")
    assert tracker.note == (
        "W&B: offline, since no API key was found in WANDB_API_KEY or the netrc file. Upload the run with: "
        f"wandb sync {folder}"
    )


def test_online_without_a_key_is_refused_before_anything_is_written(start: RunStart) -> None:
    tracker = WandbTracker(mode="online")
    with pytest.raises(
        ConfigError, match=r"needs an API key .* run wandb login, or choose tracker\.mode=off"
    ):
        tracker.begin(start)
    assert not start.directory.exists()


def test_a_key_that_cannot_be_one_is_named_without_showing_it(
    start: RunStart, new_session: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "not a key ")
    with pytest.raises(ConfigError, match=r"could not begin the run: .*; change that, or") as caught:
        WandbTracker(mode="online").begin(start)
    assert "not a key" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"mode": "disabled"}, r"tracker\.mode must be one of auto, online, offline, got 'disabled'"),
        ({"predictions": -1}, r"tracker\.predictions must be at least 0, or null for all, got -1"),
        ({"predictions": True}, r"tracker\.predictions must be at least 0"),
        ({"tags": "musique"}, r"tracker\.tags must be a list of texts, got 'musique'"),
        ({"tags": [""]}, r"tracker\.tags must be a list of texts"),
        ({"project": ""}, r"tracker\.project must not be empty"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        WandbTracker(**options)


def test_missing_wandb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hipporag_torch.tracking.wandb.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'hipporag-torch\[wandb\]', or choose tracker=files"):
        files_and_wandb()


def test_steps_without_a_run_are_refused(start: RunStart, finished: FinishedRun) -> None:
    tracker = WandbTracker(mode="offline")
    with pytest.raises(InputError, match="call begin first"):
        tracker.progress(1, {})
    tracker.fail("nothing is going on")
