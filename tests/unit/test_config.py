"""Configs against the code: every key is known, explained and does something."""

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hydra.errors import ConfigCompositionException, MissingConfigException
from hydra.utils import get_object, instantiate
from omegaconf import DictConfig, OmegaConf

from hipporag_torch.config import (
    build_dataset,
    build_embedder,
    build_kept_embedder,
    build_memory,
    build_study,
    compose,
    conf_dir,
    embedder_settings,
    require_known_keys,
    stated_groups,
)
from hipporag_torch.embedders.cached import CachedEmbedder
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import CompatibilityError, ConfigError
from hipporag_torch.graph_construction import GraphOptions
from hipporag_torch.opening import lacks_corpus, open_memory
from hipporag_torch.ops.ppr import PPROptions
from hipporag_torch.retrievers.seeding import ReferenceSeeding
from hipporag_torch.text import TextOptions

CONF = conf_dir()
PRIMARIES = sorted(path.stem for path in CONF.glob("*.yaml"))
# What the composition root passes in by itself.
PASSED_IN = {
    "retriever": {"index", "embedder", "seeding", "linker", "fact_filter", "ppr"},
    "extractor": {"llm"},
    "linker": {"llm"},
    "fact_filter": {"llm"},
    "ircot": {"retriever", "llm"},
    "reader": {"embedder", "llm"},
    "benchmark": {"device"},
}


def groups_of(primary: str) -> list[str]:
    """The groups in a primary config's defaults list."""
    defaults = yaml.safe_load((CONF / f"{primary}.yaml").read_text("utf-8")).get("defaults", [])
    return [name for entry in defaults if isinstance(entry, dict) for name in entry if "/" not in name]


def folder_of(group: str) -> str:
    """Where the options of a group are: of `llm@filter_llm`, the filter's own model, those of llm."""
    return group.partition("@")[0]


def options() -> Iterator[tuple[str, str, str]]:
    """(primary, group, option): every option of every group of every primary config."""
    for primary in PRIMARIES:
        for group in groups_of(primary):
            for path in sorted((CONF / folder_of(group)).glob("*.yaml")):
                yield primary, group, path.stem


def targets(node: Any) -> Iterator[Mapping[str, Any]]:
    """Every mapping with a `_target_`, at any depth."""
    if isinstance(node, dict):
        if "_target_" in node:
            yield node
        for value in node.values():
            yield from targets(value)


def keys(node: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if not key.startswith("_")}


def small(*overrides: str) -> list[str]:
    return ["embedder=hashing", "extractor=none", "runtime.cache=false", "runtime.device=cpu", *overrides]


def test_there_are_configs_to_test() -> None:
    assert {"evaluate", "retrieve", "compare"} <= set(PRIMARIES)
    assert len(list(options())) > 30
    used = {folder_of(group) for primary in PRIMARIES for group in groups_of(primary)}
    assert all((CONF / folder).is_dir() for folder in used)
    # What is in hydra/ adds to Hydra's own groups, which the primaries have anyway.
    folders = {path.name for path in CONF.iterdir() if path.is_dir()} - {"__pycache__", "hydra"}
    assert folders == used


@pytest.mark.parametrize(("primary", "group", "option"), list(options()))
def test_every_key_of_every_option_is_a_parameter(primary: str, group: str, option: str) -> None:
    cfg = compose(primary, [f"{group}={option}"])
    require_known_keys(cfg, primary)
    composed = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=False)
    assert isinstance(composed, dict)
    for node in targets(composed):
        signature = inspect.signature(get_object(node["_target_"]))
        bind = signature.bind_partial if node.get("_partial_") else signature.bind
        bind(**keys(node))


@pytest.mark.parametrize("primary", PRIMARIES)
def test_primary_config_without_overrides(primary: str) -> None:
    require_known_keys(compose(primary), primary)


def test_every_parameter_can_be_set() -> None:
    """A constructor's parameter that no option of its group shows would be a hidden setting."""
    shown: dict[tuple[str, str], set[str]] = {}
    for group in sorted({folder_of(group) for _, group, _ in options()}):
        for path in sorted((CONF / group).glob("*.yaml")):
            node = yaml.safe_load(path.read_text("utf-8"))
            if "_target_" in node:
                shown.setdefault((group, node["_target_"]), set()).update(keys(node))
    assert len(shown) > 10
    for (group, target), names in shown.items():
        parameters = set(inspect.signature(get_object(target)).parameters) - PASSED_IN.get(group, set())
        assert names == parameters, f"{group}: {target}"


