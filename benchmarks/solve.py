"""Solving large sparse systems, compared with other libraries.

`python benchmarks/solve.py --help`; see solve/solving.py for what is measured and how.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).with_suffix("")))
    runpy.run_module("solving", run_name="__main__")
