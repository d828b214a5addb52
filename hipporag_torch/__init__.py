"""hipporag_torch: the HippoRAG 2 document memory on PyTorch."""
