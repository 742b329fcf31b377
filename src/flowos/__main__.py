"""`python -m flowos` is `flowos`."""

import sys

from flowos.cli import script

if __name__ == "__main__":
    sys.exit(script())
