import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest
from huggingface_hub import constants

from hipporag_torch.config import build_dataset, compose
from hipporag_torch.datasets import HubDataset, LocalDataset
from hipporag_torch.datasets.loading import Shape
from hipporag_torch.errors import ConfigError, DatasetError

from .fake_hub import FakeHub, serve
from .hub_rows import CASES, COMMIT, CORPUS, LATER, REPO, cache_folder, cached_snapshot, write_files

NOWHERE = "http://127.0.0.1:9"
TEXTS = [
    "Red Kite\nRed Kite is a film. Ito directed it.",
    "Ito\nIto was born on 1 May 1950.",
    "A passage without a title.",
]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache. The hub's library, whose settings these are, finds no hub."""
    folder = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    point_at(NOWHERE, monkeypatch)
    return folder


@pytest.fixture
def hub(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub that has MuSiQue's files, in two commits that differ in one byte."""
    write_files(tmp_path / "served", "musique")
    files = {path.name: path.read_bytes() for path in (tmp_path / "served").iterdir()}
    later = files | {"musique.json": files["musique.json"] + b"\n"}
    with serve(FakeHub(COMMIT, {COMMIT: files, LATER: later})) as hub:
        point_at(hub.url, monkeypatch)
        yield hub


def point_at(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", url)


@pytest.mark.parametrize("name", CASES)
def test_every_shape_from_the_cache_and_from_a_folder(cache: Path, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    write_files(cached_snapshot(cache), name)
    write_files(tmp_path / "files", name)
    shape: Any = case.shape
    loaded = HubDataset(name=name, shape=shape).load()
    assert loaded.name == name
    assert [document.text for document in loaded.documents] == TEXTS
    assert loaded.questions[0].answers == case.answers
    assert loaded.questions[0].gold_texts == case.gold
    assert HubDataset(name=name).load().questions == loaded.questions
    in_folder = HubDataset(name=name, folder=tmp_path / "files").load()
    assert (in_folder.documents, in_folder.questions) == (loaded.documents, loaded.questions)
    assert in_folder.origin["fingerprint"] == loaded.origin["fingerprint"]


def test_the_origin_says_which_commit_and_which_bytes(cache: Path, tmp_path: Path) -> None:
    write_files(cached_snapshot(cache), "hotpotqa")
    origin = dict(HubDataset(name="hotpotqa", limit=1).load().origin)
    assert json.loads(json.dumps(origin)) == origin
    assert (origin["repo"], origin["revision"], origin["revision_from"]) == (REPO, COMMIT, "cache")
    assert (origin["passages"], origin["questions"]) == (3, 1)
    assert origin["files"]["corpus"]["name"] == "hotpotqa_corpus.json"
    assert origin["files"]["questions"]["bytes"] == len(json.dumps(CASES["hotpotqa"].questions))

    write_files(tmp_path / "files", "hotpotqa", stem="renamed")
    renamed = LocalDataset(path=tmp_path / "files", corpus="renamed_corpus.json", questions="renamed.json")
    other = dict(renamed.load().origin)
    assert other["path"] == str(tmp_path / "files")
    assert "revision" not in other
    assert other["fingerprint"] == origin["fingerprint"]


@pytest.mark.parametrize("file", ["musique.json", "musique_corpus.json"])
def test_one_more_byte_in_either_file_is_another_fingerprint(tmp_path: Path, file: str) -> None:
    write_files(tmp_path, "musique")
    before = HubDataset(name="musique", folder=tmp_path).load()
    with (tmp_path / file).open("a") as stream:
        stream.write(" ")
    after = HubDataset(name="musique", folder=tmp_path).load()
    assert (after.documents, after.questions) == (before.documents, before.questions)
    assert after.origin["fingerprint"] != before.origin["fingerprint"]


def test_answers_that_look_like_dates_and_absent_keys_stay_as_they_are(cache: Path) -> None:
    """The reader of the package datasets makes times and nulls of them."""
    rows = [
        {"question": "When?", "answers": ["1950-05-01"]},
        {"id": "b", "question": "And then?", "answers": ["1950-05-02"]},
    ]
    snapshot = cached_snapshot(cache)
    write_files(snapshot, "lveval")
    (snapshot / "lveval.json").write_text(json.dumps(rows))
    questions = HubDataset(name="lveval").load().questions
    assert [(question.id, question.answers) for question in questions] == [
        ("0", ("1950-05-01",)),
        ("b", ("1950-05-02",)),
    ]


def test_a_stated_commit_is_taken_from_the_cache_without_a_branch(cache: Path) -> None:
    write_files(cached_snapshot(cache), "musique")
    write_files(cached_snapshot(cache, commit=LATER, ref=None), "musique")
    origin = HubDataset(name="musique", revision=LATER).load().origin
    assert (origin["revision"], origin["revision_from"]) == (LATER, "stated")


def test_files_in_folders_of_the_repository(cache: Path) -> None:
    write_files(cached_snapshot(cache) / "data" / "en", "musique")
    dataset = HubDataset(
        name="rivers", corpus="data/en/musique_corpus.json", questions="data/en/musique.json"
    ).load()
    assert (dataset.name, dataset.origin["revision"]) == ("rivers", COMMIT)


def test_nothing_at_hand_says_which_files_to_put_where(cache: Path) -> None:
    with pytest.raises(DatasetError) as caught:
        HubDataset(name="musique").load()
    message = str(caught.value)
    assert message.startswith(
        f"there is no musique_corpus.json and no musique.json of the hub's data set {REPO}"
    )
    assert f"not in the cache {cache_folder(cache)}, and not from {NOWHERE} (" in message
    assert "refused" in message
    assert "Put musique_corpus.json and musique.json into a folder and set dataset.folder=DIR" in message
    assert "OFFLINE" not in message


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
@pytest.mark.parametrize("revision", [None, COMMIT])
def test_a_hub_that_may_not_be_asked_is_not_asked(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, variable: str, revision: str | None
) -> None:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DatasetError, match=rf"not from {hub.url} \(not asked: {variable} is set\)"):
        HubDataset(name="musique", revision=revision).load()
    assert hub.asked == []


def test_without_the_package_that_fetches(hub: FakeHub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        ConfigError, match=r"musique_corpus\.json .* pip install 'hipporag-torch\[datasets\]'"
    ):
        HubDataset(name="musique").load()
    write_files(cached_snapshot(cache), "musique")
    assert HubDataset(name="musique").load().origin["revision_from"] == "hub"


def test_one_file_of_two_is_not_enough(cache: Path) -> None:
    snapshot = cached_snapshot(cache)
    write_files(snapshot, "musique")
    (snapshot / "musique.json").unlink()
    dataset = HubDataset(name="musique")
    assert len(dataset.documents()) == 3
    with pytest.raises(
        DatasetError, match=rf"^there is no musique\.json of the hub's data set .* at {COMMIT}"
    ):
        dataset.load()


def test_it_is_fetched_once_and_then_cached(hub: FakeHub, cache: Path) -> None:
    dataset = HubDataset(name="musique")
    assert dataset.present().missing == ("musique_corpus.json", "musique.json")
    assert [document.text for document in dataset.documents()] == TEXTS
    loaded = dataset.load()
    assert (loaded.origin["revision"], loaded.origin["revision_from"]) == (COMMIT, "hub")
    assert loaded.questions[0].answers == ("Ito",)
    fetched = [line for line in hub.asked if line.startswith("GET /datasets/")]
    assert fetched == [
        f"GET /datasets/{REPO}/resolve/main/musique_corpus.json",
        f"GET /datasets/{REPO}/resolve/main/musique.json",
    ]
    assert dataset.present().missing == ()
    hub.asked.clear()
    again = HubDataset(name="musique").load()
    assert again == loaded
    assert hub.asked == [f"GET /api/datasets/{REPO}"]


def test_the_commit_is_resolved_once(hub: FakeHub) -> None:
    dataset = HubDataset(name="musique", revision="main")
    dataset.documents()
    hub.head = LATER
    assert dataset.load().origin["revision"] == COMMIT
    moved = HubDataset(name="musique", revision="main").load()
    assert moved.origin["revision"] == LATER
    assert moved.origin["fingerprint"] != dataset.load().origin["fingerprint"]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (
            {"name": "rivers"},
            r"^there is no rivers_corpus\.json of the hub's data set .*\(404 .*Entry Not Found",
        ),
        ({"name": "musique", "repo": "osunlp/none"}, r"osunlp/none at main.*\(404 .*Repository Not Found"),
        ({"name": "musique", "revision": "v9"}, r"HippoRAG_2 at v9: .*\(404 .*Revision Not Found"),
        ({"name": "musique", "revision": "a" * 40}, rf"HippoRAG_2 at {'a' * 40}: "),
    ],
)
def test_what_the_hub_does_not_have(hub: FakeHub, cache: Path, options: dict[str, str], match: str) -> None:
    with pytest.raises(DatasetError, match=re.compile(match, re.DOTALL)):
        HubDataset(**options).load()


