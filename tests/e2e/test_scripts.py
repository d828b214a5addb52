"""The scripts as a user runs them, on a small corpus without a model."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import predictions

Run = Callable[..., Any]


def metrics_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "metrics.json").read_text("utf-8"))


def rows_of(folder: Path, name: str = "predictions.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text("utf-8").split("\n") if line]


def assert_quiet(done: Any) -> None:
    """It worked, and says nothing that is not for the reader."""
    assert done.status == 0, done.err
    assert done.err.strip() == ""
    for noise in ("Traceback", "Warning", "INFO", "[20", "\x1b"):
        assert noise not in done.out


@pytest.fixture(scope="module")
def evaluated(
    run_script: Run, stated: list[str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Any]:
    """evaluate.py's folder and output, in a process with a hash seed of its own."""
    folder = tmp_path_factory.mktemp("run=1")
    done = run_script("evaluate", *stated, f"hydra.run.dir={quoted(folder)}", env={"PYTHONHASHSEED": "1"})
    return folder, done


def quoted(path: Path) -> str:
    return f"'{path}'"


def test_evaluate_shows_its_result(evaluated: tuple[Path, Any]) -> None:
    folder, done = evaluated
    assert_quiet(done)
    assert "small: 7 passages, 10 phrases, 7 facts" in done.out
    assert "wrong_arity 1" in done.out
    assert "graph 3" in done.out
    assert str(folder) in done.out.splitlines()[-1]
    for k in (1, 2, 5, 10, 20):
        assert f"{metrics_of(folder)[f'recall@{k}']:.4f}" in done.out


def test_evaluate_writes_its_metrics(evaluated: tuple[Path, Any]) -> None:
    metrics = metrics_of(evaluated[0])
    for level in ("", "title/"):
        for name in ("mrr", "recall@1", "recall@2", "recall@5", "recall@10", "recall@20", "all_recall@5"):
            assert 0 < metrics[level + name] <= 1
    assert metrics["recall@20"] == metrics["all_recall@20"] == 1
    assert metrics["questions"] == metrics["questions_scored"] == 3
    assert metrics["routes"] == {"graph": 3}
    assert metrics["gold"]["absent"] == 0
    assert metrics["index"]["dropped"] == {"wrong_arity": 1}
    assert metrics["index"]["embedder"]["name"] == "hashing"
    assert {"extract", "embed", "graph", "index", "questions"} <= metrics["seconds"].keys()


def test_evaluate_writes_every_question(evaluated: tuple[Path, Any]) -> None:
    rows = rows_of(evaluated[0])
    assert [row["id"] for row in rows] == ["q0", "q1", "q2"]
    assert rows[2]["question"] == "日本の首都はどこですか？"
    assert rows[2]["answers"] == ["東京"]
    assert rows[2]["ranked_ids"][0] in rows[2]["gold_ids"]
    for row in rows:
        assert len(row["ranked_ids"]) == len(row["scores"]) == 7
        assert row["route"] == "graph"
        assert row["metrics"]["recall@20"] == 1


def test_same_bytes_in_any_process(
    evaluated: tuple[Path, Any], run_script: Run, stated: list[str], small: Path, tmp_path: Path
) -> None:
    """Another hash seed, a fresh cache, and files whose rows stand in the same order."""
    other = [*stated, f"runtime.cache_dir={tmp_path / 'cache'}", f"hydra.run.dir={tmp_path / 'run'}"]
    assert_quiet(run_script("evaluate", *other, env={"PYTHONHASHSEED": "2"}))
    ours, theirs = (metrics_of(folder) for folder in (evaluated[0], tmp_path / "run"))
    assert ours.pop("seconds").keys() == theirs.pop("seconds").keys()
    # What a cache held is no result.
    assert sum(ours.pop("texts").values()) == sum(theirs.pop("texts").values())
    assert json.dumps(ours) == json.dumps(theirs)
    assert predictions(evaluated[0]) == predictions(tmp_path / "run")


@pytest.mark.parametrize("retriever", ["dense", "bm25"])
def test_evaluate_without_a_graph_needs_no_extractions(
    fork_script: Run, stated: list[str], tmp_path: Path, retriever: str
) -> None:
    overrides = [o for o in stated if not o.startswith("extractor")]
    done = fork_script("evaluate", *overrides, f"retriever={retriever}", f"hydra.run.dir={tmp_path}")
    assert_quiet(done)
    metrics = metrics_of(tmp_path)
    assert metrics["routes"] == {f"{retriever}:requested": 3}
    assert metrics["recall@5"] > 0.5
    assert metrics["index"]["facts"] == 0
    assert metrics["index"]["embedder"]["name"] == ("hashing" if retriever == "dense" else "none")


