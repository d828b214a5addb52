"""What the files of a sentence-transformers folder say, read without loading the model."""

import hashlib
import json
from pathlib import Path
from typing import Any

from hipporag_torch.errors import CompatibilityError, ConfigError

# Weights, configuration, tokenizer and code: what decides the vectors. Not model cards and git files.
_SUFFIXES = {".safetensors", ".bin", ".json", ".txt", ".model", ".py", ".jinja"}
_OTHER_FORMATS = {"onnx", "openvino", "coreml"}


def folder_digest(folder: Path) -> str:
    """sha256 over the names and contents of all files that decide the vectors; 64 hex digits."""
    digest = hashlib.sha256()
    for path in sorted(_deciding_files(folder)):
        digest.update(f"{file_digest(folder / path)}  {path}\n".encode())
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """sha256 of one file, as `sha256sum` and the hub's file pages show it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_weights(folder: Path, sha256: str) -> None:
    """Raises `CompatibilityError` unless the folder's model.safetensors has this sha256."""
    path = folder / "model.safetensors"
    if not path.is_file():
        raise ConfigError(
            f"embedder.weights_sha256 is the digest of one file, but {path} does not exist; leave it out"
        )
    if (real := file_digest(path)) != sha256:
        raise CompatibilityError(
            f"the weights in {path} are not those that were pinned: sha256 is {real}, expected {sha256}; "
            "install the model again, or pin what is there if that is what you mean to use"
        )


def pooling(folder: Path) -> str:
    """How token vectors become one vector: "mean", "cls", "mean+max"; "none" without a pooling module."""
    if not (folder / "modules.json").is_file():
        return "mean"  # what sentence-transformers puts on top of a plain transformers model
    for module in _json(folder / "modules.json"):
        if module["type"].endswith(".Pooling"):
            return _pooling_mode(_json(folder / module["path"] / "config.json"))
    return "none"


def max_tokens(folder: Path) -> int | None:
    """The number of tokens after which the model's own configuration cuts; None if it names none."""
    path = folder / "sentence_bert_config.json"
    return _json(path).get("max_seq_length") if path.is_file() else None


def _pooling_mode(config: dict[str, Any]) -> str:
    if mode := config.get("pooling_mode"):
        return mode if isinstance(mode, str) else "+".join(mode)
    prefix = "pooling_mode_"
    modes = (
        key.removeprefix(prefix).removesuffix("_tokens").removesuffix("_token")
        for key in config
        if key.startswith(prefix) and config[key]
    )
    return "+".join(sorted(modes)) or "mean"


def _deciding_files(folder: Path) -> list[str]:
    paths = (
        path.relative_to(folder) for path in folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file()
    )
    return [
        path.as_posix()
        for path in paths
        if path.parts[0] not in _OTHER_FORMATS and not any(part.startswith(".") for part in path.parts)
    ]


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path} cannot be read: {error}; the folder must hold a whole model: copy it again"
        ) from error
