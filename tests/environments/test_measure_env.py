"""`flowos measure --env A --env B` with real images in the runtimes that are installed here."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from flowos.model import Unmeasured
from flowos.operations.measure import not_begun

from .conftest import CONTAINERS, Images, usable

Report = dict[str, Any]
NOTHING_MEASURED = 1
Flowos = Callable[..., subprocess.CompletedProcess[str]]


SMALL = """
import sys
from functools import partial
from flowos.cli import main
from flowos.operations.measure import _rounds
from flowos.probes import gemm, startup, stream
_rounds.Design = partial(_rounds.Design, looks=(1,))
gemm.COMPARED_SIZES = dict.fromkeys(gemm.COMPARED_SIZES, "256")
gemm.COMPARED_SECONDS = dict.fromkeys(gemm.COMPARED_SECONDS, "0.05")
startup.STARTS = dict.fromkeys(startup.STARTS, 2)
stream.elements_for = lambda facts: 1 << 21
stream.COMPARED_REPEATS = dict.fromkeys(stream.COMPARED_REPEATS, "3")
sys.exit(main(sys.argv[1:]))
"""
"""One round of a comparison, of little work. Its figures say nothing then."""


@pytest.fixture
def flowos(tmp_path: Path) -> Flowos:
    return flowos_in(tmp_path, "-m", "flowos")


def flowos_in(tmp_path: Path, *program: str) -> Flowos:
    variables = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}

    def call(*words: str, codes: Sequence[int] = (0,)) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, *program, "measure", *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=variables,
            timeout=1200,
        )
        assert done.returncode in codes, done.stderr
        return done

    return call


@pytest.fixture
def runtimes() -> list[str]:
    """Those that can be used here; in CI all that the set-up installs."""
    found = usable()
    if os.environ.get("CI"):
        assert {*CONTAINERS} <= found
    return [name for name in CONTAINERS if name in found and name != "bare"]


def words_for(images: Images, runtimes: list[str]) -> list[str]:
    """Bare, then the same image in each runtime; bwrap gets it as a squashfs."""
    named = [
        f"{images.squashfs if runtime == 'bwrap' else images.folder}@{runtime}"
        for runtime in runtimes
    ]
    return [word for env in ("bare", *named) for word in ("--env", env)]


def report_with(flowos: Flowos, words: Sequence[str], enough: Callable[[Report], bool]) -> Report:
    """What one round measured; in more time where a busy machine needs it for that to be enough."""
    for minutes in ("1", "2", "4"):
        done = flowos(*words, "--minutes", minutes, "--json", codes=(0, NOTHING_MEASURED))
        report: Report = json.loads(done.stdout)["report"]
        if done.returncode == 0 and enough(report):
            return report
    found: Report = json.loads(flowos(*words, "--minutes", "8", "--json").stdout)["report"]
    return found


def measured_in(report: Report) -> set[tuple[str, str]]:
    """(probe, environment) of each sample."""
    return {(s["case"]["probe"], dict(s["case"]["levels"])["env"]) for s in report["samples"]}


@pytest.mark.usefixtures("nothing_is_left")
def test_the_same_binaries_are_measured_in_every_runtime_and_told_apart(
    images: Images, runtimes: list[str], tmp_path: Path
) -> None:
    flowos = flowos_in(tmp_path, "-c", SMALL)
    words = (*words_for(images, runtimes), "--only", "startup,gemm", "--quick")
    report = report_with(
        flowos, words, lambda report: len(measured_in(report)) == 2 * (1 + len(runtimes))
    )
    environments = report["run"]["environments"]
    assert [e["runtime"] for e in environments] == ["bare", *runtimes]
    assert len({e["label"] for e in environments}) == len(environments)
    for env in environments[1:]:
        assert env["digest"].partition("sha256:")[2]
        assert env["version"]
        assert {t["name"]: t["works"] for t in env["tried"]}["memory files"]
    assert measured_in(report) == {
        (p, e["label"]) for p in ("startup", "gemm") for e in environments
    }
    assert {v["other"] for v in report["verdicts"]} == {e["label"] for e in environments[1:]}
    page = (tmp_path / "flowos-report/report.html").read_text()
    assert "Environments side by side" in page


def test_a_system_call_that_one_environment_blocks_is_used_in_none(
    flowos: Flowos, images: Images, runtimes: list[str]
) -> None:
    if "podman" not in runtimes:
        pytest.skip("podman cannot be used here")
    words = ("--env", "bare", "--env", f"{images.folder}@podman", "--only", "fio", "--dry-run")
    planned = json.loads(flowos(*words, "--json").stdout)
    commands = [line for step in planned for line in step.get("commands", ())]
    assert len(commands) == 16
    assert all("--ioengine=libaio" in line for line in commands)
    assert sum("--filename=/mnt/flowos/flowos-data" in line for line in commands) == 8


def test_what_an_image_lacks_is_said_and_the_rest_is_measured(
    images: Images, runtimes: list[str], tmp_path: Path
) -> None:
    bald = tmp_path / "bald"
    shutil.copytree(images.folder, bald, symlinks=True)
    (bald / "bin/sh").unlink()
    words = ("--env", "bare", "--env", f"{bald}@{runtimes[0]}", "--only", "stream")

    def reasons_of(report: Report) -> dict[tuple[str, str], str]:
        return {
            (levels["env"], levels["way"]): why["reason"]
            for case, why in report["run"]["unmeasured"]
            for levels in [dict(case["levels"])]
        }

    flowos = flowos_in(tmp_path, "-c", SMALL)

    def had_time(report: Report) -> bool:
        return not any(not_begun(Unmeasured(**why)) for _, why in report["run"]["unmeasured"])

    report = report_with(flowos, words, had_time)
    reasons = reasons_of(report)
    label = report["run"]["environments"][1]["label"]
    assert "/bin/sh" in reasons[label, "shell"]
    assert "names no entry point" in reasons[label, "run"]
    seen = {
        (dict(s["case"]["levels"])["env"], dict(s["case"]["levels"])["way"])
        for s in report["samples"]
    }
    assert (label, "exec") in seen


def test_an_environment_that_cannot_be_entered_ends_all_before_anything_is_measured(
    flowos: Flowos, images: Images, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.sqfs"
    cut.write_bytes(images.squashfs.read_bytes()[:4096])
    done = flowos("--env", "bare", "--env", str(cut), codes=(2,))
    assert str(cut) in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2
    assert not (tmp_path / "flowos-report").exists()


def test_ones_own_stack_needs_what_it_is_made_of_in_the_image(
    flowos: Flowos, images: Images, runtimes: list[str]
) -> None:
    words = ("--env", "bare", "--env", f"{images.folder}@{runtimes[0]}", "--binary", "own")
    planned = json.loads(flowos(*words, "--only", "gemm", "--dry-run", "--json").stdout)
    (step,) = planned
    assert "python3" in step["unmeasured"]
    assert "--binary same" in step["remedy"]


def test_ones_own_stack_is_the_images_own_programs(
    flowos: Flowos, debian: Path, runtimes: list[str]
) -> None:
    words = ("--env", "bare", "--env", f"{debian}@{runtimes[0]}", "--binary", "own")
    planned = json.loads(flowos(*words, "--only", "fio,gemm", "--dry-run", "--json").stdout)
    inside = [
        s
        for s in planned
        if dict(w.split("=", 1) for w in s["case"].split() if "=" in w).get("env", "bare") != "bare"
    ]
    assert any(" /usr/bin/fio --name" in line for s in inside for line in s.get("commands", ()))
    assert any("no C compiler" in s.get("unmeasured", "") for s in inside)
