"""What tests run inside a `Box`: `python runs_twice.py SHARED` runs a flow, then another one.

Prints `ran`; after a line how the second one ended in the same slice, and how it is to hold one.
"""

import sys

import flowos as fo
from flowos.engine import HeldSlice, SliceOptions, provider_of
from flowos.model import Ask, FlowosError, Pool


@fo.task
def double(x: fo.int64) -> fo.int64:
    return 2 * x


@fo.task
def triple(x: fo.int64) -> fo.int64:
    return 3 * x


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main(shared: str) -> None:
    flows = [fo.flow_output(task(fo.flow_input("x", fo.int64))) for task in (double, triple)]
    provider = provider_of(Pool(name="c", kind="slurm", nodes=2, shared=shared))
    with HeldSlice(provider, Ask(nodes=2), SliceOptions(cores=1)) as s:
        for flow in flows:
            try:
                say("ran", s.run(flow, 1))
            except FlowosError as error:
                say("failed", type(error).__name__, error)
            sys.stdin.readline()
    try:
        provider.free(provider.hold(Ask()))
    except FlowosError as error:
        say("refused", error)


if __name__ == "__main__":
    main(*sys.argv[1:])
