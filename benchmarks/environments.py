"""Cost of environments: start-up compared with bare, and the speed of programs inside.

`python benchmarks/environments.py [--json] [--image NAME] [--minutes 30] [--only PROBE,...]`
If run as root, it switches to an ordinary user by tools/as-user. --image names an image in the
user's library; by default one is built, once: Debian with Open MPI, MPICH and an entry point, about
a minute.
1. Start-up of a program that does nothing, minus that of bare: per round the difference of two
   medians, interleaved; the median over rounds is compared with its target.
   Also the command line, `flowos exec -- true`, compared with each runtime's own command; and from
   a project folder, which the image does not contain, compared with the same from /tmp.
2. Converting the image's folder to a squashfs, within 30 s per 335 MB.
3. GEMM, STREAM, MPI and fio in ch-run, bwrap and podman compared with bare, and bare with itself.
   Each probe must have an overall answer in each environment, 'equal' for bare; of twenty verdicts
   on single cases of bare one may be wrong. Exit 1 when a target is missed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from _numbers import positive

from flowos.drivers import RUNTIMES
from flowos.engine import here
from flowos.model import Sample, Verdict, from_plain, to_json
from flowos.plan import GEOMEAN

FLOWOS, TMP = str(Path(sys.executable).with_name("flowos")), Path("/tmp")
AS_USER = Path(__file__).parents[1] / "tools/as-user"
IMAGE, BASE, SUITE, PACKAGES = "flowos-bench", "flowos-bench-base", "bookworm", "openmpi-bin,mpich"
RECIPE = f'FROM {BASE}\nENTRYPOINT ["/usr/bin/env"]\n'
TARGET_SECONDS = {
    ("ch-run", "folder"): 0.005,
    ("bwrap", "folder"): 0.005,
    ("ch-run", "squashfs"): 0.025,
    ("bwrap", "squashfs"): 0.025,
    ("apptainer", "squashfs"): 0.2,
    ("podman", "folder"): 0.25,
}
"""Runtime and form -> target for the median start-up minus that of bare."""

CONVERSION = 335e6 / 30.0
MAX_WRONG = 0.05
TYPED_PAIRS = 20
PROJECT_SECONDS = 0.005
"""Target for the median start-up from a project folder minus that from /tmp."""
COMPARED = ("ch-run", "bwrap", "podman")
Places = dict[tuple[str, str], str]
"""Runtime and form -> value of `--env`."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="the only form there is")
    parser.add_argument("--image", default=IMAGE, help="a name in the image library")
    parser.add_argument("--minutes", type=positive, default=30.0, help="for the comparisons")
    parser.add_argument("--only", default="gemm,stream,mpi,fio", help="of the comparisons")
    args = parser.parse_args()
    if os.geteuid() == 0:  # podman is not usable as root
        os.execv(AS_USER, [str(AS_USER), sys.executable, *sys.argv])
    with tempfile.TemporaryDirectory(prefix="flowos-bench-", dir="/var/tmp") as name:
        places = words_for(args.image, Path(name))
        conversion = converted(Path(name) / "image")
        starts = list(startups(places))
        typed = list(typed_and_own(places, Path(name)))
        project = list(project_over_tmp(places, Path(name) / "project"))
        verdicts = compared(places, args.only, args.minutes)
    reports = {"conversion": conversion, "startup": starts, "typed": typed, "project": project}
    print(json.dumps({**reports, **verdicts}, indent=1))
    parts = (conversion, verdicts, *starts, *project)
    holds = all(part["holds"] for part in parts) and verdicts["bare_is_equal_to_bare"]
    return 0 if holds else 1


def words_for(image: str, folder: Path) -> Places:
    """The image in each form, for each runtime that is usable here."""
    if f'"{image}"' not in flowos("image", "ls", "--json"):
        built(image, folder / "Dockerfile")
    forms = {"folder": folder / "image", "squashfs": folder / "image.sqfs"}
    for form, path in forms.items():
        flowos("image", "export", image, str(path), "--form", form)
    facts = here().facts()
    usable = {name for name, runtime in RUNTIMES.items() if not runtime.usable(facts)}
    return {
        (runtime, form): f"{forms[form]}@{runtime}"
        for runtime, form in TARGET_SECONDS
        if runtime in usable
    }


