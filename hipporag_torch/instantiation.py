"""Objects from the groups of a config, with errors that a person can act on."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hydra
from hydra.errors import InstantiationException
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf

from hipporag_torch.errors import ConfigError, HippoRAGError


def conf_dir() -> Path:
    """The folder of configs: inside an installed package, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def takes_part(cfg: DictConfig, group: str, part: str) -> bool:
    """Whether what `cfg.<group>` describes takes a part, such as `llm`, that the config cannot name."""
    return part in inspect.signature(get_object(cfg[group]["_target_"])).parameters


def build(cfg: DictConfig, group: str, *, partial: bool = False) -> Any:
    """What `cfg.<group>` describes; the library's own errors come through as they are.

    partial: give something that makes it, once it has the parts that the config cannot name.
    """
    node = cfg[group]
    require_parameters(node, group)
    if missing := sorted(OmegaConf.missing_keys(node)):
        folder, choice = ("llm", f"llm@{group}") if group.endswith("_llm") else (group, group)
        options = sorted(path.stem for path in (conf_dir() / folder).glob("*.yaml"))
        choose = f", or choose another {choice}: {', '.join(options)}" if len(options) > 1 else ""
        raise ConfigError(f"{missing[0]} is not set; give it as {missing[0]}=VALUE{choose}")
    try:
        return hydra.utils.instantiate(node, **({"_partial_": True} if partial else {}))
    except InstantiationException as error:
        if isinstance(error.__cause__, HippoRAGError):
            raise error.__cause__ from None
        raise _not_built(cfg, group, error.__cause__ or error) from error


def build_with(cfg: DictConfig, group: str, offered: Mapping[str, Callable[[], Any]]) -> Any:
    """The same, with those of the parts `offered` that it takes; the others are not made."""
    taken = [name for name in offered if takes_part(cfg, group, name)]
    if not taken:
        return build(cfg, group)
    make = build(cfg, group, partial=True)
    parts = {name: offered[name]() for name in taken}
    with plain_errors(cfg, group):
        return make(**parts)


@contextmanager
def plain_errors(cfg: DictConfig, group: str) -> Iterator[None]:
    """As Hydra's, for what is not called by it: a value of the wrong type is one sentence."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise _not_built(cfg, group, error) from error


def _not_built(cfg: DictConfig, group: str, cause: BaseException) -> ConfigError:
    return ConfigError(f"{group} could not be built from {OmegaConf.to_container(cfg[group])}: {cause}")


def require_parameters(node: DictConfig, group: str) -> None:
    parameters = inspect.signature(get_object(node["_target_"])).parameters
    require_among(node, parameters, group, prefix=f"{group}.")


def require_among(node: DictConfig, known: Collection[str], owner: str, *, prefix: str = "") -> None:
    given = [str(key) for key in node if not str(key).startswith("_")]
    if unknown := [prefix + key for key in given if key not in known]:
        raise ConfigError(
            f"unknown key {', '.join(unknown)}; {owner} takes {', '.join(sorted(known)) or 'no keys'}"
        )