def test_compare_two_runs(
    evaluated: tuple[Path, Any], fork_script: Run, stated: list[str], tmp_path: Path
) -> None:
    """By their folders alone, one of which has "=" in its name."""
    run_a, run_b = tmp_path / "dense run", evaluated[0]
    fork_script("evaluate", *stated, "retriever=dense", f"hydra.run.dir={quoted(run_a)}")
    assert "=" in run_b.name
    done = fork_script("compare", str(run_a), str(run_b), f"hydra.run.dir={tmp_path / 'compared'}")
    assert_quiet(done)
    assert [line.split(maxsplit=1) for line in done.out.splitlines()[:2]] == [
        ["A", str(run_a)],
        ["B", str(run_b)],
    ]
    comparisons = json.loads((tmp_path / "compared" / "comparison.json").read_text("utf-8"))["comparisons"]
    by_metric = {comparison["metric"]: comparison for comparison in comparisons}
    assert by_metric["recall@2"]["mean_b"] == pytest.approx(metrics_of(run_b)["recall@2"])
    assert by_metric["recall@2"]["mean_a"] == pytest.approx(metrics_of(run_a)["recall@2"])
    for comparison in comparisons:
        assert comparison["difference"] == pytest.approx(comparison["mean_b"] - comparison["mean_a"])
        assert sum(len(comparison[outcome]) for outcome in ("won", "lost", "equal")) == 3
        assert comparison["metric"] in done.out, "names are shown in full, 80 columns wide"


def test_compare_as_many_metrics_as_asked(
    evaluated: tuple[Path, Any], fork_script: Run, tmp_path: Path
) -> None:
    run = str(evaluated[0])
    metrics = ["metrics=[mrr,title/recall@5]", "show=mrr", f"hydra.run.dir={tmp_path}"]
    assert_quiet(fork_script("compare", run, run, *metrics))
    content = json.loads((tmp_path / "comparison.json").read_text("utf-8"))["comparisons"]
    assert [comparison["metric"] for comparison in content] == ["mrr", "title/recall@5"]


