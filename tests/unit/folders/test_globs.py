import pytest

from hipporag_torch.errors import InputError
from hipporag_torch.folders.globs import Globs


@pytest.mark.parametrize(
    ("pattern", "named", "not_named"),
    [
        ("*.md", ["a.md", "x/y/A.MD", ".md"], ["a.md.txt", "a.md/b", "md"]),
        ("docs/*.md", ["docs/a.md"], ["a.md", "docs/x/a.md", "x/docs/a.md"]),
        ("docs/**/*.md", ["docs/a.md", "docs/x/y/a.md"], ["a.md", "docsx/a.md"]),
        ("docs/**", ["docs/a", "docs/x/b.md"], ["docs", "a/docs/b"]),
        ("?.md", ["a.md", "x/b.md"], ["ab.md", "/.md"]),
        ("[ab].md", ["a.md", "b.md"], ["c.md"]),
        ("[!a].md", ["b.md"], ["a.md", "/.md"]),
        ("[a-c].md", ["b.md"], ["d.md", "-.md"]),
        ("[]].md", ["].md"], ["[.md", "a.md"]),
        ("[.md", ["[.md"], ["a.md"]),
        ("a+(b).md", ["a+(b).md"], ["aab.md"]),
        ("[^a].md", ["^.md", "a.md"], ["b.md"]),
        ("**/*.md", ["a.md", "x/a.md"], ["a.txt"]),
    ],
)
def test_a_glob_names_these_and_not_those(pattern: str, named: list[str], not_named: list[str]) -> None:
    globs = Globs([pattern])
    assert [path for path in named + not_named if globs.match(path)] == named


def test_any_of_several_is_enough() -> None:
    globs = Globs(["*.md", "*.txt"])
    assert [globs.match(path) for path in ("a.md", "a.txt", "a.rst")] == [True, True, False]


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ([], "there are no globs"),
        ("*.md", r"must be a list of patterns, got the string '\*.md'"),
        ([" "], "one of the globs is empty"),
        (["/etc/*"], "must stay inside the folder, got '/etc/\\*'"),
        (["a/../*.md"], "must stay inside the folder"),
    ],
)
def test_others_are_refused(patterns: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Globs(patterns)
