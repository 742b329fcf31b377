"""Training data from far storage and from this node, beside what others make of it.

`python benchmarks/feed.py --help`; feed/__main__.py says what is measured and how.
"""

import runpy
from pathlib import Path

if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).with_suffix("")), run_name="__main__")
