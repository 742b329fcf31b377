"""`python -m flowos` is `flowos`."""

import sys

from flowos.cli import main

if __name__ == "__main__":
    sys.exit(main())