def test_a_hub_that_says_no_is_not_overruled_by_the_cache(hub: FakeHub, cache: Path) -> None:
    write_files(cached_snapshot(cache, ref="gone"), "musique")
    with pytest.raises(DatasetError, match="Revision Not Found"):
        HubDataset(name="musique", revision="gone").load()


def test_a_page_in_the_hubs_place_is_no_hub(hub: FakeHub, cache: Path) -> None:
    hub.portal = True
    with pytest.raises(DatasetError, match=r"^there is no musique_corpus\.json and no musique\.json"):
        HubDataset(name="musique").load()
    write_files(cached_snapshot(cache), "musique")
    origin = HubDataset(name="musique").load().origin
    assert (origin["revision"], origin["revision_from"]) == (COMMIT, "cache")


@pytest.mark.slow
def test_a_fresh_process_fetches_then_does_without_the_hub(hub: FakeHub, tmp_path: Path) -> None:
    """The settings that the hub's library reads from the environment as it is imported."""
    code = (
        "import json; from hipporag_torch.datasets import HubDataset\n"
        "print(json.dumps(HubDataset(name='musique', expected_passages=3).load().origin))"
    )
    environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    environment |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home")}

    def origin(**more: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment | more, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    online = origin()
    assert (online["revision"], online["revision_from"]) == (COMMIT, "hub")
    hub.asked.clear()
    assert origin(HF_HUB_OFFLINE="1") == online | {"revision_from": "cache"}
    assert hub.asked == []


def test_counts_are_those_of_the_whole_files(tmp_path: Path) -> None:
    write_files(tmp_path, "musique")
    dataset = HubDataset(name="musique", folder=tmp_path, expected_passages=3, expected_questions=2, limit=1)
    assert len(dataset.load().questions) == 1


@pytest.mark.parametrize(
    ("expected", "match"),
    [
        (
            {"expected_passages": 11_656},
            r"musique_corpus\.json has 3 passages, expected 11,656\. Fetch .*expected_passages=null",
        ),
        ({"expected_questions": 1_000}, r"musique\.json has 2 questions, expected 1,000\. .*questions=null"),
    ],
)
def test_other_counts_than_expected(tmp_path: Path, expected: dict[str, int], match: str) -> None:
    write_files(tmp_path, "musique")
    options: dict[str, Any] = {"name": "musique", "folder": tmp_path}
    with pytest.raises(DatasetError, match=match):
        HubDataset(**options, **expected).load()
    HubDataset(**options, **dict.fromkeys(expected)).load()


def test_the_corpus_alone_is_counted_too(tmp_path: Path) -> None:
    write_files(tmp_path, "musique")
    with pytest.raises(DatasetError, match="has 3 passages, expected 4"):
        HubDataset(name="musique", folder=tmp_path, expected_passages=4).documents()


@pytest.mark.parametrize(
    ("expected", "got", "whose", "option"),
    [(9_811, 9_221, "HippoRAG 1", "hotpotqa_hipporag1"), (9_221, 9_811, "HippoRAG 2", "hotpotqa")],
)
def test_the_two_corpora_of_hotpotqa_are_told_apart(
    tmp_path: Path, expected: int, got: int, whose: str, option: str
) -> None:
    rows = [{"title": f"T{number}", "text": "Text."} for number in range(got)]
    (tmp_path / "hotpotqa_corpus.json").write_text(json.dumps(rows))
    match = (
        rf"has {got:,} passages, expected {expected:,}\. This is the HotpotQA corpus of {whose}, .*"
        rf"not comparable: choose dataset={option} for it"
    )
    with pytest.raises(DatasetError, match=match):
        HubDataset(name="hotpotqa", folder=tmp_path, expected_passages=expected).documents()


def test_the_corpus_of_hipporag_1_is_an_object_of_sentences(tmp_path: Path) -> None:
    write_files(tmp_path, "hotpotqa")
    sentences = {"Red Kite": ["Red Kite is a film.", " Ito directed it."], "Ito": ["Ito makes films."]}
    (tmp_path / "hotpotqa_corpus.json").write_text(json.dumps(sentences))
    dataset = HubDataset(name="hotpotqa", folder=tmp_path, shape="hotpotqa").load()
    assert [document.text for document in dataset.documents] == [TEXTS[0], "Ito\nIto makes films."]
    assert dataset.documents[0].metadata == {"title": "Red Kite"}
    assert dataset.questions[0].gold_texts == (TEXTS[0],)
    # Without that shape an object may be anything: it is not guessed at.
    with pytest.raises(DatasetError, match="must hold a list of objects, got dict"):
        HubDataset(name="hotpotqa", folder=tmp_path).documents()
    (tmp_path / "hotpotqa_corpus.json").write_text('{"Red Kite": "Red Kite is a film."}')
    with pytest.raises(
        DatasetError, match="'Red Kite': expected a list of sentences, got 'Red Kite is a film"
    ):
        HubDataset(name="hotpotqa", folder=tmp_path, shape="hotpotqa").documents()


def test_a_folder_with_other_files(tmp_path: Path) -> None:
    write_files(tmp_path, "popqa")
    with pytest.raises(
        DatasetError,
        match=r"has no musique_corpus\.json and no musique\.json; its data files are popqa\.json, .*folder",
    ):
        HubDataset(name="musique", folder=tmp_path).load()
    with pytest.raises(DatasetError, match=r"no folder .*none.* musique_corpus\.json.* Set dataset\.folder"):
        HubDataset(name="musique", folder=tmp_path / "none").documents()


def test_without_a_repository_there_is_only_the_folder(cache: Path) -> None:
    dataset = HubDataset(name="rivers", repo=None, expected_passages=9_221)
    with pytest.raises(
        DatasetError,
        match=r"rivers has no known repository .*: put rivers_corpus\.json and rivers\.json into",
    ):
        dataset.load()
    assert dataset.present().missing == ("rivers_corpus.json", "rivers.json")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"name": " "}, r"dataset\.name must not be empty"),
        ({"repo": "HippoRAG_2"}, r"dataset\.repo must be owner/name .* got 'HippoRAG_2'.* dataset\.folder"),
        ({"repo": "./files"}, r"dataset\.repo must be owner/name .* got '\./files'"),
        ({"revision": ""}, r"dataset\.revision must be a commit, branch or tag, or null, got ''"),
        ({"corpus": "../corpus.json"}, r"dataset\.corpus must name a file inside .* got '\.\./corpus\.json'"),
        ({"questions": "/questions.json"}, r"dataset\.questions must name a file inside"),
        ({"questions": "q@main.json"}, r"dataset\.questions must name a file inside"),
        (
            {"corpus": "corpus.csv"},
            r"dataset\.corpus .* ends in \.json, \.jsonl, \.parquet, got 'corpus\.csv'",
        ),
        ({"shape": "squad"}, r"dataset\.shape must be one of auto, paragraphs, .* got 'squad'"),
        ({"limit": 0}, r"dataset\.limit must be at least 1"),
        ({"expected_passages": 0}, r"dataset\.expected_passages must be at least 1, or null .* got 0"),
        ({"expected_questions": -1}, r"dataset\.expected_questions must be at least 1, or null .* got -1"),
    ],
)
def test_options_out_of_their_range(options: dict[str, Any], match: str) -> None:
    given: dict[str, Any] = {"name": "rivers", **options}
    with pytest.raises(ConfigError, match=match):
        HubDataset(**given)


