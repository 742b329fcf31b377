"""What tests of cloud nodes look at: Slurm's states, the machines that run, and what was done."""

import json
import os
import subprocess
from pathlib import Path

from .box import FLOWOS, Box

NODES = ("c1", "c2")
NO_MORE = "VcpuLimitExceeded: You have requested more vCPU capacity than your limit of 8 allows"


def states(box: Box) -> dict[str, tuple[str, str]]:
    """State and reason of each node of the cloud."""
    columns = "--Format=NodeList:|,StateComplete:|,Reason:"
    rows = box.ask("sinfo", "--noheader", "--Node", "--partition=cloud", columns).splitlines()
    split = (row.split("|", 2) for row in rows)
    return {node: (state, reason.strip()) for node, state, reason in split}


def down(box: Box) -> set[str]:
    return {node for node, (state, _) in states(box).items() if state.endswith("powered_down")}


def out(box: Box, node: str) -> bool:
    state = states(box)[node][0]
    return "drain" in state or "down+" in state


def machines(box: Box) -> list[str]:
    """Nodes of the machines that run."""
    running = []
    for record in (box.folder / "cloud").glob("*.json"):
        plain = json.loads(record.read_text())
        if Path(f"/proc/{box_pid(box, plain['pid'])}").exists():
            running.append(plain["node"])
    return sorted(running)


def box_pid(box: Box, pid: int) -> int:
    """A process of the box as this process sees it: it is in a namespace of its own."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue
        numbers = text.partition("NSpid:")[2].split("\n")[0].split()
        environ = status.with_name("environ")
        if numbers[-1:] == [str(pid)] and len(numbers) > 1 and str(box.folder) in of(environ):
            return int(numbers[0])
    return 0


def of(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def flowos(box: Box, *words: str) -> "subprocess.CompletedProcess[str]":
    """As the user of Slurm, on its controller."""
    variables = {**box.variables, "FLOWOS_CONFIG": str(box.folder / "flowos.toml")}
    return subprocess.run(
        (*box.enter_controller, str(FLOWOS), "cloud", *words),
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def log(box: Box) -> list[tuple[str, str]]:
    lines = map(json.loads, (box.folder / "cloud.log").read_text().splitlines())
    return [(line["what"], line["node"]) for line in lines]


def admin_comment(box: Box, name: str) -> str:
    jobs = box.ask("scontrol", "show", "job").split("\n\n")
    (job,) = [text for text in jobs if f"JobName={name}\n" in text]
    return job.partition("AdminComment=")[2].split("\n")[0].strip()


def blocked_signals(box: Box, node: str) -> int:
    (record,) = (box.folder / "cloud").glob(f"*-{node}-*.json")
    status = of(Path(f"/proc/{box_pid(box, json.loads(record.read_text())['pid'])}/status"))
    return int(status.partition("SigBlk:")[2].split()[0], 16)


def waiting(box: Box) -> list[Path]:
    """Processes that wait until a node is due."""
    words = "\0cloud\0resume\0--wait"
    found = (path.parent for path in Path("/proc").glob("[0-9]*/cmdline") if words in of(path))
    return [process for process in found if str(box.folder) in of(process / "environ")]


def reason(box: Box) -> str:
    return states(box)["c1"][1]