@pytest.mark.parametrize(
    ("group", "option", "default"),
    [
        ("text", "default", TextOptions()),
        ("graph", "default", GraphOptions()),
        ("ppr", "chebyshev", PPROptions()),
        ("seeding", "reference", ReferenceSeeding()),
    ],
)
def test_configs_and_code_have_the_same_defaults(group: str, option: str, default: object) -> None:
    assert instantiate(compose("evaluate", [f"{group}={option}"])[group]) == default


@pytest.mark.parametrize("path", sorted(CONF.rglob("*.yaml")), ids=lambda path: str(path.relative_to(CONF)))
def test_every_key_is_explained_where_it_stands(path: Path) -> None:
    """A comment stands right above each key, or right above the run of keys that it is in."""
    lines = path.read_text("utf-8").splitlines()
    assert lines[0].startswith("# "), "the file says what it is for"
    special = ("_target_", "_convert_", "_partial_", "_self_", "defaults", "hydra")
    explained = False
    for number, line in enumerate(lines, start=1):
        key = re.match(r"(\w+):", line)
        if line.startswith("#"):
            explained = True
        elif key and key[1] not in special:
            assert explained, f"{path.name}:{number}: {line}"
        else:
            explained = False


@pytest.mark.parametrize("primary", ["evaluate", "retrieve", "compare", "index", "study"])
def test_unknown_top_level_key(primary: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown key nonsense; {primary} takes .*"):
        require_known_keys(compose(primary, ["+nonsense=1"]), primary)


@pytest.mark.parametrize("group", [group for group in groups_of("evaluate") if "@" not in group])
def test_unknown_key_of_a_group(group: str) -> None:
    overrides = small("dataset.path=x", f"+{group}.nonsense=1")
    if group in ("embedder", "extractor"):  # those options without keys say so
        overrides = [o for o in overrides if o != "extractor=none"] + ["extractor.path=x"]
    cfg = compose("evaluate", overrides)
    with pytest.raises(ConfigError, match=rf"{group}.*nonsense|nonsense.*{group}"):  # noqa: PT012
        require_known_keys(cfg, "evaluate")
        build_dataset(cfg)
        build_memory(cfg)


def test_unknown_key_of_an_option_without_keys() -> None:
    with pytest.raises(ConfigError, match=r"unknown key extractor.path; extractor takes no keys"):
        build_memory(compose("evaluate", small("+extractor.path=x")))


def test_misspelt_key_is_hydras_own_error() -> None:
    with pytest.raises(ConfigCompositionException, match=r"text\.nonsense"):
        compose("evaluate", ["text.nonsense=1"])
    with pytest.raises(ConfigCompositionException, match="nonsense"):
        compose("evaluate", ["nonsense=1"])
    with pytest.raises(MissingConfigException, match="retriever/nonsense"):
        compose("evaluate", ["retriever=nonsense"])


@pytest.mark.parametrize(
    ("build", "key", "overrides"),
    [
        (build_dataset, "dataset.path", small()),
        (build_memory, "extractor.path", small("extractor=stored")),
        (build_memory, "embedder.model", small("embedder=sentence_transformers")),
    ],
)
def test_mandatory_key_that_is_not_set(build: Any, key: str, overrides: list[str]) -> None:
    with pytest.raises(ConfigError, match=f"{key} is not set; give it as {key}=VALUE"):
        build(compose("evaluate", overrides))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("ppr.damping=2.0", r"ppr.damping must lie between 0 and 1, both excluded, got 2.0"),
        ("text.content_id=crc", r"text.content_id must be one of sha256, md5, got 'crc'"),
        ("seeding.num_facts=0", r"seeding.num_facts must be at least 1"),
        ("linker.min_cosine=0", r"linker.min_cosine must be above 0 and at most 1, got 0"),
        ("graph.synonym_threshold=-1.0", r"graph.synonym_threshold"),
        ("embedder.dim=0", r"embedder.dim must be at least 1, got 0"),
        ("runtime.device=tpu", r"device must be auto, cpu, cuda or cuda:N, got 'tpu'"),
        ("runtime.device=meta", r"device must be auto, cpu, cuda or cuda:N, got 'meta'"),
        ("runtime.threads=0", r"runtime.threads"),
        ("runtime.batch_size=0", r"batch_size must be at least 1, got 0"),
    ],
)
def test_value_out_of_range_is_one_plain_sentence(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        build_memory(compose("evaluate", small(override))).retriever  # noqa: B018
    assert "\n" not in str(caught.value)
    assert "instantiat" not in str(caught.value)


@pytest.mark.parametrize(
    "override", ["ppr.damping=abc", "ppr.damping=null", "graph.synonym_cap=many", "linker.min_cosine=null"]
)
def test_value_of_another_type_names_its_group(override: str) -> None:
    with pytest.raises(ConfigError, match=override.split(".")[0]):
        build_memory(compose("evaluate", small(override))).retriever  # noqa: B018


def test_value_of_a_dataset_out_of_range() -> None:
    with pytest.raises(ConfigError, match=r"dataset.shape must be one of auto, .*, got 'round'"):
        build_dataset(compose("evaluate", ["dataset.path=x", "dataset.shape=round"]))
    with pytest.raises(ConfigError, match=r"dataset.limit must be at least 1"):
        build_dataset(compose("evaluate", ["dataset.path=x", "dataset.limit=0"]))


def test_missing_gpu_is_an_error() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(ConfigError, match=r"device=cuda was asked for.*sees 0 CUDA devices.*device=auto"):
        build_memory(compose("evaluate", small("runtime.device=cuda")))


def test_dense_needs_no_extractions() -> None:
    memory = build_memory(compose("evaluate", small("retriever=dense", "extractor=stored")))
    memory.add(["Rye bread."])
    assert memory.retrieve(["bread"])[0].route == "dense:requested"
    assert memory.index.passage_emb.shape == (1, 256)


def test_bm25_needs_no_embedder() -> None:
    overrides = small("retriever=bm25", "extractor=stored", "embedder=sentence_transformers")
    memory = build_memory(compose("evaluate", overrides))
    memory.add(["Rye bread."])
    assert memory.retrieve(["bread"])[0].route == "bm25:requested"
    assert memory.index.embedder.name == "none"


def build_and_ask(cfg: DictConfig) -> None:
    memory = build_memory(cfg)
    memory.add(["Rye bread."])
    memory.retrieve(["bread"])


@pytest.mark.parametrize("retriever", ["hipporag", "dense"])
@pytest.mark.parametrize("cache", ["true", "false"])
def test_no_embedder_is_refused_where_one_is_needed(tmp_path: Path, retriever: str, cache: str) -> None:
    overrides = [
        f"retriever={retriever}",
        "embedder=none",
        f"runtime.cache={cache}",
        f"runtime.cache_dir={tmp_path}",
    ]
    with pytest.raises((ConfigError, CompatibilityError), match=r"embedder=none.*retriever=bm25"):
        build_and_ask(compose("evaluate", small(*overrides)))


def test_cache_on_and_off(tmp_path: Path) -> None:
    on = build_embedder(compose("evaluate", ["embedder=hashing", f"runtime.cache_dir={tmp_path / 'on'}"]))
    on.embed(["rye"], "passage")
    assert isinstance(on, CachedEmbedder)
    assert (tmp_path / "on" / "embeddings.sqlite").is_file()
    off = build_embedder(
        compose(
            "evaluate", ["embedder=hashing", f"runtime.cache_dir={tmp_path / 'off'}", "runtime.cache=false"]
        )
    )
    off.embed(["rye"], "passage")
    assert isinstance(off, HashingEmbedder)
    assert not (tmp_path / "off").exists()


def test_options_reach_their_objects() -> None:
    cfg = compose(
        "evaluate",
        small(
            "embedder.dim=32",
            "graph.synonym_threshold=0.9",
            "text=reference",
            "embedder.instructions.passage=p",
        ),
    )
    index = build_memory(cfg).index
    assert index.embedder.dim == 32
    assert index.embedder.instructions == (("passage", "p"),)
    assert index.graph_options.synonym_threshold == 0.9
    assert index.text == TextOptions(normalisation="reference", fact_template="repr", content_id="md5")


def test_what_a_command_line_states() -> None:
    overrides = [
        "embedder=minilm",
        "text.content_id=md5",
        "+graph.x=1",
        "~ppr",
        "hydra/job_logging=none",
        "top_k=3",
    ]
    assert stated_groups(overrides) == {"embedder", "text", "graph", "ppr", "hydra", "top_k"}
    assert stated_groups([]) == frozenset()


def test_an_index_remembers_how_its_embedder_is_built(tmp_path: Path) -> None:
    stated = [f"index.path={tmp_path / 'index'}", "dataset=sample", "extractor=sample", "runtime.device=cpu"]
    stated += [
        "runtime.cache=false",
        "embedder=hashing",
        "embedder.dim=32",
        "embedder.instructions.fact='a: {b}'",
    ]
    cfg = compose("retrieve", stated)
    assert lacks_corpus(cfg)
    with open_memory(cfg, stated) as memory:
        identity = memory.embedder.identity
        memory.add(["Rye bread."])
        memory.retrieve(["bread"])
    plain = [o for o in stated if not o.startswith(("embedder", "dataset", "extractor"))]
    cfg = compose("retrieve", plain)
    assert not lacks_corpus(cfg)
    with open_memory(cfg, plain) as memory:
        assert memory.embedder.identity == identity
        assert [p.text for p in memory.retrieve(["bread"])[0].passages] == ["Rye bread."]
    with pytest.raises(CompatibilityError, match=r"dim=32.*dim=16"):
        open_memory(compose("retrieve", [*plain, "embedder=hashing", "embedder.dim=16"]), stated)
    with pytest.raises(ConfigError, match=r"open_memory\(cfg, overrides\)"):
        build_memory(cfg)


def test_what_is_kept_of_an_embedder_leaves_out_the_device() -> None:
    cfg = compose("retrieve", ["embedder=minilm", "runtime.device=cpu"])
    kept = json.loads(embedder_settings(cfg, HashingEmbedder().identity))
    assert "device" not in kept
    assert kept["_target_"] == "hipporag_torch.embedders.minilm.packaged_minilm"


def test_a_hub_model_is_kept_with_the_commit_that_was_used() -> None:
    cfg = compose("retrieve", ["embedder=sentence_transformers", "embedder.model=some/model"])
    identity = replace(HashingEmbedder().identity, weights="c" * 40)
    assert json.loads(embedder_settings(cfg, identity))["revision"] == "c" * 40
    here = compose("retrieve", ["embedder=sentence_transformers", "embedder.model=."])
    assert json.loads(embedder_settings(here, identity))["model"] == str(Path.cwd())


HASHING = "hipporag_torch.embedders.hashing.HashingEmbedder"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "does not say how its embedder is built"),
        ([1], "does not say how its embedder is built"),
        ({"_target_": "os.system", "command": "true"}, "names 'os.system' as its embedder"),
        ({"_target_": "hipporag_torch.embedders.cache.Path.write_text"}, "which is none of conf/embedder"),
        ({"_target_": "hipporag_torch.embedders.cache.EmbeddingCache", "path": "x"}, "none of conf/embedder"),
        ({"_target_": ["os.system"]}, "none of conf/embedder"),
        ({"_target_": HASHING, "instructions": {"_target_": "os.getcwd"}}, "by more than plain values"),
        (
            {"_target_": HASHING, "instructions": {"fact": [{"_target_": "os.getcwd"}]}},
            "more than plain values",
        ),
        ({"_target_": HASHING, "_args_": [1]}, "by more than plain values"),
        ({"_target_": HASHING, "instructions": {"fact": "${oc.env:HOME}"}}, "by more than plain values"),
        ({"_target_": HASHING, "dim": 8, "nonsense": 1}, "unknown key embedder.nonsense"),
        (
            {
                "_target_": "hipporag_torch.embedders.sentence_transformer.SentenceTransformerEmbedder",
                "model": "some/model",
                "trust_remote_code": True,
            },
            "runs code that comes with its model, which an index cannot ask for",
        ),
    ],
)
def test_an_index_builds_nothing_but_a_plain_embedder_of_ours(settings: Any, message: str) -> None:
    cfg = compose("retrieve", small())
    with pytest.raises(ConfigError, match=message):
        build_kept_embedder(cfg, json.dumps(settings), HashingEmbedder().identity, Path("some_index"))


@pytest.mark.parametrize("name", sorted(path.stem for path in (CONF / "study").glob("*.yaml")))
def test_every_variant_of_a_study_can_be_built(name: str) -> None:
    study = build_study(compose("study", [f"study={name}"]))
    # All that are drawn from a box state the same keys.
    drawn = [variant for variant in study.variants if variant.drawn][:1]
    for variant in [*(variant for variant in study.variants if not variant.drawn), *drawn]:
        cfg = compose("study", [f"study={name}", *variant.overrides])
        require_known_keys(cfg, "study")
        for group in ("seeding", "ppr", "graph", "linker", "retriever"):
            instantiate(cfg[group])


def test_importing_the_composition_root_is_light() -> None:
    heavy = ("transformers", "sentence_transformers", "torch_geometric.datasets", "igraph", "pandas")
    program = f"import sys, hipporag_torch.config; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_imports_go_down_only() -> None:
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"], capture_output=True, text=True, cwd=CONF.parent
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout
