"""The backup that docs/service.md gives: taken while a writer commits, it is a whole and clean index."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from hipporag_torch import Document, HippoRAG
from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.indexer import Indexer
from hipporag_torch.types import Extraction, Passage, Progress, Triple, no_progress

DOCS = Path(__file__).resolve().parents[2] / "docs"

# Adds, replaces and removes for as long as it is let, and compacts now and then; one line for each commit.
WRITER = """
import sys
import torch
from hipporag_torch import Document
sys.path.insert(0, sys.argv[2])
from test_backup import opened
torch.set_num_threads(1)
with opened(sys.argv[1]) as memory:
    for number in range(100_000):
        names = [f"n{number} {number + other}" for other in range(40)]
        memory.add([Document(name, source_id=f"s{number}") for name in names])
        memory.update(f"s{number}", [Document(name, source_id=f"s{number}") for name in names[20:]])
        memory.remove(source_ids=[f"s{number - 3}"])
        if number % 3 == 2:
            memory.compact()
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
"""


class PairExtractor:
    """`name number` states (name, counts, number)."""

    producer = "pairs"
    calls_per_passage = 0

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        stated = (passage.text.split() for passage in passages)
        return [Extraction(triples=(Triple(a, "counts", b),), producer=self.producer) for a, b in stated]


def opened(directory: str | Path, *, read_only: bool = False) -> HippoRAG:
    return HippoRAG.open(
        directory, embedder=HashingEmbedder(dim=64), extractor=PairExtractor(), read_only=read_only
    )


def script(folder: Path) -> Path:
    """The page's `backup.py`, as a file in `folder`."""
    page = (DOCS / "service.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    (block,) = [block for block in blocks if "backup.py" in block]
    path = folder / "backup.py"
    path.write_text(block, "utf-8")
    return path


def back_up(index: Path, backup: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(script(backup.parent)), str(index), str(backup)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def held(memory: HippoRAG) -> set[tuple[str, str]]:
    return {(source.source_id, p.text) for p in memory.index.passages for source in p.sources}


def generation(memory: HippoRAG) -> int:
    disk = memory.stats().disk
    assert disk is not None
    return disk.generation


def require_whole(backup: Path) -> int:
    """The copy checks clean and holds just what a fresh index of its passages holds; its generation."""
    with opened(backup, read_only=True) as copy:
        assert copy.check().findings == ()
        documents = [Document(text, source_id=source) for source, text in sorted(held(copy))]
        fresh = HippoRAG(indexer=Indexer(embedder=HashingEmbedder(dim=64), extractor=PairExtractor()))
        fresh.add(documents)
        assert set(fresh.index.facts) == set(copy.index.facts)
        asked = ["n1 counts what"]
        assert copy.retrieve(asked)[0].scores == fresh.retrieve(asked)[0].scores
        return generation(copy)


@pytest.mark.slow
def test_backups_taken_while_a_writer_commits_are_whole_and_so_is_one_after_it_was_killed(
    tmp_path: Path,
) -> None:
    index = tmp_path / "index"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(index), str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        try:
            assert writer.stdout.readline() == "0\n"
            for number in range(12):
                back_up(index, tmp_path / f"backup-{number}")
                time.sleep(0.11)
            assert writer.poll() is None
        finally:
            writer.send_signal(signal.SIGKILL)
    back_up(index, tmp_path / "backup-killed")
    found = [require_whole(tmp_path / f"backup-{number}") for number in range(12)]
    # The writer was at work all the while: the copies are of many moments, in order.
    assert found == sorted(found)
    assert len(set(found)) >= 6
    assert require_whole(tmp_path / "backup-killed") >= found[-1]


def test_a_backup_in_the_midst_of_a_change_is_of_the_state_before_and_has_what_was_paid_for(
    tmp_path: Path,
) -> None:
    index, backup = tmp_path / "index", tmp_path / "backup"

    def stop(stage: str, done: int, total: int) -> None:
        # All that has to be embedded is, and nothing is committed.
        if stage == "embed fact" and done == total:
            back_up(index, backup)

    with opened(index) as memory:
        memory.add([Document("one 1", source_id="a")])
        memory.add([Document("two 2", source_id="b")], stop)
    with opened(backup) as copy:
        assert held(copy) == {("a", "one 1")}
        assert copy.check().findings == ()
        assert generation(copy) == 1
        assert copy.add([Document("two 2", source_id="b")]).passages_added == 1
        assert copy.check().findings == ()
    assert (backup / "vectors").is_dir()


# Steps of the script: within its transaction, and after it. There a writer is started, and waited for.
WITHIN, AFTER = "    records.backup(copied)\n", "    for name, file in files.items():\n"
START = """
    import subprocess
    writer = subprocess.Popen([sys.executable, "-c", sys.argv[3]], stdout=subprocess.PIPE)
    assert writer.stdout.readline() == b"begins\\n"
    import time; time.sleep(1)
"""
END = "    assert writer.wait() == 0\n"


def back_up_overtaken(index: Path, backup: Path, change: str, *, starts: str) -> None:
    """Run the script, and from its step `starts` on a process that does `change` to `memory`."""
    steps = script(backup.parent).read_text("utf-8")
    assert WITHIN in steps
    assert AFTER in steps
    steps = steps.replace(AFTER, END + AFTER).replace(starts, START + starts)
    (backup.parent / "overtaken.py").write_text(steps, "utf-8")
    work = f"""
import sys
from hipporag_torch import Document
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_backup import opened
with opened({str(index)!r}) as memory:
    sys.stdout.write("begins\\n")
    sys.stdout.flush()
    {change}
"""
    command = [sys.executable, str(backup.parent / "overtaken.py"), str(index), str(backup), work]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("starts", [WITHIN, END], ids=["within", "after"])
@pytest.mark.parametrize(
    "change",
    ["memory.add([Document('new 1', source_id='s3')])", "memory.compact()"],
    ids=["commit", "compact"],
)
def test_a_backup_that_a_change_overtakes_is_of_the_state_before(
    tmp_path: Path, change: str, starts: str
) -> None:
    """The change waits while the records are copied, and deletes files that are copied afterwards."""
    index, backup = tmp_path / "index", tmp_path / "backup"
    with opened(index) as memory:
        memory.add([Document(f"name {number}", source_id=f"s{number % 2}") for number in range(40)])
        memory.remove(source_ids=["s0"])
        before = held(memory), generation(memory)
    files = {path.name for path in index.rglob("*.*")}
    back_up_overtaken(index, backup, change, starts=starts)
    assert files - {path.name for path in index.rglob("*.*")}
    with opened(index, read_only=True) as memory:
        assert generation(memory) == before[1] + 1
    with opened(backup, read_only=True) as copy:
        assert (held(copy), generation(copy)) == before
        assert copy.check().findings == ()


def test_a_backup_never_goes_into_a_folder_that_is_there(tmp_path: Path) -> None:
    index, backup = tmp_path / "index", tmp_path / "backup"
    with opened(index) as memory:
        memory.add([Document("one 1", source_id="a")])
    back_up(index, backup)
    before = {path: path.read_bytes() for path in backup.rglob("*") if path.is_file()}
    again = [sys.executable, str(script(tmp_path)), str(index), str(backup)]
    assert subprocess.run(again, capture_output=True, timeout=120).returncode == 1
    assert {path: path.read_bytes() for path in backup.rglob("*") if path.is_file()} == before