def built(image: str, recipe: Path) -> None:
    recipe.write_text(RECIPE)
    flowos("image", "build", "--suite", SUITE, "--include", PACKAGES, "--name", BASE)
    flowos("image", "build", str(recipe), "--name", image)
    flowos("image", "rm", BASE)


def converted(folder: Path) -> dict[str, Any]:
    """Time the import of the folder as an image, which is removed again."""
    size = sum(p.lstat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    name = f"flowos-bench-{os.getpid()}"
    began = time.monotonic()
    flowos("image", "import", str(folder), "--name", name)
    took = time.monotonic() - began
    flowos("image", "rm", name)
    return {
        "folder_bytes": size,
        "seconds": took,
        "bytes_per_second": size / took,
        "target_bytes_per_second": CONVERSION,
        "holds": size / took >= CONVERSION,
    }


def startups(places: Places) -> Iterator[dict[str, Any]]:
    report = measured(["bare", *places.values()], "startup", 5.0)
    labels = [env["label"] for env in report["run"]["environments"][1:]]
    samples = [from_plain(Sample, s) for s in report["samples"]]
    for (runtime, form), label in zip(places, labels, strict=True):
        added = sorted(over_bare(samples, label))
        target = TARGET_SECONDS[runtime, form]
        yield {
            "runtime": runtime,
            "form": form,
            "over_bare_ms": 1e3 * median(added),
            "min_ms": 1e3 * added[0],
            "max_ms": 1e3 * added[-1],
            "rounds": len(added),
            "target_ms": 1e3 * target,
            "holds": median(added) <= target,
        }


def typed_and_own(places: Places, folder: Path) -> Iterator[dict[str, Any]]:
    """Overhead of FlowOS for a command that does nothing; for bare also over an empty Python."""
    for runtime, own in own_commands(folder).items():
        word = places.get((runtime, "folder"), "bare" if runtime in ("bare", "python") else "")
        if not word or shutil.which(own[0]) is None:
            continue
        env = ["--env", word] if word != "bare" else []
        ours = [FLOWOS, "exec", *env, "--", "/bin/true"]
        yield {"runtime": runtime, **paired("own", (own, TMP), "typed", (ours, TMP))}


def project_over_tmp(places: Places, project: Path) -> Iterator[dict[str, Any]]:
    """A folder that is in no image, such as ~/proj: a mount point is added to the image."""
    project.mkdir()
    for (runtime, form), word in places.items():
        command = [FLOWOS, "exec", "--env", word, "--", "/bin/true"]
        row = paired("tmp", (command, TMP), "project", (command, project))
        target = {"target_ms": 1e3 * PROJECT_SECONDS}
        holds = row["added_ms"] <= target["target_ms"]
        yield {"runtime": runtime, "form": form, **row, **target, "holds": holds}


Typed = tuple[list[str], Path]
"""A command and its working directory."""


def paired(name: str, base: Typed, other_name: str, other: Typed) -> dict[str, Any]:
    """Milliseconds of two interleaved commands, and the difference of the other to the base."""
    pairs = [taken_in_turns(base, other, n) for n in range(TYPED_PAIRS + 1)][1:]
    added = sorted(b - a for a, b in pairs)
    return {
        f"{name}_ms": 1e3 * median(a for a, _ in pairs),
        f"{other_name}_ms": 1e3 * median(b for _, b in pairs),
        "added_ms": 1e3 * median(added),
        "min_ms": 1e3 * added[0],
        "max_ms": 1e3 * added[-1],
        "pairs": len(pairs),
    }


def own_commands(folder: Path) -> dict[str, list[str]]:
    image, true = str(folder / "image"), "/bin/true"
    nodes = ("--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc", "--bind", "/tmp", "/tmp")
    podman = (f"--root={folder}/podman", f"--runroot={folder}/podman-run", f"--tmpdir={folder}/tmp")
    shares = ("--net=host", "--pid=host", "--cgroupns=host", "--userns=keep-id")
    return {
        "bare": [true],
        "python": [sys.executable, "-c", "pass"],
        "ch-run": ["ch-run", image, "--", true],
        "bwrap": ["bwrap", "--ro-bind", image, "/", *nodes, "--", true],
        "apptainer": ["apptainer", "-s", "exec", "--userns", "--no-home", image, true],
        "podman": [
            *("podman", *podman, "--storage-driver=overlay", "--cgroup-manager=cgroupfs"),
            *(
                "--log-level=error",
                "--events-backend=none",
                "run",
                "--rm",
                "--log-driver=none",
                *shares,
            ),
            *("--rootfs", f"{image}:O", true),
        ],
    }


def taken_in_turns(a: Typed, b: Typed, number: int) -> tuple[float, float]:
    """Seconds of each; which is first alternates between rounds."""
    first, second = (a, b) if number % 2 else (b, a)
    one, other = seconds_of(*first), seconds_of(*second)
    return (one, other) if number % 2 else (other, one)


def seconds_of(command: list[str], folder: Path) -> float:
    variables = {"USER": str(os.geteuid())} | dict(os.environ)  # ch-run requires it
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"environments: {' '.join(command)} failed: {done.stderr}")
    return time.perf_counter() - began


