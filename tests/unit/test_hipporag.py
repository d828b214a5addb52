import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from hipporag_torch.embedders.hashing import HashingEmbedder
from hipporag_torch.errors import BackendError, CompatibilityError, ConfigError, InputError
from hipporag_torch.extractors.none import NoExtractor
from hipporag_torch.graph_construction import GraphOptions
from hipporag_torch.hipporag import HippoRAG
from hipporag_torch.indexer import Indexer
from hipporag_torch.protocols import Embedder, EmbedderIdentity, Progress, no_progress
from hipporag_torch.retrievers.bm25 import BM25Retriever
from hipporag_torch.retrievers.hipporag import HippoRAGRetriever
from hipporag_torch.types import Document, Extraction, Passage, Role, Triple

from .store.conftest import TOVE, CountingEmbedder, CountingExtractor, Open, opener, state_of

# The first two make the phrases ada vale, northwind press (twice) and in bergen.
ADA = "Ada Vale founded Northwind Press."
BERGEN = "Northwind Press stands in Bergen."
BREAD = "Rye bread is baked aboard."


class FirstWords:
    """One triple per passage: its first two words, its third, the rest. Raises at a passage that says so."""

    def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
        if any("explode" in passage.text for passage in passages):
            raise BackendError("the model is gone")
        split = [passage.text.rstrip(".").split(maxsplit=3) for passage in passages]
        return [Extraction(triples=(Triple(f"{w[0]} {w[1]}", w[2], w[3]),)) for w in split]


class FixedRows:
    """Gives every text the same row, of whatever length and content."""

    def __init__(self, row: list[float], *, declared: int) -> None:
        self._row = row
        self._declared = declared

    @property
    def identity(self) -> EmbedderIdentity:
        return EmbedderIdentity("fixed", "1", self._declared, "none")

    def instruction(self, role: Role) -> str:
        return ""

    def embed(self, texts: Sequence[str], role: Role, progress: Progress = no_progress) -> torch.Tensor:
        return torch.tensor([self._row] * len(texts))

    def truncated(self, texts: Sequence[str], role: Role) -> list[bool]:
        return [False] * len(texts)


def memory_of(*texts: str, embedder: Embedder | None = None, extractor: Any = None) -> HippoRAG:
    embedder = embedder or HashingEmbedder(dim=64)
    memory = HippoRAG(
        indexer=Indexer(embedder=embedder, extractor=extractor or FirstWords()),
        make_retriever=lambda index: HippoRAGRetriever(index=index, embedder=embedder),
    )
    if texts:
        memory.add(texts)
    return memory


def found(memory: HippoRAG, question: str) -> list[str]:
    (ranking,) = memory.retrieve([question], top_k=99)
    return [passage.text for passage in ranking.passages]


def test_strings_and_documents() -> None:
    memory = memory_of()
    report = memory.add([ADA, Document(BERGEN, source_id="guide.md", metadata={"title": "Bergen"})])
    assert (report.documents, report.passages_added, report.passages_known) == (2, 2, 0)
    assert (report.phrases_added, report.facts_added, report.failed) == (3, 2, ())
    sources = {p.text: [(s.source_id, dict(s.metadata)) for s in p.sources] for p in memory.index.passages}
    ada_id = memory.index.text.passage_id(ADA)
    assert sources == {ADA: [(ada_id, {})], BERGEN: [("guide.md", {"title": "Bergen"})]}


def test_what_is_added_after_a_retrieval_is_found_by_the_same_handle() -> None:
    memory = memory_of(ADA)
    assert found(memory, "rye bread aboard") == [ADA]
    memory.add([BREAD])
    assert found(memory, "rye bread aboard") == [BREAD, ADA]


def test_adding_twice_is_adding_once() -> None:
    memory = memory_of(ADA, BERGEN)
    before = memory.index
    report = memory.add([BERGEN, ADA, ADA])
    assert (report.documents, report.passages_added, report.passages_known) == (3, 0, 2)
    assert (report.phrases_added, report.facts_added) == (0, 0)
    assert memory.index.passages == before.passages
    assert torch.equal(memory.index.graph.adjacency.weight, before.graph.adjacency.weight)


def test_same_text_twice_in_one_call_is_one_passage_with_both_sources() -> None:
    memory = memory_of()
    report = memory.add([Document(ADA, source_id="a.md"), Document(ADA, source_id="b.md"), ADA])
    assert (report.documents, report.passages_added) == (3, 1)
    (passage,) = memory.index.passages
    assert {source.source_id for source in passage.sources} == {"a.md", "b.md", passage.id}


