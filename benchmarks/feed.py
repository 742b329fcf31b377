"""Training data from remote storage and from this node, compared with other loaders.

`python benchmarks/feed.py --help`; see feed/__main__.py for what is measured and how.
"""

import runpy
from pathlib import Path

if __name__ == "__main__":
    runpy.run_path(str(Path(__file__).with_suffix("")), run_name="__main__")
