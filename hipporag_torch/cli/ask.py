"""hipporag-torch ask: an answer, and the passages that it rests on."""

from argparse import Namespace

from rich.markup import escape

from hipporag_torch.cli.memories import open_for_questions, reader_of
from hipporag_torch.cli.options import Commands, add_command, add_models, positive, takes
from hipporag_torch.cli.output import emit
from hipporag_torch.cli.rows import answer_row, ranking_row
from hipporag_torch.cli.settings import SEARCHES, settings_of
from hipporag_torch.config import build_models, takes_part
from hipporag_torch.console import console, warn
from hipporag_torch.console.answers import odd, show_passages, show_piece
from hipporag_torch.console.rows import shortened, show_line
from hipporag_torch.console.usage import show_usage
from hipporag_torch.protocols import Reader
from hipporag_torch.readers import LLMReader
from hipporag_torch.retrievers.questions import check_call
from hipporag_torch.types import Answer, Ranking

# Of a reader that does not say how many passages it reads.
_TOP_K = 5


def add_to(commands: Commands) -> None:
    """Add the command to the parser's."""
    parser = add_command(
        commands,
        "ask",
        run,
        summary="answer a question, with the passages and their sources",
        about="Answer a question from an index. The answer is the best supported sentence of the passages; "
        "with --llm a language model reads them. It is followed by the passages with their sources "
        "and headings.",
        example='hipporag-torch ask "Who founded Northwind Press?" --index memory\n'
        'hipporag-torch ask "Who founded it?" --index memory --passages-only --top-k 10 --json\n'
        'hipporag-torch ask "Who founded it?" --index memory --llm qwen3 --llm-base-url http://localhost:8000/v1',
    )
    takes(parser, "QUESTION", help="the question")
    parser.add_argument(
        "--top-k", type=positive, metavar="N", help="passages to find; default: as many as are read"
    )
    parser.add_argument(
        "--passages-only", action="store_true", help="find passages, shown whole, and answer nothing"
    )
    add_models(parser, "reads the passages and answers")


def run(asked: Namespace) -> int:
    """1 if a language model gave no answer because it could not be reached."""
    reads = not asked.passages_only
    settings = settings_of(asked, SEARCHES | {"reader"} if reads else SEARCHES)
    cfg, models = settings.cfg, build_models(settings.cfg)
    top_k = asked.top_k or cfg.reader.get("qa_top_k", _TOP_K)
    check_call([asked.question], top_k)
    if reads and takes_part(cfg, "reader", "llm"):
        # What is wrong with it shows before the work, not after it.
        models.get("reading")
    with open_for_questions(settings, models, reads=reads) as memory:
        ranking = memory.retrieve([asked.question], top_k=top_k)[0]
        if not reads:
            _tell_passages(asked, ranking)
            if not asked.json:
                show_usage(models)
            return 0
        answer = _read(reader_of(settings, memory, models), ranking, streams=not asked.json)
    if asked.json:
        emit(answer_row(ranking, answer))
    else:
        _tell_answer(ranking, answer)
        show_usage(models)
    return 1 if answer.flag == "error" else 0


def _read(reader: Reader, ranking: Ranking, *, streams: bool) -> Answer:
    if streams and console.is_terminal and isinstance(reader, LLMReader):
        answer = reader.read_streaming(ranking, show_piece)
        console.print()
        return answer
    return reader.read([ranking])[0]


def _tell_passages(asked: Namespace, ranking: Ranking) -> None:
    if asked.json:
        emit(ranking_row(ranking))
        return
    show_passages(ranking)
    console.print(
        f"\n[dim]route {ranking.route}; nothing was read, no answer was asked for[/]", highlight=False
    )
    _warn_of(ranking)


def _tell_answer(ranking: Ranking, answer: Answer) -> None:
    console.print(
        f"[bold green]{escape(answer.text) or '–'}[/]", highlight=False, emoji=False, soft_wrap=True
    )
    show_line(f"{answer.method}; route {ranking.route}")
    show_passages(ranking, answer)
    _warn_of(ranking)
    if answer.flag or answer.passages_left_out:
        warn(odd(answer))


def _warn_of(ranking: Ranking) -> None:
    if not ranking.passages:
        warn("no passage was found; hipporag-torch sources lists what the index holds, index-folder fills it")
    if ranking.reason:
        warn(f"retrieval: {shortened(ranking.reason, 300)}")
