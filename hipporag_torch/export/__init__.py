"""An index in the formats of others: Parquet for vector databases, GraphML, HippoRAG's own JSON."""

from hipporag_torch.export.files import Exported
from hipporag_torch.export.graphml import export_graphml
from hipporag_torch.export.parquet import export_parquet
from hipporag_torch.export.upstream import export_upstream, read_upstream

__all__ = ["Exported", "export_graphml", "export_parquet", "export_upstream", "read_upstream"]
