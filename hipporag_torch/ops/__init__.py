"""Pure tensor functions: sparse products, PageRank, top-k, pairs and scores, on CPU and CUDA alike."""
