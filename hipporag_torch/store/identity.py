"""What shapes stored state, as JSON: the embedder, the text options, the graph options."""

import json
from dataclasses import asdict
from typing import Any

from hipporag_torch.errors import CompatibilityError
from hipporag_torch.graph_construction import AnyGraphOptions, GraphOptions, ReferenceGraphOptions
from hipporag_torch.protocols import EmbedderIdentity
from hipporag_torch.text import TextOptions

_GRAPHS: dict[str, type[AnyGraphOptions]] = {"default": GraphOptions, "reference": ReferenceGraphOptions}


def embedder_to_json(identity: EmbedderIdentity) -> str:
    return _json(asdict(identity))


def embedder_from_json(text: str) -> EmbedderIdentity:
    fields = json.loads(text)
    fields["instructions"] = tuple((role, instruction) for role, instruction in fields["instructions"])
    return EmbedderIdentity(**fields)


def text_to_json(options: TextOptions) -> str:
    return _json(asdict(options))


def text_from_json(text: str) -> TextOptions:
    return TextOptions(**json.loads(text))


def graph_to_json(options: AnyGraphOptions) -> str:
    kind = next(kind for kind, options_type in _GRAPHS.items() if type(options) is options_type)
    return _json({"kind": kind, **asdict(options)})


def graph_from_json(text: str) -> AnyGraphOptions:
    fields = json.loads(text)
    return _GRAPHS[fields.pop("kind")](**fields)


def require_same_text(stored: TextOptions, stated: TextOptions | None, path: object) -> None:
    """Raise `CompatibilityError` if the caller states other text options than the index has."""
    if stated is not None and stated != stored:
        raise CompatibilityError(
            f"the index {path} was built with text options {differing(stored, stated)}; leave them out to "
            "take those of the index, or build another index in another directory (its extractions can be "
            "exported and imported there)"
        )


def require_same_graph(stored: AnyGraphOptions, stated: AnyGraphOptions | None, path: object) -> None:
    """Raise `CompatibilityError` if the caller states other graph options than the index has."""
    if stated is not None and stated != stored:
        raise CompatibilityError(
            f"the index {path} was built with graph options {differing(stored, stated)}; leave them out to "
            "take those of the index, change them with rebuild_graph (no model is needed), or use another "
            "directory"
        )


def differing(stored: Any, stated: Any) -> str:
    """Both sides of what differs, by name."""
    if type(stored) is not type(stated):
        return f"{stored}, but {stated} were stated"
    ours, theirs = asdict(stored), asdict(stated)
    names = [name for name in ours if ours[name] != theirs[name]]
    was = ", ".join(f"{name}={ours[name]!r}" for name in names)
    now = ", ".join(f"{name}={theirs[name]!r}" for name in names)
    return f"{was}, but {now} was stated"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
