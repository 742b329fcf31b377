"""`flowos` as a program that does not look at this machine, which takes most of its time.

usage: python -P looked_flowos.py LOOK [ARG...]: LOOK is a file with the facts.
"""

import pickle
import sys
from pathlib import Path

from flowos.cli import script
from flowos.model import Facts
from flowos.operations import doctor
from flowos.operations.measure import _run


def main() -> int:
    found: Facts = pickle.loads(Path(sys.argv.pop(1)).read_bytes())
    for module in (_run, doctor):
        vars(module)["facts"] = lambda *_: found
    return script()


if __name__ == "__main__":
    sys.exit(main())
