"""Serve a memory to agents over MCP: python scripts/serve_mcp.py --help"""

import sys

from hipporag_torch.service.launch import main

if __name__ == "__main__":
    sys.exit(main())
