"""Nodes that Slurm boots into a kernel: command lines, and what 22.05 printed of such nodes."""

from dataclasses import replace

import pytest

from flowos.drivers.allocators.slurm import hold_words
from flowos.drivers.allocators.slurm_kernels import (
    NodeFeatures,
    booting_words,
    features_words,
    read_booted,
    read_booting,
    read_down,
    read_features,
    refusal_of_kernel,
    refusal_of_running,
    states_words,
)
from flowos.drivers.allocators.slurm_nodes import read_config
from flowos.model import Ask, Pool

POOL, ASK = Pool(name="c", kind="slurm"), Ask(kernel="B")
SHOWN = "n1|A,B|A\nn2|A,B|B\nn3|(null)|(null)\nodd line\n"
NODES = read_features(SHOWN)
STATES = """\
n1|allocated#|none
n1|allocated#|none
n2|down#|reboot timed out | n2
n3|down*|reboot timed out | n2
n4|idle|none
odd line
"""


def test_what_is_asked_of_slurm() -> None:
    assert " ".join(features_words()) == "sinfo --noheader --Node --format=%N|%f|%b"
    assert features_words("main")[3] == "--partition=main"
    assert " ".join(booting_words("flowos-1")) == (
        "squeue --noheader --name=flowos-1 --states=CONFIGURING --format=%N"
    )
    assert " ".join(states_words(("n1", "n2"))) == (
        "sinfo --noheader --Node --nodes=n1,n2 --format=%N|%T|%E"
    )


@pytest.mark.parametrize(
    ("features", "kernel", "words"),
    [
        ("", "", ()),
        ("", "B", ("--constraint=B",)),
        ("ib", "", ("--constraint=ib",)),
        ("ib&nvme", "B", ("--constraint=ib&nvme&B",)),
    ],
)
def test_a_kernel_joins_the_constraint(features: str, kernel: str, words: tuple[str]) -> None:
    pool = replace(POOL, constraint=features)
    asked = hold_words(pool, Ask(kernel=kernel), "n", ())
    assert tuple(word for word in asked if word.startswith("--constraint")) == words


def test_what_slurm_says_of_features_and_boots() -> None:
    assert {
        "n1": NodeFeatures(available=("A", "B"), active=("A",)),
        "n2": NodeFeatures(available=("A", "B"), active=("B",)),
        "n3": NodeFeatures(available=(), active=()),
    } == NODES
    assert read_booting("n[1-2]\n\nn4\n") == ("n1", "n2", "n4")
    assert read_booted(STATES) == ("n1", "n2")
    why = "reboot timed out | n2"
    assert read_down(STATES) == (("n2", why), ("n3", why))


@pytest.mark.parametrize(
    ("line", "boots"),
    [
        ("NodeFeaturesPlugins = (null)", False),
        ("NodeFeaturesPlugins = knl_generic", False),
        ("NodeFeaturesPlugins = node_features/helpers", True),
        ("", False),
    ],
)
def test_whether_slurm_boots_nodes(line: str, boots: bool) -> None:
    assert read_config(line).boots == boots


@pytest.mark.parametrize(
    ("features", "ask", "boots", "why"),
    [
        ("[a|b]", Ask(), False, ""),
        ("ib&nvme", replace(ASK, nodes=2), True, ""),
        (
            "",
            ASK,
            False,
            "kernel 'B': this Slurm boots its nodes into no kernel: it has no "
            "NodeFeaturesPlugins=node_features/helpers",
        ),
        (
            "a|b",
            ASK,
            True,
            "kernel 'B': next to it Slurm takes no constraint with one of []()|*, as 'a|b'",
        ),
        ("", Ask(kernel="zzz"), True, "no node has a kernel 'zzz'; they have A, B"),
        (
            "",
            replace(ASK, nodes=3),
            True,
            "3 nodes with kernel 'B' asked for, 2 of 3 have it: n1, n2",
        ),
    ],
)
def test_why_nodes_cannot_be_booted(features: str, ask: Ask, boots: bool, why: str) -> None:
    assert refusal_of_kernel(replace(POOL, constraint=features), ask, NODES, boots) == why


def test_a_kernel_that_is_almost_right_is_named() -> None:
    nodes = {"n1": NodeFeatures(available=("kernelA", "kernelB"), active=("kernelA",))}
    said = refusal_of_kernel(POOL, Ask(kernel="kernelC"), nodes, True)
    assert said.startswith("no node has a kernel 'kernelC'; did you mean 'kernel")
    assert refusal_of_kernel(POOL, ASK, {}, True) == "no node has a kernel 'B'; they have none"


def test_nodes_of_a_job_around_are_not_booted() -> None:
    assert refusal_of_running(Ask(), NODES, "17") == ""
    assert refusal_of_running(ASK, {"n2": NODES["n2"]}, "17") == ""
    assert refusal_of_running(ASK, NODES, "17") == (
        "kernel 'B': n1, n3 of job 17 around this program did not boot it; ask for it by sbatch "
        "--constraint=B"
    )
