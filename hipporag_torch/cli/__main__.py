"""python -m hipporag_torch.cli: the same as hipporag-torch."""

import sys

from hipporag_torch.cli.program import main

if __name__ == "__main__":
    sys.exit(main())
