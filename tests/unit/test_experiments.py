"""The committed experiments, what runtime chooses, and how sweeps are launched: each composes and fits."""

import inspect
import json
from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import hydra
import pytest
import yaml
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf

from hipporag_torch.config import build_dataset, compose, conf_dir
from hipporag_torch.evaluation.expected import check_expected

CONF = conf_dir()
EXPERIMENTS = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
PUBLISHED = [
    f"{method}_{dataset}"
    for method, dataset in product(
        ("dense_nv_embed_v2", "hipporag2_gpt4omini", "hipporag2_llama70b", "ircot_contriever"),
        ("2wikimultihopqa", "hotpotqa", "musique"),
    )
]
LOCAL = {"2wiki_1000": (1000, 6119), "hotpotqa_train500": (500, 4925)}
LOCAL |= {"jemhopqa_ja": (120, 1261), "musique_train": (100, 1890)}


def composed(experiment: str, *overrides: str) -> DictConfig:
    return compose("evaluate", [f"experiment={experiment}", *overrides])


def with_hydra(*overrides: str) -> DictConfig:
    """The config of evaluate.py with Hydra's own part."""
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        return hydra.compose("evaluate", list(overrides), return_hydra_config=True).hydra


def objects(node: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(node, dict):
        if "_target_" in node:
            yield node
        for value in node.values():
            yield from objects(value)


def test_there_is_one_for_each_published_row_and_each_local_set() -> None:
    assert set(EXPERIMENTS) == {*PUBLISHED, *(f"local_{name}" for name in LOCAL), "sweep_musique_train"}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_fits_what_it_builds(experiment: str) -> None:
    """No override of another group's key, no misspelt key, nothing left to state but what it says."""
    cfg = composed(experiment)
    node = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=False)
    for described in objects(node):
        signature = inspect.signature(get_object(described["_target_"]))
        bind = signature.bind_partial if described.get("_partial_") else signature.bind
        bind(**{key: value for key, value in described.items() if not key.startswith("_")})
    check_expected(OmegaConf.to_container(cfg.expected))  # pyright: ignore[reportArgumentType]
    unused = {"extractor"} if cfg.retriever._target_.endswith("DenseRetriever") else set()
    unused |= set() if takes_a_model(cfg) else {"llm"}
    assert {key.split(".")[0] for key in OmegaConf.missing_keys(cfg)} <= unused


def takes_a_model(cfg: DictConfig) -> bool:
    asking = ("extractor", "fact_filter", "reader", "ircot", "linker")
    return any("llm" in inspect.signature(get_object(cfg[group]["_target_"])).parameters for group in asking)


@pytest.mark.parametrize("experiment", PUBLISHED)
def test_a_published_row_states_where_its_recall_should_lie(experiment: str) -> None:
    cfg = composed(experiment)
    method, _, dataset = experiment.rpartition("_")
    assert cfg.dataset._target_ == "hipporag_torch.datasets.hub.HubDataset"
    assert cfg.dataset.name.startswith(dataset)
    recalls = [entry for metric, entry in cfg.expected.items() if str(metric).endswith("recall@5")]
    assert len(recalls) == 1
    assert recalls[0].high - recalls[0].low == pytest.approx(0.04)
    assert ("f1" in cfg.expected) == method.startswith("hipporag2")
    assert not cfg.embedder.trust_remote_code, "whoever runs it has to have read the code"


def test_the_figures_that_were_published() -> None:
    """Middles of the ranges, typed in a second time: recall@5 on 2WikiMultihopQA, HotpotQA and MuSiQue."""
    middles = {}
    for experiment in PUBLISHED:
        entries = composed(experiment).expected.items()
        (entry,) = [entry for metric, entry in entries if str(metric).endswith("recall@5")]
        middles[experiment] = round((entry.low + entry.high) / 2, 3)
    assert [middles[experiment] for experiment in PUBLISHED] == [
        *(0.765, 0.945, 0.697),
        *(0.902, 0.957, 0.742),
        *(0.904, 0.963, 0.747),
        *(0.638, 0.816, 0.522),
    ]


def test_the_large_model_is_split_over_the_gpus_of_runtime() -> None:
    assert composed("hipporag2_llama70b_musique").llm.tensor_parallel_size == 8
    assert composed("hipporag2_llama70b_musique", "runtime.gpus=4").llm.tensor_parallel_size == 4


@pytest.mark.parametrize("name", sorted(LOCAL))
def test_a_local_set_is_found_whole(name: str, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIPPORAG_SHARED", str(shared))
    cfg = composed(f"local_{name}")
    dataset = build_dataset(cfg).load()
    assert (len(dataset.questions), len(dataset.documents)) == LOCAL[name]
    assert not cfg.expected
    if "path" in cfg.extractor:
        docs = json.loads(Path(cfg.extractor.path).read_text("utf-8"))["docs"]
        assert {doc["passage"] for doc in docs} >= {document.text for document in dataset.documents}
    else:
        assert cfg.extractor._target_.endswith("SentencesExtractor")
        assert cfg.graph.mention_weight > 0


def test_an_experiment_gives_way_to_the_command_line() -> None:
    cfg = composed("local_2wiki_1000", "retriever=bm25", "dataset.limit=5", "seeding=reference")
    assert cfg.retriever._target_.endswith("BM25Retriever")
    assert cfg.dataset.limit == 5


def test_the_sweep_has_24_settings() -> None:
    swept = with_hydra("experiment=sweep_musique_train")
    assert swept.mode.name == "MULTIRUN"
    values = {key: str(value).split(",") for key, value in swept.sweeper.params.items()}
    assert prod(map(len, values.values())) == 24
    cfg = composed("sweep_musique_train", *(f"{key}={chosen[-1]}" for key, chosen in values.items()))
    assert (cfg.ppr.damping, cfg.seeding.passage_weight, cfg.graph.synonym_threshold) == (0.7, 0.05, 1.1)


def test_the_options_of_runtime_have_the_same_keys_and_differ() -> None:
    options = {
        path.stem: yaml.safe_load(path.read_text("utf-8")) for path in (CONF / "runtime").glob("*.yaml")
    }
    assert set(options) == {"cpu", "default", "eight_gpus", "one_gpu"}
    default = options["default"]
    changed = {
        name: {key: value for key, value in option.items() if value != default[key]}
        for name, option in options.items()
    }
    assert all(list(option) == list(default) for option in options.values())
    assert changed == {
        "cpu": {"device": "cpu"},
        "default": {},
        "eight_gpus": {"device": "cuda", "gpus": 8, "batch_size": 256},
        "one_gpu": {"device": "cuda", "batch_size": 256},
    }


@pytest.mark.parametrize(
    ("launcher", "base"), [("processes", "joblib"), ("slurm", "submitit_slurm"), ("submitit_local", None)]
)
def test_a_launcher_is_its_plugin_with_other_values(launcher: str, base: str | None) -> None:
    ours = with_hydra(f"hydra/launcher={launcher}").launcher
    plain = with_hydra(f"hydra/launcher={base or launcher}").launcher
    assert ours.keys() == plain.keys()
    assert ours._target_ == plain._target_
    assert (ours == plain) == (base is None)