def test_remove_is_the_inverse_of_add() -> None:
    memory, expected = memory_of(ADA, BERGEN, BREAD), memory_of(ADA)
    report = memory.remove(texts=[BREAD, "never seen"], passage_ids=[memory.index.text.passage_id(BERGEN)])
    assert len(report.passages_removed) == 2
    assert report.not_found == ("never seen",)
    assert (report.phrases_removed, report.facts_removed) == (3, 2)
    assert found(memory, "Who founded Northwind Press?") == [ADA]
    ours, theirs = memory.index, expected.index
    assert (ours.passages, ours.phrases, ours.facts) == (theirs.passages, theirs.phrases, theirs.facts)
    assert torch.equal(ours.graph.adjacency.weight, theirs.graph.adjacency.weight)


def test_remove_by_source_keeps_what_another_source_holds() -> None:
    memory = memory_of()
    memory.add([Document(ADA, source_id="a.md"), Document(BREAD, source_id="a.md")])
    memory.add([Document(ADA, source_id="b.md")])
    report = memory.remove(source_ids=["a.md", "c.md"])
    assert found(memory, "anything") == [ADA]
    assert report.passages_kept == (memory.index.text.passage_id(ADA),)
    assert report.not_found == ("c.md",)


def test_everything_removed_is_empty_and_usable() -> None:
    memory = memory_of(ADA)
    memory.remove(texts=[ADA])
    (ranking,) = memory.retrieve(["Who?"])
    assert (ranking.route, ranking.passages) == ("none:empty_index", ())
    assert found(memory, "Who?") == []
    memory.add([BREAD])
    assert found(memory, "Who?") == [BREAD]


def test_empty_memory() -> None:
    memory = memory_of()
    assert memory.add([]).documents == 0
    assert memory.remove().passages_removed == ()
    assert memory.retrieve(["x"])[0].route == "none:empty_index"


@pytest.mark.parametrize(
    ("documents", "error"),
    [
        ([BREAD, "please explode"], BackendError),
        ([BREAD, ""], InputError),
        ([BREAD, "half \ud800"], InputError),
        ([BREAD, None], InputError),
        ([BREAD, {"text": "x"}], InputError),
    ],
)
def test_an_add_that_raises_leaves_the_old_state(documents: list[Any], error: type[Exception]) -> None:
    memory = memory_of(ADA)
    before, ranking = memory.index, memory.retrieve(["Who founded it?"])
    with pytest.raises(error):
        memory.add(documents)
    assert memory.index is before
    assert memory.retrieve(["Who founded it?"]) == ranking


def test_a_bare_string_is_not_a_list_of_documents() -> None:
    """Every character would become a passage."""
    memory = memory_of(extractor=NoExtractor())
    with pytest.raises(InputError, match="list"):
        memory.add("abc")
    assert memory.index.passages == ()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1.0, 0.0], r"fixed is declared with dim=3, but its vectors have 2 numbers; set embedder.dim=2"),
        ([math.nan, 0.0, 0.0], r"fixed returned NaN or infinity for 1 of 1 texts.*'Ada Vale"),
        ([math.inf, 0.0, 0.0], r"fixed returned NaN or infinity"),
    ],
)
def test_vectors_that_break_the_embedders_word(row: list[float], message: str) -> None:
    memory = memory_of(embedder=FixedRows(row, declared=3))
    with pytest.raises(BackendError, match=message):
        memory.add([ADA])
    assert memory.index.passages == ()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_extractor_with_the_wrong_number_of_extractions(count: int) -> None:
    class Miscounting:
        def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
            return [Extraction()] * count

    with pytest.raises(BackendError, match=f"gave {count} extractions for 2 passages"):
        memory_of(ADA, BREAD, extractor=Miscounting())


def test_a_passage_of_a_hundred_thousand_words() -> None:
    novel = "The ferry sails north " + "past islands and lighthouses " * 25_000
    memory = memory_of(ADA, novel)
    assert found(memory, "islands lighthouses")[0] == novel
    assert len(found(memory, "Who founded Northwind Press?")) == 2


def test_special_tokens_in_a_passage_are_plain_text() -> None:
    text = "The tags <|endoftext|> and <|im_start|> end chats <think> here."
    memory = memory_of(ADA, text)
    assert found(memory, "<|endoftext|> tags")[0] == text


def test_an_index_of_another_identity_is_refused() -> None:
    other = memory_of(ADA, embedder=HashingEmbedder(dim=32)).index
    indexer = Indexer(embedder=HashingEmbedder(dim=64), extractor=FirstWords())
    with pytest.raises(CompatibilityError, match=r"embedder .*dim=32.* this indexer has .*dim=64"):
        indexer.add(other, [Document(BREAD)])


