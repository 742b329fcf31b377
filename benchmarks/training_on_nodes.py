"""Training on nodes of a pool whose shared storage is far away, by how images are loaded.

`python benchmarks/training_on_nodes.py [--json] [--rounds 3] [--nodes 2] [--effort quick]
[--round-trip-ms 10] [--mbit 1000]`; needs PyTorch, Pillow, g++, fuse3 and an MPI.

Figures 7 and 8 and tables A.1 to A.3 of `flowos measure --suite reads --pool box --nodes 2`, again
in each round, in a Slurm of this benchmark's own, whose nodes are apart on this machine. Each node
reads the images by a link of its own (--scratch is benchmarks/feed/slowfs.cpp): opening one costs a
round trip, a read another one and its time on the link, and no page of them is kept. The caches of
the feed and the copies lie in a /tmp of each node. At first the same is measured once without such
a link ("near").

Numbers are medians of rounds; ratios are of the same round, with the least and the most: those of
the paper are next to them. `read` is the images' bytes over the time, of each node; `carried` what
a node's link carried in a round, of all trainings. Exit 1 if the order is not the paper's: shared
storage the slowest, and fo.Feed faster than a copy with the time that it takes to make it. Nodes
share this machine's processors: that two are faster than one is not shown.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from _contests import machine
from _far_storage import FarStorage
from _numbers import not_negative, positive, whole_number
from places import NotHere

from flowos.report import published
from tests.cluster.box import FLOWOS

FIGURES = ("7", "8", "table A.1", "table A.2", "table A.3")
METRICS = (
    *("training", "training_with_copy", "iterations"),
    *("iterations_per_second", "images_per_second", "node_reads"),
)
SHARED, COPY, FEED = LOADERS = ("shared", "local copy", "feed")
CALLS = 6
"""Where the nodes are busy its time may be over before all is measured: the next call goes on."""
POOL = """\
[pools.box]
kind = "slurm"
partition = "main"
nodes = {nodes}
shared = "{shared}"
scratch = "/tmp"
"""
RATIOS = (
    ("shared to local copy", (SHARED, "training"), (COPY, "training"), True),
    ("shared to fo.Feed", (SHARED, "training"), (FEED, "training"), True),
    ("copy and local copy to fo.Feed", (COPY, "training_with_copy"), (FEED, "training"), True),
    ("fo.Feed to local copy", (FEED, "training"), (COPY, "training"), False),
)
"""What is divided by what; is it claimed to be more than 1?"""

Place = tuple[str, str]
"""Number of nodes, and how it scales."""
Turn = dict[Place, dict[str, dict[str, float]]]
"""By place, loader and metric."""


def main() -> int:
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the Slurm ends too
    try:
        report = measured(options)
    except NotHere as why:
        sys.exit(f"training_on_nodes: {why}")
    print(json.dumps(report, indent=1) if options.json else table(report))
    return 1 if report["missed"] else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--json", action="store_true", help="all figures, as JSON")
    add("--rounds", type=whole_number(), default=3)
    add("--nodes", type=whole_number(), default=2)
    add("--effort", choices=("quick", "normal", "full"), default="quick", help="full: 10 epochs")
    add("--round-trip-ms", type=not_negative, default=10.0)
    add("--mbit", type=positive, default=1000.0, help="of each node's link")
    return parser.parse_args()


def measured(options: argparse.Namespace) -> dict[str, Any]:
    turns: list[Turn] = []
    carried: list[list[int]] = []
    link = (options.round_trip_ms, options.mbit)
    with (
        FarStorage(options.nodes, *link) as box,
        tempfile.TemporaryDirectory(dir=box.folder) as own,
    ):
        print("near", file=sys.stderr, flush=True)
        near = one_turn(box, box.shared, Path(own), options)
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
            before = box.traffic()
            turns.append(one_turn(box, box.far, Path(own), options))
            after = box.traffic()
            carried.append(
                [new["bytes"] - old["bytes"] for old, new in zip(before, after, strict=True)]
            )
    found = {
        "machine": machine(),
        "link": {"round_trip_ms": options.round_trip_ms, "mbit": options.mbit},
        "rounds": options.rounds,
        "carried": carried,
        "near": rows_of([near]),
        "far": rows_of(turns),
        "ratios": list(ratios(turns)),
    }
    return {**found, "missed": list(missed(found["ratios"]))}


# -- a round


def one_turn(box: FarStorage, images: Path, own: Path, options: argparse.Namespace) -> Turn:
    """images: where they are made. Raises SystemExit if a number is lacking after `CALLS`."""
    settings = own / "flowos.toml"
    settings.write_text(POOL.format(nodes=options.nodes, shared=box.shared))
    words = ["measure", "--suite", "reads", "--only", ",".join(FIGURES), "--json"]
    words += ["--pool", "box", "--nodes", str(options.nodes), "--scratch", str(images)]
    words += [f"--{options.effort}"] * (options.effort != "normal")
    words += ["--store", f"sqlite:///{own}/runs.db", "--out", str(own / "report")]
    variables = {**os.environ, **box.variables, "FLOWOS_CONFIG": str(settings)}
    said, lacks = "", ""
    figures: list[dict[str, Any]] = []
    for call in range(CALLS):
        again = ["--again"] * (call == 0)
        done = subprocess.run(
            (*box.enter, str(FLOWOS), *words, *again),
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        said = done.stderr
        figures = json.loads(done.stdout)["figures"] if done.stdout else []
        if not (lacks := lacking(turn := turn_of(figures), options.nodes)):
            return turn
    raise SystemExit(f"{lacks} was not measured: {why_not(figures)}\n{said}")


def turn_of(figures: Sequence[Mapping[str, Any]]) -> Turn:
    found: Turn = {}
    for each in (m for figure in figures for m in figure["measurements"]):
        levels = dict(each["case"]["levels"])
        if each["metric"] in METRICS and "loader" in levels:
            place = (levels.get("nodes", "1"), levels.get("scaling", "strong"))
            of_loader = found.setdefault(place, {}).setdefault(levels["loader"], {})
            of_loader[each["metric"]] = each["median"]
    return found


def lacking(turn: Turn, nodes: int) -> str:
    """The first number that there is to be, and is not; or ""."""
    wanted = (
        (place, loader, metric)
        for place in (("1", "strong"), (str(nodes), "strong"))
        for loader in LOADERS
        for metric in METRICS
    )
    for place, loader, metric in wanted:
        if metric not in turn.get(place, {}).get(loader, {}):
            return f"{metric} of {loader} on {place[0]}"
    return ""


def why_not(figures: Sequence[Mapping[str, Any]]) -> str:
    whys = (why for figure in figures for why in (*figure["lacking"], *figure["waiting"]))
    return "; ".join(dict.fromkeys(map(str, whys))) or "the suite does not say why"


# -- what follows


def rows_of(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Of each place and loader the medians."""
    return [
        {
            "nodes": nodes,
            "scaling": scaling,
            "loader": loader,
            **{m: median(turn[nodes, scaling][loader][m] for turn in turns) for m in METRICS},
            "rounds": [turn[nodes, scaling][loader]["training"] for turn in turns],
        }
        for nodes, scaling in places_of(turns)
        for loader in LOADERS
    ]


