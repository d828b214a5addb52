"""What is derived from the records, for one generation and one embedder, in one safetensors file."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Int64
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from hipporag_torch.errors import StoreError
from hipporag_torch.graph import Graph
from hipporag_torch.graph_construction import Statements
from hipporag_torch.index import Index
from hipporag_torch.lexicon import Lexicon
from hipporag_torch.ops.csr import CSR
from hipporag_torch.ops.pairs import Pairs
from hipporag_torch.ops.ragged import Ragged
from hipporag_torch.store.vectors import KINDS, Kind

VectorRows = dict[Kind, Int64[Tensor, " rows"]]
"""For each kind, the row of the vector file that holds the vector of each row of the index."""


@dataclass(frozen=True, eq=False)
class Arrays:
    """The tensors of a generation whose rows are those of its index."""

    statements: Statements
    lexicon: Lexicon
    synonyms: Pairs
    graph: Graph
    vector_rows: VectorRows


def write_arrays(path: Path, index: Index, vector_rows: VectorRows, *, about: dict[str, object]) -> None:
    """Write the derived tensors of `index`; `about` is what reading will demand of the file."""
    adjacency, statements, synonyms = index.graph.adjacency, index.statements, index.synonyms
    phrase_tokens, fact_tokens = index.lexicon.phrase_tokens, index.lexicon.fact_tokens
    tensors = {
        "statement_passage": statements.passage_idx,
        "statement_fact": statements.fact_idx,
        "statement_subject": statements.subject_idx,
        "statement_object": statements.object_idx,
        "statement_named": statements.named,
        "phrase_token_ptr": phrase_tokens.row_ptr,
        "phrase_tokens": phrase_tokens.values,
        "fact_token_ptr": fact_tokens.row_ptr,
        "fact_tokens": fact_tokens.values,
        "synonym_first": synonyms.first_idx,
        "synonym_second": synonyms.second_idx,
        "synonym_cosine": synonyms.cosine,
        "row_ptr": adjacency.row_ptr,
        "col": adjacency.col,
        "weight": adjacency.weight,
        **{f"{kind}_vector": vector_rows[kind] for kind in KINDS},
    }
    narrow = {
        name: (t.int() if t.dtype == torch.int64 and name not in _WIDE else t).contiguous().cpu()
        for name, t in tensors.items()
    }
    # One entry of metadata: several would be written in no fixed order.
    try:
        save_file(narrow, path, metadata={"about": json.dumps(about, sort_keys=True)})
    except SafetensorError as error:
        raise OSError(str(error)) from error  # it wraps those of the system
    # It makes files that their owner alone may read; whoever may read the folder may read them.
    path.chmod(path.parent.stat().st_mode & 0o666)


def read_arrays(
    path: Path, *, about: dict[str, object], num_passages: int, num_phrases: int, num_facts: int
) -> Arrays:
    """The tensors of `path`. Raises `StoreError` if it is not whole or is another generation's."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            found = json.loads(metadata.get("about", "null"))
            t = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError) as error:
        raise StoreError(f"the arrays {path} cannot be read: {error}; {_WAYS_OUT}") from error
    if found != about:
        raise StoreError(
            f"{path} holds the arrays of {found}, expected those of {about}: it is another file; {_WAYS_OUT}"
        )
    wanted = {
        "passage_vector": num_passages,
        "phrase_vector": num_phrases,
        "fact_vector": num_facts,
        "row_ptr": num_passages + num_phrases + 1,
        "phrase_token_ptr": num_phrases + 1,
        "fact_token_ptr": num_facts + 1,
    }
    for name, count in wanted.items():
        if name not in t or t[name].shape[0] != count:
            got = t[name].shape[0] if name in t else "no"
            raise StoreError(f"{path} has {got} rows of {name}, the records have {count}; {_WAYS_OUT}")
    statements = Statements(
        t["statement_passage"].long(),
        t["statement_fact"].long(),
        t["statement_subject"].long(),
        t["statement_object"].long(),
        t["statement_named"],
    )
    lexicon = Lexicon(
        Ragged(t["phrase_token_ptr"].long(), t["phrase_tokens"]),
        Ragged(t["fact_token_ptr"].long(), t["fact_tokens"]),
    )
    synonyms = Pairs(t["synonym_first"].long(), t["synonym_second"].long(), t["synonym_cosine"])
    adjacency = CSR(t["row_ptr"], t["col"], t["weight"], num_passages + num_phrases)
    graph = Graph(num_phrases, num_passages, adjacency)
    return Arrays(statements, lexicon, synonyms, graph, {kind: t[f"{kind}_vector"].long() for kind in KINDS})


# Numbers of tokens use all 64 bits.
_WIDE = ("phrase_tokens", "fact_tokens")
_WAYS_OUT = "run action=repair, which builds it again from the records"
