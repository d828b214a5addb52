"""hipporag-torch explain: why a question gets its passages."""

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from hipporag_torch.cli.memories import open_for_questions
from hipporag_torch.cli.options import Commands, add_command, add_models, positive, takes
from hipporag_torch.cli.output import emit
from hipporag_torch.cli.rows import explanation_row
from hipporag_torch.cli.settings import SEARCHES, settings_of
from hipporag_torch.config import build_models
from hipporag_torch.console import console
from hipporag_torch.console.explanation import tree_of
from hipporag_torch.console.rows import show_line
from hipporag_torch.console.usage import show_usage
from hipporag_torch.errors import InputError
from hipporag_torch.explanation import Explanation, explain
from hipporag_torch.retrievers.questions import check_call
from hipporag_torch.viz.html import write_html
from hipporag_torch.viz.png import draw_png, require_matplotlib


def add_to(commands: Commands) -> None:
    """Add the command to the parser's."""
    parser = add_command(
        commands,
        "explain",
        run,
        summary="why a question gets its passages",
        about="Show what carried a question to its passages: the facts kept, the phrases that seed the walk "
        "over the graph, and the phrases through which each passage was reached.",
        example='hipporag-torch explain "Who founded Northwind Press?" --index memory\n'
        'hipporag-torch explain "Who founded it?" --index memory --html why.html --png why.png',
    )
    takes(parser, "QUESTION", help="the question")
    add = parser.add_argument
    add("--top-k", type=positive, default=5, metavar="N", help="passages to find; default: 5")
    add(
        "--html",
        type=Path,
        metavar="FILE",
        help="write a page that shows the sub-graph; an old one is replaced",
    )
    add("--png", type=Path, metavar="FILE", help="write a picture of it; an old one is replaced")
    add_models(parser, "helps to find passages, with linker=llm or fact_filter=llm")


def run(asked: Namespace) -> int:
    """Show the explanation, and write it."""
    settings = settings_of(asked, SEARCHES)
    check_call([asked.question], asked.top_k)
    if asked.png:
        # Before the work, not after it.
        require_matplotlib()
    models = build_models(settings.cfg)
    with open_for_questions(settings, models, reads=False) as memory:
        ranking = memory.retrieve([asked.question], top_k=asked.top_k, trace=True)[0]
        explanation = explain(memory.index, ranking)
    files = [
        _written(write, explanation, path)
        for write, path in ((write_html, asked.html), (draw_png, asked.png))
        if path
    ]
    if asked.json:
        emit({**explanation_row(explanation), "files": files})
        return 0
    console.print(tree_of(explanation))
    show_usage(models)
    for file in files:
        show_line(f"written to {file}")
    return 0


def _written(write: Callable[[Explanation, Path], None], explanation: Explanation, path: Path) -> str:
    try:
        write(explanation, path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror}; name a file in a folder that exists"
        ) from error
    return str(path)
