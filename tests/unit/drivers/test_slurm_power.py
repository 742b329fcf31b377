"""Nodes that Slurm powers up and down: command lines, and what 22.05 printed of such nodes."""

import pytest

from flowos.drivers.allocators.slurm_power import (
    PowerState,
    address_words,
    comment_for,
    comment_words,
    comments_words,
    config_words,
    down_words,
    drain_words,
    jobs_on_words,
    power_down_words,
    power_words,
    read_cluster,
    read_comment,
    read_job_ids,
    read_node_names,
    read_power,
    reason_for,
    reason_words,
    refused_step,
)

DUE = "2026-11-23T09:58:15Z"
OURS = f"FlowOS: a | b; again at {DUE}"
SHOWN = f"""\
Welcome to the cluster
c1|mixed+cloud+not_responding+powering_up|Unknown|none
c2|idle+cloud+powered_down|Unknown|none
c3|idle+cloud+powering_down|2026-11-23T09:42:28|{OURS}
c4|idle+cloud+drain+not_responding+powering_up|2026-11-23T09:42:28|{OURS}
c5|down+cloud+powered_down+not_responding|2026-11-23T09:42:28|ResumeTimeout reached
c6|idle+cloud|Unknown|none{" "}
c7|IDLE+CLOUD+DRAIN~|2026-11-23T09:42:28|fan broken
c8|idle+cloud+power_down+not_responding|Unknown|none
c9|idle+cloud+powered_down|2026-11-23T09:42:28|ResumeTimeout reached
c10|down+cloud+not_responding|2026-11-23T09:42:28|Not responding
n1|down+not_responding|2026-11-23T09:42:28|ResumeTimeout reached
n2|idle|Unknown|none
"""
STATES = read_power(SHOWN)


def test_a_machine_belongs_to_a_node_that_is_up_or_comes_up() -> None:
    assert set(STATES) == {"n1", "n2"} | {f"c{number}" for number in range(1, 11)}
    owns = {name for name, state in STATES.items() if state.owns_machine}
    assert owns == {"c1", "c4", "c6", "c7", "c10", "n1", "n2"}
    assert {name for name, state in STATES.items() if state.is_up} == {"c6", "c7"}


def test_nodes_that_are_given_to_no_job() -> None:
    assert {name for name, state in STATES.items() if state.is_out} == {
        *("c4", "c5", "c7", "c10", "n1")
    }
    assert {name for name, state in STATES.items() if state.timed_out} == {"c5", "n1"}
    assert STATES["c6"] == PowerState(node="c6", flags=frozenset({"idle", "cloud"}))


@pytest.mark.parametrize(
    ("node", "now", "given_up_before", "due"),
    [
        ("c4", "2026-11-23T09:58:14Z", "2026-12-01", False),
        ("c4", DUE, "", True),
        ("c3", DUE, "2026-12-01", False),
        ("c5", "2026-12-01", "2026-11-23T09:42:27", False),
        ("c5", "", "2026-11-23T09:42:28", True),
        ("n1", "2026-12-01", "2026-12-01", False),
        ("c6", "2026-12-01", "2026-12-01", False),
        ("c7", "2026-12-01", "2026-12-01", False),
        ("c10", "2026-12-01", "2026-12-01", False),
    ],
)
def test_a_node_is_due_when_its_reason_says_so(
    node: str, now: str, given_up_before: str, due: bool
) -> None:
    assert STATES[node].is_due(now, given_up_before) is due


@pytest.mark.parametrize(
    ("node", "early", "late"),
    [
        ("c3", "leave", "leave"),
        ("c4", "wait", "back"),
        ("c5", "say", "back"),
        ("c6", "leave", "leave"),
        ("c7", "leave", "leave"),
        ("c10", "leave", "leave"),
        ("hidden", "wait", "back"),
    ],
)
def test_what_is_done_next_with_a_node_that_was_refused(node: str, early: str, late: str) -> None:
    assert refused_step(STATES.get(node), OURS, due=False) == early
    assert refused_step(STATES.get(node), OURS, due=True) == late


def test_a_reason_says_when_the_node_is_due() -> None:
    reason = reason_for("quota:\n no", DUE)
    assert reason == "FlowOS: quota: no; again at 2026-11-23T09:58:15Z"
    state = PowerState(node="c1", flags=frozenset({"drain"}), reason=reason)
    assert state.again_at == DUE
    assert comment_for("c1", "quota:\n no") == "FlowOS: node c1: quota: no"


@pytest.mark.parametrize(
    "reason", [f"see {OURS}", f"{OURS} (ada: leave it)", "FlowOS: x; again at "]
)
def test_a_reason_that_a_person_changed_says_nothing_of_when(reason: str) -> None:
    assert PowerState(node="c1", flags=frozenset({"drain"}), reason=reason).again_at == ""


def test_a_comment_of_ours_is_read_among_others() -> None:
    ours = comment_for("c1", "quota: no")
    assert read_comment(f"  \nbe quick\nsee FlowOS: x\n{ours}   \n") == "node c1: quota: no"
    assert read_comment("be quick\n") == ""


def test_the_clusters_name_is_read_of_its_settings() -> None:
    text = "Not ClusterName = x\nClusterName             = box\nSlurmUser = me(1)\n"
    assert read_cluster(text) == "box"
    assert read_cluster("Welcome\n") == ""


def test_nodes_are_named_as_slurm_lists_them() -> None:
    assert read_node_names("c[1-2],gpu1") == ("c1", "c2", "gpu1")


def test_jobs_are_numbers() -> None:
    assert read_job_ids("Welcome\n  17\n18\n17_3\n") == ("17", "18")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (config_words(), "scontrol show config"),
        (
            power_words(),
            "sinfo --all --noheader --Node --Format=NodeList:|,StateComplete:|,Timestamp:|,Reason:",
        ),
        (jobs_on_words("c1"), "squeue --noheader --nodelist=c1 --format=%A"),
        (comment_words("7", "a b"), "scontrol update JobId=7 AdminComment=a b"),
        (
            comments_words("x"),
            "squeue --noheader --states=all --name=x --Format=admin_comment:512",
        ),
        (drain_words("c1", "a b"), "scontrol update NodeName=c1 State=DRAIN Reason=a b"),
        (down_words("c1", "a b"), "scontrol update NodeName=c1 State=DOWN Reason=a b"),
        (reason_words("c1", "a b"), "scontrol update NodeName=c1 Reason=a b"),
        (power_down_words("c1"), "scontrol update NodeName=c1 State=POWER_DOWN_FORCE"),
        (address_words("c1", "10.0.0.7"), "scontrol update NodeName=c1 NodeAddr=10.0.0.7"),
    ],
)
def test_command_lines(words: tuple[str, ...], line: str) -> None:
    assert " ".join(words) == line
