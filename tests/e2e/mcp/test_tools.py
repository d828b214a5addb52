"""Every tool and every way it refuses, with the real client in this process."""

import threading
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from hipporag_torch import HippoRAG

from .lab import DOCUMENTS, Model, call, digest_of, refused, server_over, service_over

pytestmark = pytest.mark.anyio
MODES = ("auto", "legacy")
READS = {"retrieve", "rag_qa", "explain", "index_stats"}
WRITES = {"index", "update", "delete", "index_folder"}


@pytest.mark.parametrize("mode", MODES)
async def test_every_tool_is_documented_and_says_truly_what_it_does(directory: Path, mode: str) -> None:
    with service_over(directory) as service:
        async with Client(server_over(service), mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() == READS | WRITES
    for name, tool in tools.items():
        assert tool.description
        assert tool.annotations
        assert tool.annotations.read_only_hint == (name in READS)
        assert tool.annotations.destructive_hint == (name in WRITES - {"index"})
        assert tool.annotations.idempotent_hint
        assert tool.annotations.open_world_hint is False
        assert tool.input_schema["additionalProperties"] is False
        assert all("description" in argument for argument in tool.input_schema["properties"].values())
        assert tool.output_schema
        for model in (tool.output_schema, *tool.output_schema.get("$defs", {}).values()):
            assert model["description"]
            assert all("description" in field for field in model["properties"].values())


@pytest.mark.parametrize("mode", MODES)
async def test_a_conversation_with_every_tool_whose_results_fit_their_schemas(
    directory: Path, tmp_path: Path, mode: str
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "lund.md").write_text("Tove maps glaciers\n")
    (folder / "blob.md").write_bytes(b"\x00\x01")
    with service_over(directory, roots=[tmp_path]) as service:
        async with Client(server_over(service), mode=mode) as client:
            schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}

            async def ask(tool: str, **arguments: Any) -> dict[str, Any]:
                result = await call(client, tool, **arguments)
                jsonschema.validate(result, schemas[tool])
                return result

            nothing = await ask("rag_qa", question="Who founded Northwind?")
            assert (nothing["answer"], nothing["route"]) == ("", "none:empty_index")
            plan = (await ask("index", documents=DOCUMENTS, dry_run=True))["plan"]
            assert (plan["passages_new"], plan["usage"]["calls"], plan["confirm"]) == (3, 6, None)
            added = (await ask("index", documents=[*DOCUMENTS, "Cooks bake bread"]))["added"]
            assert (added["passages_added"], added["usage"]["calls"]) == (4, 8)
            found = await ask("retrieve", query="Who founded Northwind?", top_k=2)
            source = found["passages"][0]["sources"][0]
            assert found["passages"][0]["text"] == "Ada Vale founded Northwind"
            assert (source["source_id"], source["metadata"]) == ("ada.md", {"date": "2024-05-01"})
            assert (source["start"], source["end"]) == (0, 26)
            answer = await ask("rag_qa", question="Who founded Northwind?")
            assert set(answer["citations"]) <= {passage["passage_id"] for passage in answer["passages"]}
            assert answer["citations"]
            explained = await ask("explain", query="Who founded Northwind?")
            assert explained["facts"]
            assert explained["why"]
            updated = await ask("update", source_id="ada.md", documents=["Ada Vale left Northwind"])
            assert len(updated["removed"]["passages_removed"]) == 1
            planned = await ask("update", source_id="ada.md", documents=["Ada came back"], dry_run=True)
            assert (planned["plan"]["passages_new"], planned["plan"]["passages_removed"]) == (1, 1)
            would = await ask("index_folder", path=str(folder), dry_run=True)
            assert (would["counts"], would["plan"]["passages_new"]) == ({"added": 1, "skipped": 1}, 1)
            synced = await ask("index_folder", path=str(folder), glob=["*.md"], prune=True)
            assert synced["counts"] == {"added": 1, "skipped": 1}
            assert {file["path"] for file in synced["files"]} == {"lund.md", "blob.md"}
            going = await ask("delete", source_ids=["ada.md", "nobody.md"], preview=True)
            assert going["removed"]["not_found"] == ["nobody.md"]
            gone = await ask("delete", source_ids=["ada.md"], texts=["Cooks bake bread"])
            assert len(gone["removed"]["passages_removed"]) == 2
            stats = await ask("index_stats")
            assert (stats["passages"], stats["writing"], stats["confirm_above"]) == (3, "", 50)
            resource = (await client.list_resources()).resources[0]
            assert "index: here" in (await client.read_resource(resource.uri)).contents[0].text  # type: ignore


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("retrieve", {"query": "  "}, "question 0 is empty"),
        ("retrieve", {"query": "x" * 10_001}, "at most 10,000 may be asked"),
        ("retrieve", {"query": "Who?", "top_k": 0}, "greater than or equal to 1"),
        ("retrieve", {"query": "Who?", "top_k": 101}, "less than or equal to 100"),
        ("retrieve", {"query": "Who?", "top_k": "many"}, "valid integer"),
        ("retrieve", {"query": "Who?", "topk": 3}, "retrieve has no argument topk; it takes query, top_k"),
        ("retrieve", {}, "Field required"),
        ("explain", {"query": ""}, "question 0 is empty"),
        ("rag_qa", {"question": 7}, "valid string"),
        ("index", {"documents": []}, "documents is empty"),
        ("index", {"documents": ["\n\t "]}, "a document's text is empty"),
        ("index", {"documents": ["x" * 10_000_000]}, "10,000,000 characters, at most 1,000,000"),
        ("index", {"documents": ["text"] * 1001}, "1,001 documents, at most 1,000"),
        ("index", {"documents": ["lone \ud800 half"]}, "surrogate"),
        ("index", {"documents": [{"text": "a", "metadata": {"a": [[[[[[[[0]]]]]]]]}}]}, "9 levels deep"),
        (
            "index",
            {"documents": [{"text": "a", "metadata": {"a": "x" * 20_000}}]},
            "put what is long",
        ),
        ("index", {"documents": [{"text": "a", "source": "b"}]}, "Extra inputs are not permitted"),
        ("index", {"documents": ["text"], "confirm": "made up"}, "not a token that this server has given"),
        ("update", {"source_id": "nobody.md", "documents": ["a"]}, "the index has no source 'nobody.md'"),
        ("update", {"source_id": "ada.md", "documents": []}, "documents is empty"),
        ("delete", {}, "nothing was named"),
        ("delete", {"source_ids": "ada.md"}, "valid list"),
        ("index_folder", {"path": "/"}, "outside of the folders"),
        ("index_folder", {"path": "notes/../.."}, "outside of the folders"),
        ("index_folder", {"path": "absent"}, "not a folder that exists"),
        ("forget_all", {}, "Unknown tool: forget_all"),
    ],
)
async def test_what_cannot_be_done_is_an_error_that_says_why_and_nothing_is_written(
    directory: Path, tmp_path: Path, tool: str, arguments: dict[str, Any], said: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    model = Model()
    with service_over(directory, model, roots=[root]) as service:
        async with Client(server_over(service)) as client:
            await call(client, "index", documents=DOCUMENTS)
            before, asked = digest_of(directory), model.asked
            assert said in await refused(client, tool, **arguments)
            assert model.asked == asked
            if tool in READS | {"forget_all"}:
                assert digest_of(directory) == before
            assert (await call(client, "index_stats"))["passages"] == 3


async def test_an_unknown_resource_is_an_error_of_the_protocol(directory: Path) -> None:
    with service_over(directory) as service:
        async with Client(server_over(service)) as client:
            with pytest.raises(MCPError):
                await client.read_resource("hipporag://secrets")


async def test_a_confirmation_is_good_once_and_for_its_plan(directory: Path) -> None:
    model = Model()
    documents = [f"Ada wrote book{number}" for number in range(51)]
    with service_over(directory, model) as service:
        async with Client(server_over(service)) as client:
            assert "51 passages (102 calls of a language model)" in await refused(
                client, "index", documents=documents
            )
            confirm = (await call(client, "index", documents=documents, dry_run=True))["plan"]["confirm"]
            assert model.asked == 0
            assert "another plan" in await refused(client, "index", documents=documents[1:], confirm=confirm)
            assert model.asked == 0
            added = await call(client, "index", documents=documents, confirm=confirm)
            assert added["added"]["passages_added"] == 51
            assert "used already" in await refused(client, "index", documents=documents, confirm=confirm)


async def test_a_question_is_answered_anew_once_a_document_answers_it(directory: Path) -> None:
    with service_over(directory) as service:
        async with Client(server_over(service)) as client:
            await call(client, "index", documents=DOCUMENTS)
            before = await call(client, "retrieve", query="Who maps glaciers?", top_k=1)
            await call(client, "index", documents=["Tove maps glaciers"])
            after = await call(client, "retrieve", query="Who maps glaciers?", top_k=1)
    assert before["passages"][0]["text"] != "Tove maps glaciers"
    assert after["passages"][0]["text"] == "Tove maps glaciers"


@pytest.mark.parametrize("mode", MODES)
async def test_a_long_write_tells_how_far_it_is_and_ends_with_its_call(directory: Path, mode: str) -> None:
    go, seen = threading.Event(), []
    model = Model(before=lambda: go.wait(10) and None)
    with service_over(directory, model) as service:
        async with Client(server_over(service), mode=mode) as client:

            async def advance(done: float, total: float | None, message: str | None) -> None:
                seen.append((done, total, message))

            go.set()
            await client.call_tool("index", {"documents": DOCUMENTS}, progress_callback=advance)
            assert seen
            assert [step[0] for step in seen] == sorted({step[0] for step in seen})
            assert all(done <= total and message for done, total, message in seen)
            go.clear()
            with anyio.move_on_after(0.3):
                await call(client, "index", documents=[f"Tove saw glacier{n}" for n in range(20)])
            assert (await call(client, "retrieve", query="Who founded Northwind?"))["passages"]
            go.set()
            stats = await call(client, "index_stats")
            while stats["writing"]:
                stats = await call(client, "index_stats")
            assert stats["passages"] == 3
            assert model.asked < 6 + 40


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_goes_away_takes_its_queued_write_with_it(directory: Path, mode: str) -> None:
    go = threading.Event()
    model = Model(before=lambda: go.wait(10) and None)
    with service_over(directory, model) as service:
        server = server_over(service)
        async with Client(server, mode=mode) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: call(client, "index", documents=DOCUMENTS))
            while not model.asked:
                await anyio.sleep(0.01)
            with anyio.move_on_after(0.3):
                await call(client, "index", documents=["Tove maps glaciers"])
            while service.state().writes_waiting:
                await anyio.sleep(0.01)
            go.set()
    with HippoRAG.open(directory, read_only=True) as memory:
        assert {passage.text for passage in memory.index.passages} == {row["text"] for row in DOCUMENTS}
