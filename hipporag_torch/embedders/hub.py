"""From a model's name to the folder that holds its files, pinned to one commit."""

import re
from pathlib import Path

from hipporag_torch.errors import BackendError, ConfigError

# The same weights in formats that are never loaded here; some repositories hold five of them.
_OTHER_FORMATS = [
    "onnx/*",
    "openvino/*",
    "coreml/*",
    "*.onnx",
    "*.h5",
    "*.msgpack",
    "*.ot",
    "*.gguf",
    "*.ckpt",
]
_COMMIT = re.compile(r"[0-9a-f]{40}")


def is_folder(model: str) -> bool:
    """Whether a model's name means a local folder; any other name is a hub id."""
    return model.startswith((".", "/", "~")) or Path(model).is_dir()


def is_commit(revision: str | None) -> bool:
    """Whether a revision names one commit for ever, as a branch or a tag does not."""
    return revision is not None and _COMMIT.fullmatch(revision) is not None


def local_folder(model: str, *, group: str = "embedder") -> Path:
    """The folder that a path names. Raises `ConfigError` if it is not there. group: of `group`.model."""
    folder = Path(model).expanduser().absolute()
    if not folder.is_dir():
        raise ConfigError(
            f"{group}.model={model} names a folder that does not exist; give the folder that holds the "
            "model's files, config.json and weights, or a hub id such as owner/name"
        )
    return folder


def hub_snapshot(
    repo_id: str, revision: str | None, *, group: str = "embedder", only: list[str] | None = None
) -> Path:
    """The local folder with a hub model's files, downloaded if need be; its name is the commit.

    group: whose `model` option it is. only: patterns of the files to fetch, instead of all but those in
    formats that are never loaded.

    Raises `ConfigError` for a malformed id and `BackendError` if the hub does not deliver.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    # The hub's client library changed its HTTP library twice; this is the root of that library's errors.
    http_error: type[Exception] = HfHubHTTPError.__mro__[1]
    wanted = repo_id if revision is None else f"{repo_id} at revision {revision}"
    try:
        folder = Path(
            snapshot_download(
                repo_id,
                revision=revision,
                allow_patterns=only,
                ignore_patterns=None if only else _OTHER_FORMATS,
            )
        )
    except HFValidationError as error:
        raise ConfigError(
            f"{group}.model={repo_id} is neither a folder nor a hub id (name or owner/name): {error}"
        ) from error
    except (OSError, http_error) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        kind = "embedding model" if group == "embedder" else "model"
        packaged = "; or use the packaged model: embedder=minilm" if group == "embedder" else ""
        raise BackendError(
            f"the {kind} {wanted} could not be fetched from the Hugging Face hub: {reason}. "
            "Connect this machine to the hub (and check the name); or copy the model's folder here and set "
            f"{group}.model=/path/to/it{packaged}"
        ) from error
    if not is_commit(folder.name):
        raise BackendError(f"the hub put {wanted} into {folder}, expected a folder named after its commit")
    return folder
