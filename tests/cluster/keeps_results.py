"""What a test runs inside a `Box` whose nodes are apart: results that are kept on a node.

`python keeps_results.py KEYS` holds a node, whose /tmp this machine does not see, and runs with a
journal a program that lies there, and a task in Python. KEYS: of the pool, as JSON. Prints what the
program said, what the task gave, and how many results were found; the program is another from the
third time on. Last, whether the node is what this machine is.
"""

import json
import sys
import tempfile
from pathlib import Path

import flowos as fo
from flowos.engine import HeldSlice, SliceOptions, SliceUsage, here, processor_lines, provider_of
from flowos.model import Ask, Pool

TEXTS = ("one", "one", "two", "two")


@fo.task
def double(x: int) -> int:
    return 2 * x


def main(given: str) -> None:
    with tempfile.TemporaryDirectory(prefix="own-", dir="/tmp") as own:
        pool = Pool(name="c", nodes=2, **json.loads(given))
        folder = f"{own}-there"
        for text in TEXTS:
            used: list[SliceUsage] = []
            options = SliceOptions(journal=Path(own, "journal"), on_usage=used.append)
            with HeldSlice(provider_of(pool), Ask(), options) as s:
                s.run(installs(folder, text))
                before = sum(each.hits for each in used)
                x = fo.flow_input("x", int)
                said = fo.command(["sh", f"{folder}/tool"], stdout="said")()
                (words, number) = s.run(fo.flow_output(said, double(x)), 4)
                hits = sum(each.hits for each in used) - before
                sys.stdout.write(f"{str(words).strip()} {number} {hits}\n")
        with HeldSlice(provider_of(pool), Ask(), SliceOptions()) as s:
            (node,) = s._held.nodes
            ours = here().architecture(), processor_lines()
            sys.stdout.write(f"same {(node.architecture(), node.compile_target()) == ours}\n")


def installs(folder: str, text: str) -> fo.Flow:
    line = f"mkdir -p {folder}; cd {folder}; echo echo {text} >tool; chmod +x tool"
    return fo.flow_output(fo.command(["sh", "-c", line], name="installs", cache=False)())


if __name__ == "__main__":
    main(*sys.argv[1:])
