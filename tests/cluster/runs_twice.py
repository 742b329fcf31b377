"""What tests run inside a `Box`: `python runs_twice.py SHARED` runs a flow, then other ones.

Prints `ran`; after a line how the first one goes on, how others end in the same slice, how it is to
hold one. `refused` alone where none can be held from the first.
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
    echo = fo.command(["echo", fo.In("x")], inputs={"x": fo.int64}, stdout="said", name="echo")
    x = fo.flow_input("x", fo.int64)
    first, *others = (fo.flow_output(task(x)) for task in (double, triple, echo))
    provider = provider_of(Pool(name="c", kind="slurm", nodes=2, shared=shared))
    try:
        with HeldSlice(provider, Ask(nodes=2), SliceOptions(cores=1)) as s:
            show_run(s, first, 1)
            sys.stdin.readline()
            show_run(s, first, 2)
            for flow in others:
                show_run(s, flow, 1)
        provider.free(provider.hold(Ask()))
    except FlowosError as error:
        say("refused", error)


def show_run(s: HeldSlice, flow: fo.Flow, x: int) -> None:
    try:
        say("ran", s.run(flow, x))
    except FlowosError as error:
        say("failed", type(error).__name__, error)


if __name__ == "__main__":
    main(*sys.argv[1:])
