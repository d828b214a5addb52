"""Why a question got its passages, as a person reads it on a terminal."""

from rich.markup import escape
from rich.text import Text
from rich.tree import Tree

from hipporag_torch.explanation import ExplainedPassage, Explanation, passage_title
from hipporag_torch.types import TracedFact
from hipporag_torch.viz.text import of_own, percent, shares_text


def tree_of(explanation: Explanation) -> Tree:
    """Question → route → facts, seeds and passages with the phrases through which their mass came."""
    root = Tree(_text(f"\n[bold]{escape(explanation.question)}[/]"), guide_style="dim")
    route = root.add(_text(f"route [bold]{explanation.route}[/]: [dim]{escape(explanation.why)}[/]"))
    kept = [fact for fact in explanation.facts if fact.kept]
    if explanation.facts:
        facts = route.add(_text("facts kept" if kept else "facts considered, none kept"))
        for fact in kept or explanation.facts:
            facts.add(_text(_fact(fact)))
    if found := [node for node in explanation.nodes if node.kind == "phrase" and node.seed_share]:
        seeds = route.add(_text("seeds"))
        for node in found:
            given = f" [dim]({shares_text(node.sources)})[/]" if node.sources else ""
            seeds.add(_text(f"[cyan]{percent(node.seed_share):>7}[/]  {escape(node.label)}{given}"))
    mass = {node.rank: node.mass_share for node in explanation.nodes}
    if explanation.passages:
        passages = route.add(_text("passages"))
        for passage in explanation.passages:
            _add_passage(passages, passage, mass.get(passage.rank, 0.0))
    return root


def _text(markup: str) -> Text:
    """Markup in which `:smile:` stays what a passage says."""
    return Text.from_markup(markup, emoji=False)


def _fact(fact: TracedFact) -> str:
    return f"[cyan]{fact.score:.3f}[/]  {escape(' | '.join(fact.fact.parts))}"


def _add_passage(tree: Tree, found: ExplainedPassage, mass: float) -> None:
    figure = percent(mass) if mass else f"{found.score:.4f}"
    title = escape(passage_title(found.passage))
    branch = tree.add(_text(f"[bold]{found.rank}[/]  [cyan]{figure:>7}[/]  {title}"))
    for phrase, flow in found.through:
        branch.add(_text(f"[cyan]{percent(flow):>7}[/]  through {escape(phrase)}"))
    if found.sources:
        branch.add(_text(f"[dim]of its mass, in %: {shares_text(of_own(found.sources))}[/]"))
    if found.restart and mass:
        branch.add(_text(f"[cyan]{percent(found.restart):>7}[/]  [dim]from its own seed[/]"))
