"""Several processes over one index: two that write, ten that read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hipporag_torch import HippoRAG

PROGRAM = Path(__file__).with_name("writers_and_readers.py")


@pytest.mark.slow
def test_two_writers_and_ten_readers_during_fifty_commits(tmp_path: Path) -> None:
    directory = tmp_path / "index"
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(directory)],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(seen) == 10
    # Each ends at the last generation; together they have looked while the writers were at work.
    assert {reader["passages"] for reader in seen} == {51}
    assert sum(reader["generations"] for reader in seen) > 20
    with HippoRAG.open(directory, read_only=True) as memory:
        held = {
            (source.source_id, source.position, passage.text)
            for passage in memory.index.passages
            for source in passage.sources
        }
        written = {(name, number, f"{name} {number}") for name in ("left", "right") for number in range(25)}
        assert held == {("first", 0, "first 0"), *written}
        stats = memory.stats()
        assert stats.disk is not None
        assert stats.disk.generation == 51
        assert not memory.check().findings
