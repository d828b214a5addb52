"""40 kills at random moments of each change, with the disk really synced. Not collected by default:

python -m pytest tests/e2e/crash/random_moments.py -s
"""

from pathlib import Path

import pytest

from . import operations
from .conftest import MakeLab
from .crash_lab import check_all_or_nothing
from .test_index import CHANGES, OPERATIONS


@pytest.mark.parametrize("change", CHANGES)
def test_killed_at_random_moments_it_is_as_before_or_as_after(
    crash_lab: MakeLab, tmp_path: Path, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    template = tmp_path / "template"
    operations.make(template)
    lab = crash_lab(OPERATIONS, template)
    seen = check_all_or_nothing(lab, change, "state", lab.random_kills(change, count=40, seed=0))
    with capsys.disabled():
        print(f"\n{change}: {seen['before']} as before, {seen['after']} as after")  # noqa: T201