def test_what_is_present_is_told_without_reading_or_asking(hub: FakeHub, cache: Path) -> None:
    dataset = HubDataset(name="musique", expected_passages=11_656, expected_questions=1_000)
    nothing = dataset.present()
    assert nothing.message == "corpus absent, 11,656 passages expected; questions absent, 1,000 expected"
    assert nothing.place == str(cache_folder(cache))
    snapshot = cached_snapshot(cache)
    (snapshot / "musique_corpus.json").write_text("not even JSON")
    half = dataset.present()
    assert (half.corpus, half.questions) == (snapshot / "musique_corpus.json", None)
    assert half.missing == ("musique.json",)
    assert half.message == "corpus present, 11,656 passages expected; questions absent, 1,000 expected"
    assert hub.asked == []


def test_what_is_present_in_a_folder(tmp_path: Path) -> None:
    write_files(tmp_path, "musique")
    local = LocalDataset(path=tmp_path, corpus="musique_corpus.json", questions="other.json").present()
    assert (local.place, local.corpus, local.questions) == (
        str(tmp_path),
        tmp_path / "musique_corpus.json",
        None,
    )
    assert local.message == "corpus present; questions absent"
    whole = HubDataset(name="musique", folder=tmp_path, expected_questions=1_000).present()
    assert whole.missing == ()
    assert whole.message == "corpus present; questions present, 1,000 expected"