def test_the_answer_changes_when_the_answering_document_arrives() -> None:
    memory = memory_of(ADA)
    question = "Where does Northwind Press stand?"
    assert found(memory, question)[0] == ADA
    memory.add([BERGEN])
    assert found(memory, question)[0] == BERGEN
    memory.remove(texts=[BERGEN])
    assert found(memory, question)[0] == ADA


@pytest.mark.parametrize(
    "triples",
    [
        [("北京", "位于", "中国"), ("上海", "位于", "中国")],
        [("C", "is", "small"), ("C++", "is", "large"), ("C#", "is", "sharp")],
        [("Electrons", "are", "small"), ("electrons", "orbit", "nuclei"), (" electrons ", "have", "charge")],
    ],
    ids=["unicode-01", "unicode-03", "unicode-05"],
)
def test_cases_of_phrase_keys(triples: list[tuple[str, str, str]]) -> None:
    class Given:
        def extract(self, passages: Sequence[Passage], progress: Progress = no_progress) -> list[Extraction]:
            stated = {"".join(triple): Triple(*triple) for triple in triples}
            return [Extraction(triples=(stated[passage.text],)) for passage in passages]

    memory = memory_of(*map("".join, triples), extractor=Given())
    subjects = {subject.strip().casefold() for subject, _, _ in triples}
    assert set(memory.index.phrases) == subjects | {object_ for _, _, object_ in triples}
    if "北京" in subjects:
        assert found(memory, "北京")[0] == "北京位于中国"


# ---- in a directory


@pytest.fixture
def open_memory(tmp_path: Path) -> Iterator[Open]:
    with opener(tmp_path) as open_one:
        yield open_one


def test_a_reader_keeps_its_generation_until_it_refreshes(open_memory: Open) -> None:
    memory = open_memory()
    memory.add([ADA])
    reader = open_memory(read_only=True)
    before, retriever = reader.index, reader.index.passages
    memory.add([BERGEN])
    memory.remove(texts=[ADA])
    assert reader.index is before
    assert [e.status for e in reader.index.extractions] == ["ok"]
    assert reader.index.passages == retriever
    assert reader.refresh()
    assert [passage.text for passage in reader.index.passages] == [BERGEN]
    assert not reader.refresh()


def test_two_handles_that_take_turns_lose_nothing(open_memory: Open) -> None:
    first, second = open_memory(), open_memory()
    first.add([ADA])
    second.add([BERGEN])
    first.remove(texts=[ADA])
    second.add([BREAD])
    first.add([TOVE])
    second.refresh()
    assert state_of(second.index) == state_of(first.index)
    with open_memory("fresh") as fresh:
        fresh.add([BERGEN, BREAD, TOVE])
        assert state_of(fresh.index) == state_of(first.index)
    assert first.check().findings == ()


