"""Tasks on two nodes of Slurm, compared with Ray, Dask, Parsl, mpi4py, executorlib and srun.

`python benchmarks/slices.py [--json] [--rounds 3] [--seconds 2] [--only flowos,ray]`
for example `python benchmarks/slices.py --rounds 1 --only flowos,srun`

A Slurm of this benchmark's own, whose four nodes have addresses, links, processes and a /tmp of
their own on this machine. Each way holds two of them by itself, in a process of its own, once in
every round. Cases:
start: from nothing to the first result, the allocation too; hop: one task in flight; wide: 1,500
independent tasks; array: 100 MB made in one task and read in another one, on another node where the
way can say so (of flowos ray and ray tasks on both at once); command: `true` as a task, for srun a
bare step; hold: the two other nodes held and freed, for srun a bare `srun true` on them; PSS: of
all processes that are started, without the program itself. mpi4py's program runs on a node: its
start lacks srun's, and its PSS is not known. Results must be equal: their checksums are compared.
Of ours also moments, once in every round. first: from the hold of two nodes to the first result;
worker killed: until its run ends with WorkerLost; node gone: until the result of its item, computed
on the other one; powered up: from nothing to the first result of a node without power, whose boot
takes a second at most. Exit 1 when a claim is missed or results differ.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from _contests import Contest, arguments, different, machine

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.cluster.box import Box
from tests.cluster.cloud_nodes import down

CASES = ("hop", "wide", "array", "command", "hold")
PROGRAM = Path(__file__).with_name("_slice_contestants.py")
MOMENTS = Path(__file__).with_name("_slice_moments.py")
LIMITS = Path(__file__).with_name("_link_limits.py")
LOGIN = "10.77.0.254"
"""Address of the box's controller, where the programs run."""
POOLS = """\
[pools.box]
kind = "slurm"
partition = "main"
nodes = 4
shared = "{shared}"
[pools.cloud]
kind = "slurm"
partition = "cloud"
nodes = 1
shared = "{shared}"
"""
ARRAY_MB = 100
OURS, LOCAL, RAY = "flowos slurm", "flowos local", "flowos ray"
RATIOS = (
    (OURS, "hop", LOCAL, 1.25, 0.0),
    (OURS, "wide", LOCAL, 1.5, 0.0),
    (OURS, "wide", "ray tasks", 1 / 50, 0.0),
    (OURS, "start", "ray tasks", 1 / 15, 0.0),
    (OURS, "command", "srun", 1.0, 5e-3),
    (OURS, "hold", "srun", 1.0, 20e-3),
    (RAY, "hop", "ray tasks", 1 / 0.9, 0.0),
    (RAY, "wide", "ray tasks", 1 / 0.9, 0.0),
    (RAY, "array", "ray tasks", 1 / 0.9, 0.0),
)
"""A way of ours is to take at most a factor of what another one takes in the same round, and these
seconds."""
MAX_SECONDS = {"first": 0.3, "worker killed": 0.1, "node gone": 3.0, "powered up": 4.0}
MAX_PSS_BYTES = 60_000_000
MIN_SHARE_OF_LINK = 0.8
"""Of half of what one connection carries: an array goes by way of the program, over two links."""


def main() -> int:
    options = arguments(__doc__, "ways", seconds=2.0)
    with Box(4, apart=True, cloud=1) as box:
        settings = box.folder / "pools.toml"
        settings.write_text(POOLS.format(shared=box.shared))
        variables = {
            **box.variables,
            "FLOWOS_CONFIG": str(settings),
            "FLOWOS_LOGIN_ADDRESS": LOGIN,
            "SHARED": str(box.shared),
        }
        contest = Contest(PROGRAM, box.enter, variables)
        contest.hold(options.only.split(","), options.rounds, options.seconds)
        link, limits = mb_per_second(box), limits_of_link(box)
        turns = options.rounds if OURS in contest.answers else 0
        timed = [moments(box, variables) for _ in range(turns)]
    engines = contest.engines()
    report = {
        "machine": machine(),
        "rounds": options.rounds,
        "link_mb_per_second": link,
        "limits": limits,
        "engines": engines,
        "moments": {name: [turn[name] for turn in timed] for name in MAX_SECONDS if timed},
        "skipped": contest.skipped,
        "missed": [*missed(contest, link), *late(timed), *different(engines, CASES)],
    }
    print(json.dumps(report, indent=1) if options.json else table(report))
    return 1 if report["missed"] else 0


def mb_per_second(box: Box) -> float | None:
    """What one TCP connection from a node to the program carries, by iperf3; None without it."""
    if shutil.which("iperf3") is None:
        return None
    server = subprocess.Popen(
        (*box.enter, "iperf3", "--server", "--one-off", "--bind", LOGIN),
        stdout=subprocess.DEVNULL,
    )
    time.sleep(0.5)
    done = box.run("srun", "-N1", "-n1", "iperf3", "--client", LOGIN, "--time", "3", "--json")
    server.terminate()
    server.wait()
    bits = json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]
    return float(bits) / 8e6