def over_bare(samples: Iterable[Sample], label: str) -> Iterator[float]:
    """Per round: the median start there minus that of bare."""
    rounds: dict[int, dict[str, list[float]]] = {}
    for s in samples:
        rounds.setdefault(s.round, {}).setdefault(s.case.level("env"), []).extend(s.values)
    for found in rounds.values():
        if label in found and "bare" in found:
            yield median(found[label]) - median(found["bare"])


def compared(places: Places, probes: str, minutes: float) -> dict[str, Any]:
    """Answers by probe and environment; bare#2 is bare compared with itself."""
    words = [places[runtime, "folder"] for runtime in COMPARED if (runtime, "folder") in places]
    report = measured(["bare", "bare", *words], probes, minutes)
    verdicts = [from_plain(Verdict, v) for v in report["verdicts"]]
    counts: dict[str, dict[str, Counter[str]]] = {}
    for v in verdicts:
        counts.setdefault(v.probe, {}).setdefault(v.other, Counter())[v.answer] += 1
    whole = [v for v in verdicts if v.probe == GEOMEAN]
    single = [v for v in verdicts if v.probe != GEOMEAN]
    twins = [v for v in single if v.other == "bare#2"]
    wrong = [v for v in twins if v.answer in ("slower", "faster")]
    bare = {v.answer for v in whole if v.other == "bare#2"}
    return {
        "minutes": minutes,
        "answers": counts,
        "reached_on_the_whole": f"{reached(whole)} of {len(whole)}",
        "reached_of_single_cases": f"{reached(single)} of {len(single)}",
        "bare_is_equal_to_bare": bare == {"equal"} and len(wrong) <= MAX_WRONG * len(twins),
        "holds": reached(whole) == len(whole),
        "verdicts": [verdict_row(v) for v in verdicts],
        "unmeasured": [
            {"case": case, "reason": why["reason"]} for case, why in report["run"]["unmeasured"]
        ],
    }


def reached(verdicts: Iterable[Verdict]) -> int:
    return sum(v.answer != "inconclusive" for v in verdicts)


def verdict_row(v: Verdict) -> dict[str, Any]:
    known = to_json(v)
    names = ("answer", "ratio", "low", "high", "margin", "rounds")
    return {
        "probe": v.probe,
        "metric": v.metric,
        "env": v.other,
        **dict(v.rest),
        **{name: known[name] for name in names},
    }


def measured(environments: list[str], probes: str, minutes: float) -> Any:
    """The report of a run that compares the environments."""
    words = [word for env in environments for word in ("--env", env)]
    with tempfile.TemporaryDirectory() as out:
        kept = ("--out", out, "--store", f"sqlite:///{out}/runs.db")
        said = flowos(
            *("measure", *words, "--only", probes, "--minutes", str(minutes), "--json"), *kept
        )
    return json.loads(said)["report"]


def flowos(*words: str) -> str:
    command = [sys.executable, "-m", "flowos", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"environments: `flowos {' '.join(words)}` failed, see above")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
