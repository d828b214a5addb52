"""A folder that holds the two files of a data set."""

from dataclasses import dataclass
from pathlib import Path

from hipporag_torch.datasets.counts import Expected
from hipporag_torch.datasets.rows import SUFFIXES
from hipporag_torch.datasets.source import Presence
from hipporag_torch.errors import DatasetError


@dataclass(frozen=True)
class Folder:
    """Files `corpus` and `questions` of `path`; `option` is what names the folder, such as dataset.path."""

    path: Path
    corpus: str
    questions: str
    option: str

    def require(self, *names: str) -> list[Path]:
        """The named files. Raises `DatasetError` if one is not there."""
        paths = [self.path / name for name in names]
        missing = [name for name, path in zip(names, paths, strict=True) if not path.is_file()]
        if not missing:
            return paths
        if not self.path.is_dir():
            raise DatasetError(
                f"there is no folder {self.path} (looked from {Path.cwd()}); it should hold "
                f"{' and '.join(names)}. Set {self.option}"
            )
        there = sorted(path.name for path in self.path.iterdir() if path.suffix in SUFFIXES)
        raise DatasetError(
            f"{self.path} has no {' and no '.join(missing)}; its data files are "
            f"{', '.join(there[:20]) or 'none'}. Set {self.option}, dataset.corpus and dataset.questions"
        )

    def present(self, expected: Expected) -> Presence:
        """Which of the two files are there; nothing is read."""
        corpus, questions = (
            path if path.is_file() else None for path in (self.path / self.corpus, self.path / self.questions)
        )
        return Presence(
            place=str(self.path),
            corpus_name=self.corpus,
            questions_name=self.questions,
            corpus=corpus,
            questions=questions,
            expected_passages=expected.passages,
            expected_questions=expected.questions,
        )