def limits_of_link(box: Box) -> dict[str, float]:
    """Of bare TCP and TLS between a node and the program: see the file."""
    python = (sys.executable, str(LIMITS))
    with subprocess.Popen(
        (*box.enter, *python, "serve", LOGIN, str(box.shared)), stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout
        port = server.stdout.readline().strip()
        done = box.run("srun", "-N1", "-n1", *python, "ask", LOGIN, port, str(box.shared))
        server.terminate()
    found: dict[str, float] = json.loads(done.stdout)
    return found


def moments(box: Box, variables: Mapping[str, str]) -> dict[str, float]:
    """Seconds of each."""
    with begun(box, variables, "lost") as program:
        assert program.stdout
        node = program.stdout.readline().strip()
        if node not in box.nodes:
            raise SystemExit("the program whose moments are timed failed")
        gone = time.time()
        box.act("stop", node)
        said = answer_of(program)
    box.act("start", node)
    seconds = {
        "first": said["first"],
        "worker killed": said["killed"],
        "node gone": said["answered"] - gone,
    }
    with begun(box, variables, "powered_up") as program:
        seconds["powered up"] = answer_of(program)["powered up"]
    while down(box) != {*box.cloud} or node not in idle(box):
        time.sleep(0.1)
    return seconds


def begun(box: Box, variables: Mapping[str, str], *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        (*box.enter, sys.executable, str(MOMENTS), *words),
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        text=True,
    )


def answer_of(program: "subprocess.Popen[str]") -> dict[str, float]:
    said, _ = program.communicate()
    if program.returncode:
        raise SystemExit("the program whose moments are timed failed")
    found: dict[str, float] = json.loads(said.splitlines()[-1])
    return found


def idle(box: Box) -> list[str]:
    return box.ask("sinfo", "--noheader", "--Node", "--states=IDLE", "--format=%N").split()


def late(timed: Sequence[Mapping[str, float]]) -> Iterator[str]:
    for name, most in MAX_SECONDS.items():
        if timed and (seconds := median(turn[name] for turn in timed)) > most:
            yield f"{OURS}, {name}: {seconds:.3g} s, claimed {most:g} s"


def missed(contest: Contest, link: float | None) -> Iterator[str]:
    for ours, case, other, factor, seconds in RATIOS:
        if {ours, other} <= contest.answers.keys():
            mine, theirs = (of_turns(contest, name, case) for name in (ours, other))
            lacks = median(a - (factor * b + seconds) for a, b in zip(mine, theirs, strict=True))
            if lacks > 0:
                most = f"{factor:.3g} times {other}" + f" and {seconds * 1e3:g} ms" * (seconds > 0)
                ratio = median(a / b for a, b in zip(mine, theirs, strict=True))
                yield f"{ours}, {case}: {ratio:.3g} times {other}, claimed at most {most}"
    if OURS not in contest.answers:
        return
    pss = max(turn["pss_bytes"] for turn in contest.answers[OURS])
    if pss > MAX_PSS_BYTES:
        yield f"{pss / 1e6:.1f} MB, claimed {MAX_PSS_BYTES / 1e6:g} MB"
    rate = ARRAY_MB / median(of_turns(contest, OURS, "array"))
    if link and rate < MIN_SHARE_OF_LINK * link / 2:
        yield f"array: {rate:.0f} MB/s, {rate / (link / 2):.2f} of half of a connection"


def of_turns(contest: Contest, name: str, case: str) -> list[float]:
    """Median seconds of a task in each turn."""
    turns = contest.answers[name]
    if case == "start":
        return [turn["start_seconds"] for turn in turns]
    return [median(turn["cases"][case]["seconds"]) / turn["cases"][case]["tasks"] for turn in turns]


def table(report: Mapping[str, Any]) -> str:
    link, limits = report["link_mb_per_second"], report["limits"]
    carried = f"{link:.0f} MB/s" if link else "not measured, there is no iperf3"
    lines = [
        f"{report['machine']}",
        f"one connection from a node, by iperf3: {carried}",
        *(
            f"bare {name} to a node and back: {limits[f'{low}_round_trip_seconds'] * 1e6:.1f} us, "
            f"one way {limits[f'{low}_mb_per_second']:.0f} MB/s"
            for name, low in (("TCP", "tcp"), ("TLS", "tls"))
        ),
    ]
    heads = ("start s", "hop us", "wide us", "array MB/s", "command ms", "hold ms", "PSS MB")
    lines.append(f"{'':18}" + "".join(f"{h:>12}" for h in (*heads, "processes")))
    for name, engine in report["engines"].items():
        found = engine["cases"]
        cells = [f"{engine['start_seconds']:.2f}"]
        cells += [cell(found, case, 1e6) for case in ("hop", "wide")]
        array = found.get("array")
        cells.append(f"{ARRAY_MB / array['median_seconds']:.0f}" if array else "-")
        cells += [cell(found, case, 1e3) for case in ("command", "hold")]
        pss = engine["pss_bytes"]
        cells += [f"{pss / 1e6:.1f}", str(engine["processes"])] if pss else ["-", "-"]
        lines.append(f"{name:18}" + "".join(f"{c:>12}" for c in cells))
    for name, taken in report["moments"].items():
        lines.append(f"{name}: {median(taken):.3f} s ({min(taken):.3f} to {max(taken):.3f})")
    lines += [f"skipped {name}: {why}" for name, why in report["skipped"].items()]
    lines += [f"MISSED {what}" for what in report["missed"]]
    return "\n".join(lines)


def cell(found: Mapping[str, Any], case: str, factor: float) -> str:
    return f"{found[case]['median_seconds'] * factor:.1f}" if case in found else "-"


if __name__ == "__main__":
    sys.exit(main())
