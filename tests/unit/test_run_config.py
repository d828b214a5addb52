import json
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from hipporag_torch.config import compose
from hipporag_torch.errors import ConfigError
from hipporag_torch.run_config import RunFolder, decisive, resolved_config

CONFIG = {"ppr": {"damping": 0.5}, "runtime": {"threads": 1}, "output": "x"}


def test_secrets_are_masked_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    cfg = OmegaConf.create(
        {
            "llm": {
                "headers": {"X-Key": "${oc.env:MY_KEY}", "nested": [{"a": "${oc.env:MY_KEY}"}]},
                "extra_body": {"api_key": "${oc.env:MY_KEY}", "password": ""},
                "api_key_env": "MY_KEY",
                "base_url": "https://me:sk-very-secret@host.example:8000/v1?key=sk-very-secret",
                "max_tokens": 5,
                "max_tokens_name": "max_tokens",
            }
        }
    )
    config = resolved_config(cfg)
    assert "sk-very-secret" not in str(config)
    assert config["llm"]["headers"] == {"X-Key": "***", "nested": [{"a": "***"}]}
    assert config["llm"]["extra_body"] == {"api_key": "***", "password": ""}
    assert (config["llm"]["api_key_env"], config["llm"]["max_tokens"]) == ("MY_KEY", 5)
    assert config["llm"]["base_url"] == "https://host.example:8000/v1"
    assert config["llm"]["max_tokens_name"] == "max_tokens"


def test_a_real_config_resolves_and_keeps_what_decides() -> None:
    config = resolved_config(compose("evaluate", ["dataset=sample", "output=here", "ppr.damping=0.4"]))
    assert config["ppr"]["damping"] == 0.4
    assert config["retriever"]["batch_size"] == 32
    assert config["output"] == "here"
    assert {"ppr", "dataset", "embedder", "ks"} <= decisive(config).keys()
    assert not {"runtime", "tracker", "output", "pictures"} & decisive(config).keys()


def test_a_folder_is_new_then_begun_then_finished(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run", CONFIG)
    assert not folder.is_finished()
    folder.write({"python": "3.11"})
    assert not RunFolder(tmp_path / "run", CONFIG | {"runtime": {"threads": 8}, "output": "y"}).is_finished()
    assert json.loads((tmp_path / "run" / "environment.json").read_text()) == {"python": "3.11"}
    (tmp_path / "run" / "metrics.json").write_text("{}")
    assert folder.is_finished()


def test_a_folder_with_other_settings_is_refused(tmp_path: Path) -> None:
    RunFolder(tmp_path, CONFIG).write({})
    with pytest.raises(
        ConfigError, match=r"other settings: ppr\.damping was 0\.5, is 0\.6; go on with its own"
    ):
        RunFolder(tmp_path, CONFIG | {"ppr": {"damping": 0.6}}).is_finished()


def test_a_run_that_does_not_say_how_it_was_made_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text("{}")
    with pytest.raises(ConfigError, match="does not say how it was made; give another"):
        RunFolder(tmp_path, CONFIG).is_finished()