@pytest.mark.parametrize("name", ["it's here", "a,b", "ppr.damping=0.4,seed=1", "[x]"])
def test_compare_folders_with_awkward_names(
    evaluated: tuple[Path, Any], fork_script: Run, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / name
    shutil.copytree(evaluated[0], folder)
    assert_quiet(fork_script("compare", str(folder), str(folder), f"hydra.run.dir={tmp_path / 'out'}"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], r"ConfigError: two folders are needed, got []: python scripts/compare.py RUN_A RUN_B"),
        (["{run}"], r"ConfigError: two folders are needed"),
        (["{run}", "/nowhere"], r"/nowhere holds no metrics.json"),
        (
            ["{run}", "{run}", "show=recall@3"],
            r"no question has the metric 'recall@3'; known metrics are .*recall@5",
        ),
        (["{run}", "{run}", "+nonsense=1"], r"unknown key nonsense"),
        (["{run}", "{run}", "resamples=0"], r"resamples must be at least 1, got 0"),
    ],
)
def test_compare_says_what_is_wrong(
    evaluated: tuple[Path, Any], fork_script: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    given = [argument.format(run=evaluated[0]) for argument in arguments]
    error = fork_script("compare", *given, f"hydra.run.dir={tmp_path}").error
    assert message.split(".*")[0].removeprefix("r") in error


def test_retrieve_one_question(run_script: Run, stated: list[str], tmp_path: Path) -> None:
    question = "Where was Northwind Press founded?"
    done = run_script("retrieve", *stated, f"question={question!r}", "top_k=2", f"hydra.run.dir={tmp_path}")
    assert_quiet(done)
    (ranking,) = rows_of(tmp_path, "rankings.jsonl")
    assert (ranking["question"], ranking["route"]) == (question, "graph")
    assert len(ranking["passages"]) == len(ranking["scores"]) == 2
    found = {p["text"]: p["sources"][0]["metadata"] for p in ranking["passages"]}
    assert found["Ada Vale\nAda Vale founded Northwind Press in Bergen."] == {"title": "Ada Vale"}
    assert question in done.out
    assert "route graph" in done.out
    assert "northwind press" in done.out
    assert "(ada vale; founded; northwind press)" in " ".join(done.out.split())


def test_retrieve_a_list_of_questions(fork_script: Run, stated: list[str], tmp_path: Path) -> None:
    asked = "question=['Who, and where?', \"Who's Tove Lund?\", 1905]"
    done = fork_script("retrieve", *stated, asked, "trace=false", f"hydra.run.dir={tmp_path}")
    assert_quiet(done)
    rankings = rows_of(tmp_path, "rankings.jsonl")
    assert [ranking["question"] for ranking in rankings] == ["Who, and where?", "Who's Tove Lund?", "1905"]
    assert [ranking["trace"] for ranking in rankings] == [None] * 3
    assert all(len(ranking["passages"]) == 5 for ranking in rankings)


def test_retrieve_needs_no_questions_file(
    fork_script: Run, stated: list[str], small: Path, tmp_path: Path
) -> None:
    shutil.copy(small / "corpus.json", tmp_path)
    done = fork_script(
        "retrieve", *stated, f"dataset.path={tmp_path}", "question=bread", f"hydra.run.dir={tmp_path / 'out'}"
    )
    assert_quiet(done)


BAD = {
    "no folder": (["dataset.path=/nowhere"], "DatasetError: there is no folder /nowhere"),
    "no data set": (["dataset.path=???"], "dataset.path is not set; give it as dataset.path=VALUE"),
    "no corpus": (["dataset.corpus=other.json"], "has no other.json; its data files are corpus.json"),
    "no extractions": (
        ["extractor.path=/nowhere.json"],
        "ConfigError: there is no extraction file /nowhere.json",
    ),
    "unknown key": (["+nonsense=1"], "ConfigError: unknown key nonsense"),
    "unknown key of a group": (["+text.nonsense=1"], "ConfigError: unknown key text.nonsense"),
    "top_k": (["top_k=0"], "InputError: top_k must be"),
    "damping": (["ppr.damping=2"], "ConfigError: ppr.damping must lie between 0 and 1"),
    "method": (["ppr.method=magic"], "ConfigError: ppr.method must be chebyshev or power, got 'magic'"),
    "type": (["ppr.damping=high"], "ppr"),
    "batch": (["runtime.batch_size=0"], "batch_size must be at least 1, got 0"),
    "dense batch": (["runtime.batch_size=0", "retriever=dense"], "batch_size must be at least 1, got 0"),
    "threads": (["runtime.threads=0"], "runtime.threads"),
    "no embedder": (["embedder=none"], "embedder=none"),
    "cache": (["runtime.cache_dir=/dev/null/cache"], "BackendError: the embedding cache /dev/null/cache"),
}


@pytest.mark.parametrize(
    ("script", "case"),
    [
        *(("evaluate", case) for case in BAD),
        *(("retrieve", case) for case in ("no folder", "unknown key", "top_k", "dense batch")),
    ],
)
def test_errors_are_one_line(
    fork_script: Run, stated: list[str], tmp_path: Path, script: str, case: str
) -> None:
    overrides, message = BAD[case]
    asked = ["question='Who founded it?'"] if script == "retrieve" else []
    done = fork_script(script, *stated, *asked, *overrides, f"hydra.run.dir={tmp_path}")
    assert message in done.error
    assert not {"metrics.json", "rankings.jsonl"} & {path.name for path in tmp_path.iterdir()}


def test_ways_out_of_an_unreachable_hub(fork_script: Run, stated: list[str], tmp_path: Path) -> None:
    overrides = [
        "embedder=sentence_transformers",
        "embedder.model=nobody/nothing",
        f"hydra.run.dir={tmp_path}",
    ]
    error = fork_script("evaluate", *stated, *overrides).error
    assert error.startswith("BackendError: the embedding model nobody/nothing could not be fetched")
    for way_out in ("Connect this machine", "embedder.model=/path/to/it", "embedder=minilm"):
        assert way_out in error


@pytest.mark.parametrize(
    ("overrides", "message"),
    [(["ks=5"], "ks"), (["ks=[]"], "ks must be"), (["ks=[0]"], "ks must be"), (["ks=[a]"], "ks")],
)
def test_cut_offs_of_another_shape(
    fork_script: Run, stated: list[str], tmp_path: Path, overrides: list[str], message: str
) -> None:
    assert message in fork_script("evaluate", *stated, *overrides, f"hydra.run.dir={tmp_path}").error


def test_what_the_question_must_be(fork_script: Run, stated: list[str], tmp_path: Path) -> None:
    folder = f"hydra.run.dir={tmp_path}"
    assert "question is not set" in fork_script("retrieve", *stated, folder).error
    assert "question 0 is empty" in fork_script("retrieve", *stated, "question=' '", folder).error
    assert "question" in fork_script("retrieve", *stated, "question=null", folder).error


@pytest.mark.parametrize("override", ["retreiver=dense", "text.nonsense=1", "retriever=nonsense", "top_k"])
def test_misspelt_overrides_are_named(fork_script: Run, stated: list[str], override: str) -> None:
    done = fork_script("evaluate", *stated, override)
    assert done.status != 0
    assert override.split("=")[0] in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("script", ["evaluate", "retrieve", "compare"])
def test_help_shows_how_to_call_it(fork_script: Run, script: str) -> None:
    done = fork_script(script, "--help")
    assert_quiet(done)
    assert f"python scripts/{script}.py " in done.out
    assert ("retriever: bm25, dense, dense_bm25, hipporag" in done.out) == (script != "compare")
    assert "hydra.run.dir" not in done.out


def test_empty_corpus(fork_script: Run, stated: list[str], small: Path, tmp_path: Path) -> None:
    shutil.copytree(small, tmp_path / "data")
    (tmp_path / "data" / "corpus.json").write_text("[]", encoding="utf-8")
    here = [*stated, f"dataset.path={tmp_path / 'data'}", f"hydra.run.dir={tmp_path / 'run'}"]
    done = fork_script("evaluate", *here)
    assert (done.status, "Traceback" in done.err) == (0, False), done.err
    assert "5 of 5 gold passages are not in the corpus" in done.err
    assert metrics_of(tmp_path / "run")["routes"] == {"none:empty_index": 3}
    assert metrics_of(tmp_path / "run")["recall@20"] == 0
    assert_quiet(fork_script("retrieve", *here, "question=who"))
    (ranking,) = rows_of(tmp_path / "run", "rankings.jsonl")
    assert (ranking["passages"], ranking["route"]) == ([], "none:empty_index")


def test_eval_01_gold_as_text_only(fork_script: Run, stated: list[str], small: Path, tmp_path: Path) -> None:
    shutil.copytree(small, tmp_path / "data")
    questions = json.loads((small / "questions.json").read_text("utf-8"))
    for question in questions:
        for paragraph in question["paragraphs"]:
            del paragraph["title"]
    (tmp_path / "data" / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    done = fork_script(
        "evaluate", *stated, f"dataset.path={tmp_path / 'data'}", f"hydra.run.dir={tmp_path / 'run'}"
    )
    assert done.status == 0
    (line,) = done.err.strip().splitlines()
    assert line.startswith("warning: 5 of 5 gold passages are not in the corpus (3 of 3 questions)")
    assert "text only" in line
    assert metrics_of(tmp_path / "run")["gold"] | {"example": ""} == {
        "questions": 3,
        "questions_without_gold": 0,
        "passages": 5,
        "absent": 5,
        "questions_with_absent": 3,
        "text_only": 5,
        "example": "",
    }


def test_passages_without_extraction_are_told(
    fork_script: Run, stated: list[str], small: Path, tmp_path: Path
) -> None:
    docs = json.loads((small / "openie.json").read_text("utf-8"))["docs"]
    (tmp_path / "some.json").write_text(json.dumps({"docs": docs[:4]}), encoding="utf-8")
    overrides = [*stated, f"extractor.path={tmp_path / 'some.json'}", f"hydra.run.dir={tmp_path / 'run'}"]
    for script, *asked in (["evaluate"], ["retrieve", "question=who"]):
        done = fork_script(script, *overrides, *asked)
        assert done.status == 0
        (line,) = done.err.strip().splitlines()
        assert line.startswith("warning: 3 ")
        assert "some.json has no such passage" in line


def test_duplicate_passages_of_a_corpus_count_once(
    fork_script: Run, stated: list[str], small: Path, tmp_path: Path
) -> None:
    shutil.copytree(small, tmp_path / "data")
    corpus = json.loads((small / "corpus.json").read_text("utf-8"))
    (tmp_path / "data" / "corpus.json").write_text(json.dumps(corpus + corpus[:3]), encoding="utf-8")
    assert_quiet(
        fork_script(
            "evaluate", *stated, f"dataset.path={tmp_path / 'data'}", f"hydra.run.dir={tmp_path / 'run'}"
        )
    )
    assert metrics_of(tmp_path / "run")["index"]["passages"] == 7
    assert all(len(row["ranked_ids"]) == 7 for row in rows_of(tmp_path / "run"))


def test_a_sweep_runs_every_value(fork_script: Run, stated: list[str], tmp_path: Path) -> None:
    done = fork_script("evaluate", "-m", *stated, "ppr.damping=0.4,0.6", f"hydra.sweep.dir={tmp_path}")
    assert done.status == 0, done.err
    assert [metrics_of(tmp_path / job)["questions"] for job in ("0", "1")] == [3, 3]
    first, second = (rows_of(tmp_path / job)[0]["scores"] for job in ("0", "1"))
    assert first != second


def test_real_fixture(fork_script: Run, stated: list[str], shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "ci_fixture_musique"
    path = folder / "openie_results_ner_gpt-3.5-turbo-1106.json"
    done = fork_script(
        "evaluate", *stated, f"dataset.path={folder}", f"extractor.path={path}", f"hydra.run.dir={tmp_path}"
    )
    assert_quiet(done)
    metrics = metrics_of(tmp_path)
    assert metrics["index"]["passages"] == 130
    assert metrics["questions"] == 12
    assert metrics["gold"]["absent"] == 0
    assert metrics["recall@5"] > 0.3
    assert metrics["recall@1"] < metrics["recall@5"] < metrics["recall@20"]
