"""The config of an evaluation as its folder keeps it, and whether that folder is new, begun or finished."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml
from omegaconf import DictConfig, OmegaConf

from hipporag_torch.errors import ConfigError
from hipporag_torch.evaluation.draft import differences
from hipporag_torch.evaluation.files import METRICS

CONFIG = "config.yaml"
ENVIRONMENT = "environment.json"

# Where and how a run is done and what is written of it; nothing here decides what is found.
_NOT_DECISIVE = frozenset({"runtime", "tracker", "output", "dry_run", "expected", "pictures", "budget"})
# What stands before an @, and behind a ?, is nobody's business. Texts with blanks are no URLs.
_URL = re.compile(r"([a-z][a-z0-9+.-]*://)(?:[^/\s]*@)?([^?#\s]*)\S*", re.IGNORECASE)
_SECRET = re.compile(r"(password|secret|authorization|(?<!max_)token|api_?key|credential)s?$", re.IGNORECASE)


def resolved_config(cfg: DictConfig) -> dict[str, Any]:
    """`cfg` as plain values, interpolations resolved and secrets masked."""
    plain = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=False)
    return cast(dict[str, Any], _masked(plain))


def decisive(config: Mapping[str, Any]) -> dict[str, Any]:
    """What of a resolved config decides a run's predictions."""
    return {key: value for key, value in config.items() if key not in _NOT_DECISIVE}


class RunFolder:
    """A run's folder, with the resolved config that it is asked to hold."""

    def __init__(self, directory: str | Path, config: Mapping[str, Any]) -> None:
        self.directory = Path(directory)
        self.config = dict(config)

    def is_finished(self) -> bool:
        """Whether the run is there already. Raises `ConfigError` if what is there has other settings."""
        stated = self.directory / CONFIG
        if not stated.is_file():
            if (self.directory / METRICS).is_file():
                raise ConfigError(
                    f"{self.directory} holds a run that does not say how it was made; give another"
                )
            return False
        earlier = yaml.safe_load(stated.read_text(encoding="utf-8"))
        if others := differences(decisive(earlier), decisive(self.config)):
            raise ConfigError(
                f"{self.directory} holds a run with other settings: {others}; go on with its own, or give "
                "another folder"
            )
        return (self.directory / METRICS).is_file()

    def write(self, environment: Mapping[str, Any]) -> None:
        """Write config.yaml, and what the run is made on as environment.json."""
        self.directory.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(self.config, allow_unicode=True, sort_keys=False)
        (self.directory / CONFIG).write_text(text, encoding="utf-8")
        text = json.dumps(environment, ensure_ascii=False, sort_keys=True, indent=2)
        (self.directory / ENVIRONMENT).write_text(text + "\n", encoding="utf-8")


def _masked(value: Any, secret: bool = False) -> Any:
    """The value with everything under `headers`, and what is called a secret, replaced by stars.

    Of a URL the user, the password and the query go: keys stand there too.
    """
    if isinstance(value, dict):
        return {
            key: _masked(inner, secret or key == "headers" or bool(_SECRET.search(str(key))))
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_masked(inner, secret) for inner in value]
    if not isinstance(value, str) or not value:
        return value
    return "***" if secret else _without_login(value)


def _without_login(text: str) -> str:
    url = _URL.fullmatch(text)
    return f"{url[1]}{url[2]}" if url else text
