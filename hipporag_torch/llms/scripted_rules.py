"""The rules of a scripted chat model, and the JSON file that holds them.

The file is a list of rules; the first that fits a prompt's last user message answers it:

    [{"equals": "Who?", "reply": "Ada."},
     {"contains": ["Oslo", "triples"], "reply": {"triples": [["Oslo", "capital of", "Norway"]]}},
     {"contains": "Rome", "reply": "{\"triples\": [[\"Ro", "finish": "length", "times": 1},
     {"contains": "Bern", "error": "the endpoint answered 500", "times": 2},
     {"reply": "I don't know."}]

`equals` is the whole message, `contains` one text or several that must all be in it; without either a rule
fits every prompt. `reply` is a text, or any JSON, which is written out. `finish` is stop, length or refused.
`error` instead of `reply` makes a failure, and `permanent` true one that asking again would not heal. A rule
with `times` answers only so often, then those below it have their turn.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from hipporag_torch.chat import ChatReply, Finish
from hipporag_torch.errors import ConfigError

_KEYS = {"equals", "contains", "reply", "finish", "error", "permanent", "times"}


@dataclass
class Rule:
    """Answers `left` more messages that fit it; None: any number."""

    reply: ChatReply
    equals: str | None = None
    contains: tuple[str, ...] = ()
    left: int | None = None

    def fits(self, message: str) -> bool:
        if self.left == 0 or (self.equals is not None and message != self.equals):
            return False
        return all(part in message for part in self.contains)

    def answer(self) -> ChatReply:
        if self.left is not None:
            self.left -= 1
        return self.reply


def rules_of(replies: Mapping[str, str]) -> list[Rule]:
    """Exact messages and their replies."""
    return [Rule(ChatReply(reply), equals=message) for message, reply in replies.items()]


def read_rules(path: Path) -> tuple[list[Rule], str]:
    """The rules of a file, and its sha256. Raises `ConfigError` if it holds none, with the place."""
    try:
        content = path.read_bytes()
        rows = json.loads(content)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"llm.replies must be a JSON file of rules; {path} cannot be read: {error}"
        ) from error
    if not isinstance(rows, list):
        raise ConfigError(f"{path} must hold a list of rules, got {type(rows).__name__}")
    rules = [_rule(row, f"rule {number} of {path}") for number, row in enumerate(rows)]
    return rules, hashlib.sha256(content).hexdigest()


def _rule(row: Any, where: str) -> Rule:
    if not isinstance(row, dict):
        raise ConfigError(f"{where} must be an object, got {row!r:.80}")
    if unknown := sorted(set(row) - _KEYS):
        raise ConfigError(
            f"{where} has unknown keys {', '.join(unknown)}; known are {', '.join(sorted(_KEYS))}"
        )
    if ("reply" in row) == ("error" in row):
        raise ConfigError(f"{where} must have either a reply or an error")
    equals, contains, times = row.get("equals"), row.get("contains", []), row.get("times")
    parts = tuple([contains] if isinstance(contains, str) else contains)
    if not (equals is None or isinstance(equals, str)) or not all(isinstance(part, str) for part in parts):
        raise ConfigError(f"{where}: equals must be a text, and contains a text or a list of texts")
    if times is not None and not (isinstance(times, int) and times >= 1):
        raise ConfigError(f"{where}: times must be a whole number, at least 1, got {times!r}")
    return Rule(_reply(row, where), equals, parts, times)


def _reply(row: dict[str, Any], where: str) -> ChatReply:
    permanent = bool(row.get("permanent", False))
    if "error" in row:
        return ChatReply("", "error", error=str(row["error"]), permanent=permanent)
    finish = row.get("finish", "stop")
    if finish not in get_args(Finish) or finish == "error":
        raise ConfigError(f"{where}: finish must be stop, length or refused, got {finish!r}")
    reply = row["reply"]
    text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
    return ChatReply(text, finish, permanent=permanent)
