"""A prompt as a data file: a system text, worked examples, and a template for the user's turn."""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from hipporag_torch.chat import Message, Prompt
from hipporag_torch.errors import ConfigError

_FIELD = re.compile(r"\{([a-z_]+)\}")
_SHAPE = "expected the texts version, system and user, and [[examples]] with a text for each field and reply"


@dataclass(frozen=True)
class PromptTemplate:
    """A prompt but for its fields, which stand as `{name}` in `user`.

    `examples` are worked ones, as pairs of the user's turn and the reply. `version` is what the file says;
    `digest` changes with anything that a model gets to see.
    """

    name: str
    version: str
    system: str
    user: str
    examples: tuple[tuple[str, str], ...] = ()

    @property
    def fields(self) -> frozenset[str]:
        """The names that `messages` takes."""
        return frozenset(_FIELD.findall(self.user))

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits of system text, template and examples."""
        content = json.dumps([self.system, self.user, self.examples])
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """Name, version and digest in one word, for records of who made what."""
        return f"{self.name}-{self.version}-{self.digest[:8]}"

    def messages(self, **fields: str) -> Prompt:
        """The conversation that asks for a reply to these fields. Their texts go in as they are.

        Raises `ConfigError` if a field is missing, or one is given that the template lacks.
        """
        turns = [Message("system", self.system)]
        for user, reply in self.examples:
            turns += [Message("user", user), Message("assistant", reply)]
        return (*turns, Message("user", _filled(self.name, self.user, fields)))


def load_prompt(name_or_path: str | Path) -> PromptTemplate:
    """A prompt of ours by its name, or your own by the path of its file, which ends in .toml.

    Raises `ConfigError` for an unknown name, and for a file that is missing or not of this shape.
    """
    path = Path(name_or_path)
    if path.suffix != ".toml":
        if str(name_or_path) not in prompt_names():
            raise ConfigError(
                f"there is no prompt {str(name_or_path)!r}; there are {', '.join(prompt_names())}, "
                "or give the path of your own .toml file"
            )
        path = _folder() / f"{name_or_path}.toml"
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no prompt file {path} (looked from {Path.cwd()})") from error
    except OSError as error:
        raise ConfigError(f"the prompt file {path} cannot be read: {error}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is not TOML in UTF-8: {error}") from error
    return _template(path, content)


def prompt_names() -> list[str]:
    """The names of our prompts, sorted."""
    return sorted(path.stem for path in _folder().glob("*.toml"))


def _folder() -> Path:
    return Path(str(files("hipporag_torch.prompts")))


def _template(path: Path, content: Mapping[str, Any]) -> PromptTemplate:
    heads = [content.get(key) for key in ("version", "system", "user")]
    rows = content.get("examples", [])
    rows = rows if isinstance(rows, list) else [rows]
    unknown = content.keys() - {"version", "system", "user", "examples"}
    if unknown or not all(isinstance(text, str) for text in heads) or not all(map(_is_example, rows)):
        raise ConfigError(f"the prompt file {path} has {', '.join(sorted(content)) or 'nothing'}; {_SHAPE}")
    version, system, user = (str(text).strip("\n") for text in heads)
    pairs = []
    for row in rows:
        texts = {key: text.strip("\n") for key, text in row.items()}
        reply = texts.pop("reply")
        pairs.append((_filled(f"{path} in its examples", user, texts), reply))
    return PromptTemplate(path.stem, version, system, user, tuple(pairs))


def _is_example(row: Any) -> bool:
    return isinstance(row, dict) and "reply" in row and all(isinstance(text, str) for text in row.values())


def _filled(name: str, template: str, fields: Mapping[str, str]) -> str:
    """`template` with its fields, in one pass: what stands in a field's text is never taken for a field."""
    expected = set(_FIELD.findall(template))
    if expected != fields.keys():
        raise ConfigError(
            f"the prompt {name} takes the fields {', '.join(sorted(expected)) or 'none'}; "
            f"got {', '.join(sorted(fields)) or 'none'}"
        )
    return _FIELD.sub(lambda match: fields[match[1]], template)
