"""Where a chat model's files are on this machine, and which revision they are."""

from dataclasses import dataclass
from pathlib import Path

from hipporag_torch.embedders import hub, model_folder
from hipporag_torch.errors import ConfigError

_GGUF_FILES = ["*.json", "*.jinja", "*.model", "*.txt"]


@dataclass(frozen=True, kw_only=True)
class LocalWeights:
    """A model by its name: a local folder, or a hub id that is fetched when it is first needed.

    revision: branch, tag or commit of a hub model. gguf_file: the one file in it that holds the weights.
    Raises `ConfigError` for a folder or file that is not there, for the revision of a folder, and for code
    of a model whose commit is not pinned.
    """

    model: str
    revision: str | None = None
    trust_remote_code: bool = False
    gguf_file: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model.strip():
            raise ConfigError(f"llm.model must be the name of a model, got {self.model!r}")
        local = hub.is_folder(self.model)
        if local and self.revision is not None:
            raise ConfigError(
                f"llm.revision={self.revision} is for hub models, but {self.model} is a folder; leave it out"
            )
        if self.trust_remote_code and not (local or hub.is_commit(self.revision)):
            raise ConfigError(
                f"llm.trust_remote_code=true runs code from {self.model}, so it needs the commit that you "
                f"have read: llm.revision must be 40 hexadecimal digits, got {self.revision!r}"
            )
        if local:
            self._require_gguf(hub.local_folder(self.model, group="llm"))

    @property
    def name(self) -> str:
        """The hub id, or the folder's own name: never a path of this machine."""
        return Path(self.model).expanduser().resolve().name if hub.is_folder(self.model) else self.model

    def folder(self) -> Path:
        """The folder with the files; a hub model is fetched, and its folder is named after the commit."""
        if hub.is_folder(self.model):
            return hub.local_folder(self.model, group="llm")
        only = [self.gguf_file, *_GGUF_FILES] if self.gguf_file else None
        folder = hub.hub_snapshot(self.model, self.revision, group="llm", only=only)
        self._require_gguf(folder)
        return folder

    def resolved_revision(self) -> str:
        """The commit of a hub model, or a digest of a folder's files."""
        folder = self.folder()
        if not hub.is_folder(self.model):
            return folder.name
        if self.gguf_file:
            return f"sha256:{model_folder.file_digest(folder / self.gguf_file)}"
        return f"sha256:{model_folder.folder_digest(folder)}"

    def _require_gguf(self, folder: Path) -> None:
        if self.gguf_file is not None and not (folder / self.gguf_file).is_file():
            there = ", ".join(sorted(path.name for path in folder.glob("*.gguf"))) or "none"
            raise ConfigError(
                f"llm.gguf_file={self.gguf_file} is not in the folder of {self.name}; "
                f"the GGUF files there: {there}"
            )
