"""The triples of the sample corpus that comes with the package."""

from hipporag_torch import samples
from hipporag_torch.extractors.stored import StoredExtractor


def sample_triples() -> StoredExtractor:
    """Reads the triples written for the sample; they hold for its passages alone."""
    return StoredExtractor(path=samples.folder() / "triples.json")