@pytest.mark.slow
def test_another_process_commits_between_two_changes_of_this_one(open_memory: Open, tmp_path: Path) -> None:
    memory = open_memory()
    memory.add([ADA])
    code = (
        "import sys; from hipporag_torch.hipporag import HippoRAG\n"
        "from hipporag_torch.embedders.hashing import HashingEmbedder\n"
        "from hipporag_torch.extractors.none import NoExtractor\n"
        "with HippoRAG.open(sys.argv[1], embedder=HashingEmbedder(dim=32), extractor=NoExtractor()) as m:\n"
        "    m.add([sys.argv[2]])\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "index"), BERGEN], check=True, timeout=60)
    assert [passage.text for passage in memory.index.passages] == [ADA]
    memory.add([BREAD])
    assert {passage.text for passage in memory.index.passages} == {ADA, BERGEN, BREAD}
    assert memory.check().findings == ()


def test_options_that_another_handle_changed_are_those_of_the_next_change(open_memory: Open) -> None:
    first, second = open_memory(), open_memory()
    first.add([ADA, BERGEN])
    options = GraphOptions(synonym_threshold=0.2)
    second.rebuild_graph(options)
    first.add([TOVE])
    assert first.index.graph_options == options
    assert first.check().findings == ()


def test_reading_alone_writes_nothing_and_changes_are_refused(open_memory: Open, tmp_path: Path) -> None:
    with open_memory() as memory:
        memory.add([ADA, BERGEN, BREAD])
        memory.remove(texts=[BREAD])
    folder = tmp_path / "index"

    def listing() -> dict[str, tuple[int, bytes]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
            for path in [folder, *sorted(folder.rglob("*"))]
        }

    before = listing()
    reader = open_memory(read_only=True, embedder=CountingEmbedder(), extractor=CountingExtractor())
    assert reader.retrieve(["Who founded Northwind Press?"])[0].passages
    assert reader.stats().counts.passages == 2
    assert reader.check().findings == ()
    assert reader.plan_add([BREAD]).passages_new == 1
    assert reader.plan_remove(texts=[ADA]).passages_removed
    assert not reader.refresh()
    for name, change in {
        "add": lambda: reader.add([BREAD]),
        "update": lambda: reader.update(reader.index.passages[0].id, [BREAD]),
        "remove": lambda: reader.remove(texts=[ADA]),
        "retry": reader.retry_failed,
        "reextract": reader.reextract,
        "rebuild_graph": lambda: reader.rebuild_graph(GraphOptions()),
        "reembed": lambda: reader.reembed(CountingEmbedder(dim=8)),
        "compact": reader.compact,
    }.items():
        with pytest.raises(ConfigError, match=f"was opened read-only, so {name} cannot change it"):
            change()
    assert listing() == before


def test_without_an_embedder_all_works_that_needs_none(open_memory: Open, tmp_path: Path) -> None:
    with open_memory() as memory:
        memory.add([ADA, BERGEN, BREAD])
        memory.remove(texts=[BREAD])
        memory.reembed(CountingEmbedder(dim=16))
    words = lambda index: BM25Retriever(index=index)  # noqa: E731
    extractor = CountingExtractor()
    with HippoRAG.open(tmp_path / "index", extractor=extractor, make_retriever=words) as memory:
        assert found(memory, "Who founded Northwind Press?")[0] == ADA
        assert memory.stats().embedder.dim == 16
        memory.remove(texts=[ADA])
        memory.compact()
        assert found(memory, "Where does Northwind Press stand?") == [BERGEN]
        with pytest.raises(ConfigError, match=r"no embedder was stated, and new passages.*name='hashing'"):
            memory.add([TOVE])
        assert extractor.asked == []
        assert memory.check().findings == ()
    with open_memory(embedder=CountingEmbedder(dim=16)) as memory:
        memory.add([TOVE])
    with (
        HippoRAG.open(tmp_path / "index") as memory,
        pytest.raises(ConfigError, match=r"embedded, but no embedder was stated"),
    ):
        memory.retrieve(["Who?"])


def test_without_an_extractor_nothing_is_extracted(open_memory: Open, tmp_path: Path) -> None:
    with open_memory() as memory:
        memory.add([ADA])
    with HippoRAG.open(tmp_path / "index", embedder=CountingEmbedder()) as memory:
        with pytest.raises(
            ConfigError, match=r"1 passages have to be extracted, but no extractor was stated"
        ):
            memory.add([BERGEN])
        assert memory.add([Document(ADA, "x.md")]).passages_known == 1


def test_what_changes_nothing_commits_nothing(open_memory: Open) -> None:
    memory = open_memory()
    memory.add([ADA])
    generation = memory.stats().disk.generation  # pyright: ignore[reportOptionalMemberAccess]
    memory.add([ADA])
    memory.add([])
    memory.remove(source_ids=["nobody"])
    memory.retry_failed()
    assert memory.stats().disk.generation == generation  # pyright: ignore[reportOptionalMemberAccess]
    memory.add([Document(ADA, "x.md")])
    assert memory.stats().disk.generation == generation + 1  # pyright: ignore[reportOptionalMemberAccess]


def test_a_memory_in_the_process_has_no_directory_to_look_after() -> None:
    memory = memory_of(ADA)
    for act in (memory.check, memory.repair, memory.compact, lambda: memory.reembed(CountingEmbedder())):
        with pytest.raises(InputError, match=r"is for a memory in a directory.*HippoRAG.open"):
            act()
    assert not memory.refresh()
    memory.close()


def test_plans_of_a_memory_in_a_directory_pay_for_nothing(open_memory: Open) -> None:
    extractor, embedder = CountingExtractor(), CountingEmbedder()
    memory = open_memory(extractor=extractor, embedder=embedder)
    memory.add([Document(ADA, "a.md")])
    before, asked = memory.stats(), (list(extractor.asked), list(embedder.asked))
    assert memory.plan_add([BERGEN, ADA]).extractor_calls == 1
    assert memory.plan_update("a.md", [BREAD]).passages_removed == (memory.index.text.passage_id(ADA),)
    assert memory.plan_reextract().extractor_calls == 1
    assert memory.plan_retry_failed().extractor_calls == 0
    assert memory.plan_remove(source_ids=["a.md"]).phrases_removed == 2
    assert memory.stats() == before
    assert (extractor.asked, embedder.asked) == asked
