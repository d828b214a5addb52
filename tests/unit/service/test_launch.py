"""Flags and overrides → the configuration of the server, and what of it is shown."""

from pathlib import Path

import pytest
import yaml

from hipporag_torch.errors import ConfigError
from hipporag_torch.service.launch import configured, main, parser, shown_config


def composed(*arguments: str):
    return configured(parser().parse_args(arguments))


def test_the_default_asks_no_language_model_and_needs_no_key():
    cfg, stated = composed("--index", "somewhere")
    assert cfg.embedder._target_.endswith("packaged_minilm")
    assert cfg.extractor._target_.endswith("SentencesExtractor")
    assert cfg.reader._target_.endswith("ExtractiveReader")
    assert (cfg.index.path, cfg.index.read_only, cfg.serve.transport) == ("somewhere", False, "stdio")
    assert not stated


def test_flags_are_the_options_that_they_stand_for():
    cfg, stated = composed(
        *("--save-dir", "my index=1", "--embedder", "hashing", "--read-only", "--transport", "http"),
        *("--host", "::1", "--port", "9000", "--root", "/a", "--root", "/b c", "--token-env", "T"),
    )
    assert (cfg.index.path, cfg.index.read_only) == ("my index=1", True)
    assert (cfg.serve.transport, cfg.serve.host, cfg.serve.port) == ("http", "::1", 9000)
    assert (list(cfg.serve.roots), cfg.serve.token_env) == (["/a", "/b c"], "T")
    assert stated == {"embedder"}


def test_an_embedder_that_is_no_option_is_a_model():
    cfg, stated = composed("--index", "i", "--embedder", "BAAI/bge-small-en-v1.5")
    assert cfg.embedder._target_.endswith("SentenceTransformerEmbedder")
    assert cfg.embedder.model == "BAAI/bge-small-en-v1.5"
    assert stated == {"embedder"}


def test_a_named_model_extracts_and_answers_unless_something_else_is_stated():
    cfg, stated = composed("--index", "i", "--llm", "a-model", "--llm-base-url", "http://localhost:1/v1")
    assert (cfg.llm.model, cfg.llm.base_url) == ("a-model", "http://localhost:1/v1")
    assert cfg.extractor._target_.endswith("OpenIEExtractor")
    assert cfg.reader._target_.endswith("LLMReader")
    # An index that exists keeps its own graph options: nobody has stated any.
    assert not stated
    cfg, stated = composed("--index", "i", "--llm", "a-model", "extractor=sentences")
    assert cfg.extractor._target_.endswith("SentencesExtractor")
    assert cfg.reader._target_.endswith("LLMReader")
    assert stated == {"extractor"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no index is named"),
        (["--index", "i", "embeder=hashing"], "embeder"),
        (["--index", "i", "stray"], "'stray' is neither a flag nor a key=value"),
        (["--index", "i", "+serve.speed=9"], "unknown key serve.speed"),
        (["--index", "i", "embedder=absent_one"], "absent_one"),
        (["--index", "i", "--transport", "carrier-pigeon"], "--transport must be one of stdio, http"),
    ],
)
def test_what_cannot_be_configured_is_one_sentence(arguments: list[str], said: str):
    with pytest.raises(ConfigError, match=said):
        composed(*arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve.confirm_above=-1"], "serve.confirm_above must be 0"),
        (["serve.limits.documents=0"], "serve.limits.documents must be at least 1"),
        (["serve.max_reads=0"], "serve.max_reads must be at least 1"),
        (["--root", "/no/such/folder"], "--root /no/such/folder is not a folder"),
        (["--transport", "http", "--host", "0.0.0.0"], "needs a bearer token"),
        (["--transport", "http", "--port", "99999"], "--port must lie between"),
    ],
)
def test_a_server_that_cannot_start_says_so_on_stderr_and_makes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
):
    index = tmp_path / "index"
    assert main(["--index", str(index), "embedder=hashing", "extractor=none", *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ConfigError: ")
    assert said in err
    assert not index.exists()


def test_the_shown_configuration_has_no_secret():
    secret = "sk-very-secret-value"
    cfg, _ = composed(
        *("--index", "i", "--token-env", "HIPPORAG_TOKEN", f"+llm.headers.X-Api={secret}"),
        f"llm.base_url='https://someone:{secret}@llm.example.org/v1?key={secret}'",
        f"+llm.extra_body.api_key={secret}",
    )
    text = shown_config(cfg)
    assert secret not in text
    shown = yaml.safe_load(text)
    assert shown["llm"]["base_url"] == "https://llm.example.org/v1"
    assert shown["serve"]["confirm_above"] == 50
    # The name of the variable is no secret, its value is.
    assert "HIPPORAG_TOKEN" in text