@pytest.mark.parametrize(
    ("option", "shape", "passages", "questions"),
    [
        ("musique", "paragraphs", 11_656, 1_000),
        ("2wikimultihopqa", "2wikimultihopqa", 6_119, 1_000),
        ("hotpotqa", "hotpotqa", 9_811, 1_000),
        ("hotpotqa_hipporag1", "hotpotqa", 9_221, 1_000),
        ("nq_rear", "nq_rear", None, 1_000),
        ("popqa", "popqa", None, 1_000),
        ("narrativeqa", "answers", 4_111, 293),
        ("lveval", "answers", 22_849, None),
    ],
)
def test_the_packaged_options(
    cache: Path, tmp_path: Path, option: str, shape: Shape, passages: int | None, questions: int | None
) -> None:
    case, stem = option, option
    if option == "narrativeqa":
        stem = "narrativeqa_dev_10_doc"
    elif option == "hotpotqa_hipporag1":
        case = stem = "hotpotqa"
    cfg = compose("evaluate", [f"dataset={option}"])
    present = build_dataset(cfg).present()
    assert present.missing == (f"{stem}_corpus.json", f"{stem}.json")
    assert (present.expected_passages, present.expected_questions) == (passages, questions)
    assert cfg.dataset.shape == shape == CASES[case].shape
    write_files(tmp_path / "files", case, stem=stem)
    small = [f"dataset.folder={tmp_path / 'files'}", "dataset.expected_passages=null"]
    loaded = build_dataset(
        compose("evaluate", [f"dataset={option}", *small, "dataset.expected_questions=null"])
    ).load()
    assert loaded.name == option
    assert loaded.questions[0].answers == CASES[case].answers
    assert len(loaded.documents) == len(CORPUS)


def test_the_general_option(cache: Path) -> None:
    write_files(cached_snapshot(cache), "popqa")
    cfg = compose("evaluate", ["dataset=hub", "dataset.name=popqa", f"dataset.repo={REPO}"])
    assert build_dataset(cfg).load().questions[0].id == "4222362"
