"""compare.py on run folders that are written here: what is in them is known exactly."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hipporag_torch.evaluation import Evaluation, GoldCoverage, QuestionRow, write_run

Run = Callable[..., Any]
QUESTIONS = ("Who founded it?", "Where is it?", "Whose [ferry] is it?", "日本の首都はどこですか？")


def write(folder: Path, values: tuple[float, ...], *, em: bool = False, walks: bool = True) -> Path:
    """A run whose question i has recall@5 `values[i]`: both gold passages found, the first or none."""
    rows = []
    for number, value in enumerate(values):
        gold = (f"g{number}", f"h{number}")
        found = gold[: round(2 * value)]
        metrics = {"recall@5": value, "recall@10": 1.0, "mrr": float(value > 0), "title/recall@5": value}
        rows.append(
            QuestionRow(
                id=f"q{number}",
                question=QUESTIONS[number],
                route="graph" if walks else "dense:requested",
                gold_ids=gold,
                ranked_ids=("x", *found),
                scores=(1.0,) * (1 + len(found)),
                answers=("Oslo",),
                metrics=metrics | ({"em": 1.0} if em else {}),
                seeds=(("oslo", 0.7), (f"of {folder.name}", 0.3)) if walks else (),
                gold_steps={gold[0]: 1, gold[1]: None} if walks else {},
            )
        )
    gold = GoldCoverage(len(rows), 0, 2 * len(rows), 0, 0, 0)
    write_run(folder, Evaluation({}, tuple(rows), {"graph": len(rows)}, gold), extra={})
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep's folder: run 10 is the best."""
    folder = tmp_path_factory.mktemp("sweep")
    write(folder / "1", (0.0, 0.5, 0.5, 1.0))
    write(folder / "2", (0.0, 0.5, 0.5, 1.0), walks=False)
    write(folder / "9", (0.5, 0.5, 0.0, 1.0))
    write(folder / "10", (1.0, 1.0, 0.5, 1.0), em=True)
    (folder / "multirun.yaml").touch()
    return folder


def compared(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "comparison.json").read_text("utf-8"))


