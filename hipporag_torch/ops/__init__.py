"""Pure tensor functions: sparse products, PageRank, top-k, pairs and scores. CPU and CUDA by the same code."""
