"""hipporag-torch sources: what an index was made of."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from hipporag_torch.cli.memories import open_as_it_is
from hipporag_torch.cli.options import Commands, add_command, takes_nothing
from hipporag_torch.cli.output import emit
from hipporag_torch.cli.settings import settings_of
from hipporag_torch.console.rows import num_passages, shortened, show_line
from hipporag_torch.index import Index

# What the splitter says of each passage; a source of one passage would have it too.
_OF_A_PASSAGE = frozenset({"heading", "chunk", "start", "end"})


def add_to(commands: Commands) -> None:
    """Add the command to the parser's."""
    parser = add_command(
        commands,
        "sources",
        run,
        summary="the sources of an index, such as files, with their passages",
        about="List the sources of an index with the number of their passages and the metadata that all "
        "passages of a source share, such as the path of a file. `remove` takes the names that stand "
        "first.",
        example="hipporag-torch sources --index memory\n"
        "hipporag-torch sources --index memory --prefix notes-3fa9c2d1/",
    )
    takes_nothing(parser)
    parser.add_argument("--prefix", default="", metavar="TEXT", help="only those whose names begin with it")


def run(asked: Namespace) -> int:
    """List the sources."""
    with open_as_it_is(settings_of(asked)) as memory:
        rows = source_rows(memory.index, asked.prefix)
    if asked.json:
        emit({"prefix": asked.prefix, "sources": rows})
        return 0
    for row in rows:
        failed = [f"{row['failed']:,} not extracted"] if row["failed"] else []
        told = ", ".join([num_passages(row["passages"]), *failed, *_told(row["metadata"])])
        show_line(f"{row['source_id']}  ({told})")
    if not rows:
        show_line(f"no source begins with {asked.prefix!r}" if asked.prefix else "the index holds no source")
    return 0


def source_rows(index: Index, prefix: str = "") -> list[dict[str, Any]]:
    """The sources by name: how many passages each holds, how many of these could not be extracted, and the
    metadata that all of them share."""
    held: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for passage in index.passages:
        for source in passage.sources:
            if source.source_id.startswith(prefix):
                held.setdefault(source.source_id, []).append((passage.id, source.metadata))
    return [
        {
            "source_id": source_id,
            "passages": len(its),
            "failed": sum(passage_id in index.failed for passage_id, _ in its),
            "metadata": _shared([metadata for _, metadata in its]),
        }
        for source_id, its in sorted(held.items())
    ]


def _shared(all_: list[Mapping[str, Any]]) -> dict[str, Any]:
    first, *others = all_
    return {
        key: value
        for key, value in first.items()
        if key not in _OF_A_PASSAGE and all(key in other and other[key] == value for other in others)
    }


def _told(metadata: Mapping[str, Any]) -> list[str]:
    """The rest is for machines: a file's root and path stand in its name already."""
    return [f"{key} {shortened(str(metadata[key]), 60)}" for key in ("title", "mtime") if key in metadata]
