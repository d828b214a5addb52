"""How many passages and questions a published set has, to be compared with what was read."""

from dataclasses import dataclass

from hipporag_torch.errors import ConfigError, DatasetError

# Two corpora go by the name of HotpotQA: (whose it is, the option that takes it).
_HOTPOTQA = {9_811: ("HippoRAG 2", "hotpotqa"), 9_221: ("HippoRAG 1", "hotpotqa_hipporag1")}


@dataclass(frozen=True)
class Expected:
    """The counts of a whole set, at least 1; None is not checked."""

    passages: int | None = None
    questions: int | None = None

    def __post_init__(self) -> None:
        for key, count in (("expected_passages", self.passages), ("expected_questions", self.questions)):
            if count is not None and count < 1:
                raise ConfigError(
                    f"dataset.{key} must be at least 1, or null for no check of it, got {count}"
                )

    def require_passages(self, got: int, file: str) -> None:
        """Raise `DatasetError` unless the corpus `file` has as many passages as expected."""
        if self.passages in (None, got):
            return
        which = ""
        if self.passages in _HOTPOTQA and got in _HOTPOTQA:
            whose, option = _HOTPOTQA[got]
            which = (
                f"This is the HotpotQA corpus of {whose}, and recalls on the two corpora are not "
                f"comparable: choose dataset={option} for it. "
            )
        raise DatasetError(
            f"{file} has {got:,} passages, expected {self.passages:,}. {which}Fetch the right file, or set "
            "dataset.expected_passages=null to take it as it is"
        )

    def require_questions(self, got: int, file: str) -> None:
        """Raise `DatasetError` unless the question `file` has as many questions as expected."""
        if self.questions in (None, got):
            return
        raise DatasetError(
            f"{file} has {got:,} questions, expected {self.questions:,}. Fetch the right file, or set "
            "dataset.expected_questions=null to take it as it is; dataset.limit asks only some of them"
        )
