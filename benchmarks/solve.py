"""Large sparse systems solved, beside what others take for them.

`python benchmarks/solve.py --help`; solve/solving.py says what is measured and how.
"""

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).with_suffix("")))
    runpy.run_module("solving", run_name="__main__")
