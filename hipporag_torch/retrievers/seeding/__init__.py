"""Where the walk restarts: from evidence about a question to a weight for every node."""

from hipporag_torch.retrievers.seeding.blended import BlendedSeeding
from hipporag_torch.retrievers.seeding.evidence import ConsideredFacts, Evidence
from hipporag_torch.retrievers.seeding.protocol import Seeding
from hipporag_torch.retrievers.seeding.reference import ReferenceSeeding
from hipporag_torch.retrievers.seeding.sources import SeedSource, reset_of

__all__ = [
    "BlendedSeeding",
    "ConsideredFacts",
    "Evidence",
    "ReferenceSeeding",
    "SeedSource",
    "Seeding",
    "reset_of",
]
