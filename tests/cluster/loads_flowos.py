"""What tests run inside a `Box`: `python loads_flowos.py SHARED [IMAGE]` has a task load FlowOS.

Prints `ran` and which it was, or how it failed.
"""

import sys
from pathlib import Path

import flowos as fo
from flowos.engine import HeldSlice, SliceOptions, here, provider_of
from flowos.model import Ask, Environment, FlowosError, Pool


@fo.task
def which() -> fo.str_:
    import flowos
    from flowos.model import Ask

    return f"{flowos.__file__} {Ask.__name__}"


def main(shared: str, image: str = "") -> None:
    env = Environment()
    if image:
        env = Environment(image=here().image_at(Path(image)), runtime="auto")
    pool = Pool(name="c", kind="slurm", nodes=1, shared=shared)
    flow = fo.flow_output(which())
    try:
        options = SliceOptions(cores=1, env=env)
        with HeldSlice(provider_of(pool), Ask(nodes=1), options) as s:
            sys.stdout.write(f"ran {s.run(flow)[0]}\n")
    except FlowosError as error:
        sys.stdout.write(f"failed {type(error).__name__} {error}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
