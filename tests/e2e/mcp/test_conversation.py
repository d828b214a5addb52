"""What an agent does with a folder of notes, from the first sync to forgetting a source."""

from pathlib import Path

import pytest
from mcp import Client

from .lab import Model, call, refused, server_over, service_over

pytestmark = pytest.mark.anyio


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    for name, text in (
        ("people/press.md", "Ada founded Northwind\n"),
        ("places/press.md", "Northwind sits_in Bergen\n"),
        ("places/bergen.txt", "Bergen borders Askoy\n"),
        ("node_modules/readme.md", "Packages bundle packages\n"),
        ("picture.md", "\0\0\0"),
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


async def test_sync_ask_edit_sync_ask_forget_ask(directory: Path, notes: Path) -> None:
    model = Model()
    with service_over(directory, model, roots=[notes.parent], above=2) as service:
        async with Client(server_over(service)) as client:
            planned = await call(client, "index_folder", path=str(notes), dry_run=True)
            assert (planned["plan"]["passages_new"], planned["plan"]["usage"]["calls"]) == (3, 6)
            skipped = {
                file["path"]: file["reason"] for file in planned["files"] if file["status"] == "skipped"
            }
            assert skipped.keys() == {"node_modules/", "picture.md"}
            assert all(skipped.values())
            assert "3 passages" in await refused(client, "index_folder", path=str(notes))
            assert model.asked == 0
            confirm = planned["plan"]["confirm"]
            synced = await call(client, "index_folder", path=str(notes), confirm=confirm)
            assert synced["counts"] == {"added": 3, "skipped": 2}
            assert model.asked == 6

            found = await call(client, "retrieve", query="Where does what Ada founded sit?", top_k=3)
            assert found["route"].startswith("graph")
            paths = [passage["sources"][0]["metadata"]["path"] for passage in found["passages"]]
            # Two files of one name are two sources, and the one that takes two steps is found.
            assert set(paths[:2]) == {"people/press.md", "places/press.md"}
            source = found["passages"][0]["sources"][0]
            assert source["source_id"] == f"{synced['root_id']}/{source['metadata']['path']}"
            assert source["end"] > source["start"] == 0

            (notes / "places/press.md").write_text("Northwind sits_in Tromso\n")
            (notes / "places/bergen.txt").touch()
            again = await call(client, "index_folder", path=str(notes))
            assert again["counts"] == {"replaced": 1, "skipped": 2, "unchanged": 2}
            assert (again["usage"]["calls"], model.asked) == (2, 8)
            found = await call(client, "retrieve", query="Where does Northwind sit?", top_k=1)
            assert "Tromso" in found["passages"][0]["text"]

            gone = f"{synced['root_id']}/people/press.md"
            await call(client, "delete", source_ids=[gone])
            found = await call(client, "retrieve", query="Who founded Northwind?", top_k=10)
            assert all("Ada" not in passage["text"] for passage in found["passages"])
            (notes / "people/press.md").unlink()
            last = await call(client, "index_folder", path=str(notes), prune=True)
            assert last["counts"] == {"skipped": 2, "unchanged": 2}
            assert model.asked == 8


async def test_what_two_sources_state_stays_until_both_are_gone(directory: Path) -> None:
    with service_over(directory) as service:
        async with Client(server_over(service)) as client:
            await call(
                client,
                "index",
                documents=[
                    {"text": "Ana works_at Acme today", "source_id": "d1"},
                    {"text": "Acme based_in Oslo", "source_id": "d1"},
                    {"text": "Ana works_at Acme still", "source_id": "d2"},
                ],
            )
            preview = await call(client, "delete", source_ids=["d1"], preview=True)
            before = await call(client, "index_stats")
            gone = await call(client, "delete", source_ids=["d1"])
            assert gone["removed"] == preview["removed"]
            assert (gone["removed"]["facts_removed"], gone["removed"]["phrases_removed"]) == (1, 1)
            after = await call(client, "index_stats")
            assert (before["facts"], after["facts"]) == (2, 1)
            assert (before["phrases"], after["phrases"]) == (3, 2)