def places_of(turns: Sequence[Turn]) -> list[Place]:
    """Those of all turns."""
    return sorted(place for place in turns[0] if all(place in turn for turn in turns))


def ratios(turns: Sequence[Turn]) -> Iterator[dict[str, Any]]:
    paper = of_paper()
    for place in places_of(turns):
        for name, over, under, claimed in RATIOS:
            by_turn = [quotient(turn[place], over, under) for turn in turns]
            yield {
                "nodes": place[0],
                "scaling": place[1],
                "ratio": name,
                "median": median(by_turn),
                "rounds": by_turn,
                "paper": quotient(paper[place], over, under) if place in paper else None,
                "claimed": claimed,
            }


def quotient(
    of: Mapping[str, Mapping[str, float]], over: tuple[str, str], under: tuple[str, str]
) -> float:
    return of[over[0]][over[1]] / of[under[0]][under[1]]


def of_paper() -> Turn:
    """Seconds of tables A.1 to A.3, and those of table 3 in addition."""
    found: Turn = {}
    for each in published("reads").numbers:
        levels = dict(each.levels)
        if each.probe == "training" and each.metric in ("training", "file_copy"):
            place = (levels["nodes"], "strong")
            of_loader = found.setdefault(place, {}).setdefault(levels["loader"], {})
            of_loader[each.metric] = each.value
    for by_loader in found.values():
        copy = by_loader[COPY]
        copy["training_with_copy"] = copy["training"] + copy["file_copy"]
    return found


def missed(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in found:
        if each["claimed"] and each["median"] <= 1:
            where = f"{each['nodes']} nodes, {each['scaling']} scaling"
            yield f"{where}: {each['ratio']}: {each['median']:.3g}, claimed more than 1"


def table(report: Mapping[str, Any]) -> str:
    link = report["link"]
    lines = [
        f"{report['machine']}",
        f"a link of each node: {link['round_trip_ms']:g} ms a round trip, {link['mbit']:g} Mbit/s",
    ]
    heads = ("seconds", "with copy", "iterations", "1/s", "images/s", "read KB/s")
    for name in ("near", "far"):
        lines.append(f"{name:4} {'nodes':>6} {'loader':16}" + "".join(f"{h:>12}" for h in heads))
        for row in report[name]:
            cells = (f"{row[m]:.2f}" for m in METRICS[:-1])
            read = f"{row['node_reads'] / 1e3:.1f}"
            head = f"{row['scaling'][:4]:>4} {row['nodes']:>6} {row['loader']:16}"
            lines.append(head + "".join(f"{c:>12}" for c in (*cells, read)))
    for each in report["ratios"]:
        paper = f", the paper's {each['paper']:.3g}" if each["paper"] else ""
        least, most = min(each["rounds"]), max(each["rounds"])
        where = f"{each['nodes']} nodes, {each['scaling']}: {each['ratio']}"
        lines.append(f"{where}: {each['median']:.3g} ({least:.3g} to {most:.3g}){paper}")
    for number, each in enumerate(report["carried"], 1):
        said = ", ".join(f"{carried / 1e6:.2f} MB" for carried in each)
        lines.append(f"carried by the nodes' links in round {number}: {said}")
    lines += [f"MISSED {what}" for what in report["missed"]]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
