"""Starts trainings of examples/resnet50 by fork, so that PyTorch is imported once for all.

`python forked_ranks.py`; a line of JSON in, one out: {"start": words, "rank", "size", "port",
"output"} gives a process id, {"wait": id} an exit code, as of subprocess. {"measure": words,
"output"} starts programs/torch_training.py, whose answer is in the output.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "src/flowos/probes/programs"))
sys.path.insert(0, str(Path(__file__).parents[3] / "examples/resnet50"))

import torch
import torch_training
import train

import flowos as fo

_LOADED = (fo.Feed, torch.optim.SGD([torch.zeros(1, requires_grad=True)]))
"""What is else loaded when it is first used, which takes seconds in every process."""


def run(order: dict[str, Any]) -> int:
    output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    if "measure" in order:
        code = torch_training.main(order["measure"])
        sys.stdout.flush()
        return code
    os.dup2(output, 2)
    return run_rank(order)


def run_rank(order: dict[str, Any]) -> int:
    os.environ |= {
        "RANK": str(order["rank"]),
        "LOCAL_RANK": str(order["rank"]),
        "WORLD_SIZE": str(order["size"]),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(order["port"]),
    }
    return train.main(order["start"])


def answer(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            answer(os.waitstatus_to_exitcode(status))
            continue
        child = os.fork()
        if child == 0:
            code = 99
            try:
                code = run(order)
            except SystemExit as end:
                code = int(str(end.code))
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(code)
        answer(child)


if __name__ == "__main__":
    main()