def test_two_runs(fork_script: Run, runs: Path, tmp_path: Path) -> None:
    done = fork_script("compare", str(runs / "9"), str(runs / "10"), f"hydra.run.dir={tmp_path}")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[:2] == [f"A {runs / '9'}", f"B {runs / '10'}"]
    assert "B against A, 4 questions; low and high bound B − A at 95%" in done.out
    assert "recall@5 0.500 0.875 +0.375 +0.125 +0.500" in " ".join(done.out.split())
    won = done.out[done.out.index("won by recall@5: 3") :].splitlines()
    assert won[1:7] == [
        "  0.50 → 1.00  Who founded it?",
        "               gold at 2, – → 2, 3",
        "               seeds only A: of 9  only B: of 10",
        "  0.50 → 1.00  Where is it?",
        "               gold at 2, – → 2, 3",
        "               seeds only A: of 9  only B: of 10",
    ]
    assert "  0.00 → 0.50  Whose [ferry] is it?" in won
    assert "lost by recall@5: 0" in won
    assert f"written to {tmp_path}: comparison.json, table.md, comparison.png" in won
    assert (tmp_path / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_where_two_runs_differ(fork_script: Run, runs: Path, tmp_path: Path) -> None:
    """In walks alone: groups that all questions are in are in the file, and not on the screen."""
    given = [str(runs / "1"), str(runs / "2"), "names=[graph,dense]", "png=false"]
    done = fork_script("compare", *given, f"hydra.run.dir={tmp_path}")
    assert (done.status, done.err) == (0, "")
    assert "where they differ" not in done.out
    (found,) = compared(tmp_path)["differences"]
    assert (found["a"], found["b"], found["metric"]) == ("graph", "dense", "recall@5")
    group = {"questions": 4, "won": 0, "lost": 0, "difference": 0.0}
    assert found["groups"] == {
        "route": [{"name": "graph → dense:requested", **group}],
        "gold passages": [{"name": "2", **group}],
        "farthest gold in A": [{"name": "far", **group}],
        "farthest gold in B": [{"name": "no seeds known", **group}],
        "seeds in common": [{"name": "no seeds known", **group}],
    }


def test_questions_fall_into_groups(fork_script: Run, tmp_path: Path) -> None:
    a = write(tmp_path / "a", (0.0, 0.5, 0.5))
    b = write(tmp_path / "b", (0.5, 0.5, 0.0))
    lines = (b / "predictions.jsonl").read_text("utf-8").splitlines(keepends=True)
    lines[2] = lines[2].replace('"graph"', '"dense:no_facts"')
    (b / "predictions.jsonl").write_text("".join(lines), encoding="utf-8")
    done = fork_script("compare", str(a), str(b), "png=false", f"hydra.run.dir={tmp_path}")
    assert [line.split() for line in done.out.splitlines() if " graph " in line][:2] == [
        ["route", "graph", "2", "1", "0", "+0.250"],
        ["graph", "→", "dense:no_facts", "1", "0", "1", "-0.500"],
    ]
    assert "gold at 2, – → –, –  route graph → dense:no_facts" in done.out


def test_a_sweep_of_four_runs(fork_script: Run, runs: Path, tmp_path: Path) -> None:
    done = fork_script("compare", str(runs), f"hydra.run.dir={tmp_path}")
    assert (done.status, done.err) == (0, "")
    assert [line.split() for line in done.out.splitlines()[:4]] == [
        [name, str(runs / name)] for name in ("1", "2", "9", "10")
    ]
    assert "recall@5 against 1, 0.500; low and high bound Δ" in done.out
    assert "10 0.875 +0.375 +0.000 +0.750 94% 2 0" in " ".join(done.out.split())
    table = (tmp_path / "table.md").read_text("utf-8").splitlines()
    assert [[cell.strip() for cell in line.split("|")[1:-1]] for line in table[:6]] == [
        ["run", "R@5", "R@10", "em", "Δ R@5", "won", "lost"],
        [":---", *["---:"] * 6],
        ["1", ".500 [.12, .88]", "1.000 [1.00, 1.00]", "–", "–", "–", "–"],
        [
            "2",
            ".500 [.12, .88]",
            "1.000 [1.00, 1.00]",
            "–",
            "+.000 [+.000, +.000]",
            "0",
            "0",
        ],
        ["9", ".500 [.12, .88]", "1.000 [1.00, 1.00]", "–", "+.000 [-.375, +.375]", "1", "1"],
        [
            "10",
            ".875 [.62, 1.00]",
            "1.000 [1.00, 1.00]",
            "1.000 [1.00, 1.00]",
            "+.375 [+.000, +.750]",
            "2",
            "0",
        ],
    ]
    found = compared(tmp_path)
    assert [run["name"] for run in found["runs"]] == ["1", "2", "9", "10"]
    assert found["runs"][3]["metrics"]["recall@5"] == {
        "mean": 0.875,
        "low": 0.625,
        "high": 1.0,
        "questions": 4,
    }
    assert found["questions"] == {f"q{number}": question for number, question in enumerate(QUESTIONS)}
    assert [(c["a"], c["b"]) for c in found["differences"]] == [("1", "2"), ("1", "9"), ("1", "10")]
    best = next(c for c in found["comparisons"] if (c["b"], c["metric"]) == ("10", "recall@5"))
    assert best["won"] == [{"id": "q0", "a": 0.0, "b": 1.0}, {"id": "q1", "a": 0.5, "b": 1.0}]
    assert (best["lost"], best["equal"]) == ([], ["q2", "q3"])


def test_the_same_bytes_in_any_process(fork_script: Run, run_script: Run, runs: Path, tmp_path: Path) -> None:
    given = [str(runs), "png=false"]
    fork_script("compare", *given, f"hydra.run.dir={tmp_path / 'a'}")
    other = {"PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    run_script("compare", *given, f"hydra.run.dir={tmp_path / 'b'}", env=other)
    for name in ("comparison.json", "table.md"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_columns_and_metrics_as_asked(fork_script: Run, runs: Path, tmp_path: Path) -> None:
    asked = ["columns=[mrr,title/recall@5]", "metrics=[mrr]", "show=mrr", "png=false"]
    done = fork_script("compare", str(runs), *asked, f"hydra.run.dir={tmp_path}")
    assert (
        (tmp_path / "table.md")
        .read_text("utf-8")
        .startswith("| run | mrr | title/R@5 | Δ mrr | won | lost |")
    )
    assert {comparison["metric"] for comparison in compared(tmp_path)["comparisons"]} == {"mrr"}
    assert not (tmp_path / "comparison.png").exists()
    assert f"written to {tmp_path}: comparison.json, table.md" in done.out.splitlines()


def test_unfinished_runs_of_a_sweep_are_left_out(fork_script: Run, runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs, tmp_path / "sweep")
    (tmp_path / "sweep" / "2" / "metrics.json").unlink()
    given = [str(tmp_path / "sweep"), "png=false", f"hydra.run.dir={tmp_path / 'out'}"]
    done = fork_script("compare", *given)
    assert done.status == 0
    left_out = tmp_path / "sweep" / "2"
    (line,) = done.err.strip().splitlines()
    assert line == f"warning: {left_out} is left out: it holds no metrics.json, so it is not a finished run"
    assert [run["name"] for run in compared(tmp_path / "out")["runs"]] == ["1", "9", "10"]


def test_runs_without_gold_are_not_drawn(fork_script: Run, tmp_path: Path) -> None:
    rows = tuple(
        QuestionRow(f"q{i}", question, "graph", (), ("x",), (1.0,), ("Oslo",), {"em": float(i % 2)})
        for i, question in enumerate(QUESTIONS)
    )
    write_run(tmp_path / "run", Evaluation({}, rows, {"graph": 4}, GoldCoverage(4, 4, 0, 0, 0, 0)), extra={})
    given = [str(tmp_path / "run")] * 2
    done = fork_script("compare", *given, "show=em", f"hydra.run.dir={tmp_path}")
    assert (done.status, done.err) == (0, "")
    assert f"written to {tmp_path}: comparison.json, table.md" in done.out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "ConfigError: two folders are needed, got []: python scripts/compare.py RUN_A RUN_B"),
        (["{runs}/9"], "or a folder that holds several runs"),
        (
            ["{runs}/9", "{runs}/11"],
            "/11 holds no metrics.json, so it is not a finished run; it holds nothing",
        ),
        (
            ["{runs}", "{other}"],
            "the runs are not over the same questions: 1 only in 1 ['q3'], 0 only in other",
        ),
        (["{runs}", "names=[a,b]"], "names must give each of the 4 runs a name of its own, got 2: a, b"),
        (["{runs}", "names=a"], "names must be a list such as 'names=[one,two]', got 'a'"),
        (["{runs}", "columns=[f1]"], "no run has the metric 'f1'; known metrics are mrr, recall@10"),
        (["{runs}/9", "{runs}/10", "show=em"], "'em' of question 'q0' is in run 10 but not in run 9"),
        (["{runs}", "metrics=[f1]"], "no question has the metric 'f1'"),
        (["{runs}", "png=yes please"], "png must be true or false, got 'yes please'"),
        (["{runs}", "resamples=many"], "resamples must be at least 1, got 'many'"),
        (["{runs}", "seed=-1"], "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_what_cannot_be_compared(
    fork_script: Run, runs: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    other = write(tmp_path / "other", (0.0, 0.5, 0.5))
    given = [argument.format(runs=runs, other=other) for argument in arguments]
    assert message in fork_script("compare", *given, f"hydra.run.dir={tmp_path / 'out'}").error
