from pathlib import Path

import pytest

from hipporag_torch.errors import InputError
from hipporag_torch.evaluation.run_folders import find_runs, run_names


def finished(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text("{}", encoding="utf-8")
    return folder


def test_a_folder_of_runs_stands_for_them_in_natural_order(tmp_path: Path) -> None:
    below = [finished(tmp_path / "sweep" / name) for name in ("1", "2", "10", "random 3", "random 11")]
    finished(tmp_path / "sweep" / ".hydra")
    (tmp_path / "sweep" / "multirun.yaml").touch()
    alone = finished(tmp_path / "alone")
    finished(alone / "worst")
    assert find_runs([alone, tmp_path / "sweep"]) == ((alone, *below), ())


def test_a_run_put_first_is_not_repeated(tmp_path: Path) -> None:
    runs = [finished(tmp_path / name) for name in ("a", "b", "c")]
    put_first = find_runs([tmp_path / "c", tmp_path])
    assert put_first.runs == (runs[2], *runs[:2])
    assert find_runs([runs[0], runs[0]]).runs == (runs[0], runs[0])


def test_unfinished_runs_are_told(tmp_path: Path) -> None:
    done = finished(tmp_path / "0")
    (tmp_path / "1").mkdir()
    assert find_runs([tmp_path]) == ((done,), (tmp_path / "1",))


def test_folders_without_runs_stand_for_themselves(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    nowhere = tmp_path / "nowhere"
    assert find_runs([tmp_path, str(nowhere)]) == ((tmp_path, nowhere), ())


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["/runs/dense", "/runs/graph"], ("dense", "graph")),
        (["/runs/a/0", "/runs/b/0", "/runs/c"], ("a/0", "b/0", "c")),
        (["/runs/x/a/0", "/runs/x/0", "/0"], ("a/0", "x/0", "/0")),
        (["/runs/dense", "/runs/./dense/", "/runs/graph"], ("dense", "dense (2)", "graph")),
    ],
)
def test_as_much_of_the_path_as_tells_them_apart(folders: list[str], names: tuple[str, ...]) -> None:
    assert run_names(list(map(Path, folders))) == names


def test_given_names_fit_the_runs() -> None:
    folders = [Path("a"), Path("b")]
    assert run_names(folders, ["dense", "graph"]) == ("dense", "graph")
    for names in (["dense"], ["dense", "dense"], ["dense", ""]):
        with pytest.raises(InputError, match="names must give each of the 2 runs a name of its own, got"):
            run_names(folders, names)


def test_jobs_of_a_sweep_are_called_by_what_was_swept(tmp_path: Path) -> None:
    for job, damping in enumerate(("0.3", "0.5")):
        (tmp_path / str(job) / ".hydra").mkdir(parents=True)
        text = f"- dataset=sample\n- ppr.damping={damping}\n- retriever=dense\n"
        (tmp_path / str(job) / ".hydra" / "overrides.yaml").write_text(text)
    folders = [tmp_path / "0", tmp_path / "1"]
    assert run_names(folders) == ("damping=0.3", "damping=0.5")
    assert run_names(folders, ["a", "b"]) == ("a", "b")
    # With another run beside them, the paths tell them apart.
    assert run_names([*folders, tmp_path / "other" / "2"]) == ("0", "1", "2")


def test_jobs_that_overrides_do_not_tell_apart_are_called_by_their_folders(tmp_path: Path) -> None:
    for job in "01":
        (tmp_path / job / ".hydra").mkdir(parents=True)
        (tmp_path / job / ".hydra" / "overrides.yaml").write_text("- dataset=sample\n")
    assert run_names([tmp_path / "0", tmp_path / "1"]) == ("0", "1")
