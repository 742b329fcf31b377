"""Grid Engine's command lines, and its answers in the formats of 6.2, 8.1 and 8.6.

Those of 8.1 are as the real one of tests/cluster prints them; of the others what differs is as
their manuals and users' reports show it.
"""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.drivers._allocators import Job
from flowos.drivers.allocators.sge import (
    SgeParallel,
    SgeQueue,
    by_hand_words,
    cancel_words,
    hold_words,
    job_name,
    jobs_words,
    nodes_words,
    parallel_words,
    phase_of,
    queue_words,
    queues_words,
    read_complaint,
    read_jobs,
    read_names,
    read_nodes,
    read_parallel,
    read_port,
    read_queue,
    read_reason,
    reason_words,
    refusal,
    start_words,
    state_text,
    whole_nodes,
)
from flowos.model import Ask, NodeInfo, Pool, SliceRefused

GOLDEN = Path(__file__).parents[2] / "golden/sge"
VERSIONS = ("6.2", "8.1", "8.6")
POOL = Pool(name="c", kind="sge", nodes=4, queue="main.q", pe="nodes")


def printed(version: str, name: str) -> str:
    return (GOLDEN / version / name).read_text()


# ---- command lines ----


def test_nodes_are_held_by_a_keeper_on_one_of_them_that_reads_our_input() -> None:
    whole = replace(POOL, cores=4)
    assert " ".join(hold_words(whole, Ask(nodes=2), "flowos-1", ("/x/keeper", "a b"))) == (
        "qrsh -noshell -now no -w e -N flowos-1 -q main.q -pe nodes 8 /x/keeper a b"
    )


def test_a_program_is_started_by_hand_on_a_node_of_the_queue() -> None:
    pool = Pool(name="g", kind="sge", queue="all.q", pe="whole")
    assert " ".join(by_hand_words(pool, ("flowos", "doctor"))) == (
        "qrsh -V -now no -q all.q flowos doctor"
    )


def test_without_cores_a_node_is_a_slot() -> None:
    assert hold_words(POOL, Ask(nodes=3), "n", ())[-1] == "3"


def test_times_and_memory_are_asked_of_grid_engine() -> None:
    limited = replace(POOL, max_seconds=60.0)
    assert hold_words(limited, Ask(seconds=70.0, memory_bytes=1 << 30), "n", ())[-2:] == (
        *("-l", "h_rt=60,mem_total=1073741824"),
    )
    assert hold_words(POOL, Ask(seconds=0.2, memory_bytes=1), "n", ())[-1] == "h_rt=60,mem_total=1"


def test_further_nodes_are_none_of_those_that_are_held() -> None:
    words = hold_words(POOL, Ask(nodes=2), "n", (), ("n1", "n2"))
    assert words[-2:] == ("-l", "hostname=!(n1|n2)")


def test_a_task_starts_on_a_node_of_the_job() -> None:
    assert start_words("n2", ("true", "x")) == (
        *("qrsh", "-inherit", "-noshell"),
        *("n2", "true", "x"),
    )
    assert job_name("c-1") == "flowos-c-1"


def test_what_is_asked_is_asked_by_name() -> None:
    assert " ".join(jobs_words(job="17")) == "qstat -xml -g t"
    assert " ".join(reason_words("flowos-1")) == "qstat -j flowos-1"
    assert " ".join(nodes_words("main.q")) == "qstat -f -xml -q main.q -F num_proc,mem_total"
    assert " ".join(queues_words()) == "qconf -sql"
    assert " ".join(queue_words("main.q")) == "qconf -sq main.q"
    assert " ".join(parallel_words("nodes")) == "qconf -sp nodes"
    assert cancel_words("17") == ("qdel", "17")


# ---- answers ----


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_of_many_slots_is_one_with_the_node_of_its_first_task_first(version: str) -> None:
    assert read_jobs(printed(version, "qstat_jobs.xml")) == (
        Job(
            id="41",
            name="flowos-0011223344556677",
            state="r",
            phase="running",
            nodes=("n1", "n2"),
        ),
        Job(id="42", name="sweep", state="hqw", phase="waiting"),
    )


def test_a_job_whose_tasks_differ_is_in_the_state_of_the_first() -> None:
    text = printed("8.1", "qstat_jobs.xml").replace("<state>r", "<state>t", 1)
    assert read_jobs(text)[0].state == "t"


def test_an_answer_without_jobs_has_none_and_one_that_is_no_xml_is_refused() -> None:
    assert read_jobs("Welcome!\n<?xml version='1.0'?>\n<job_info><job_list/></job_info>\n") == ()
    assert read_jobs("<job_info/>") == ()
    with pytest.raises(SliceRefused, match="Grid Engine answers no XML"):
        read_jobs("Welcome!")


def test_a_name_that_no_node_has_is_refused() -> None:
    text = printed("8.1", "qstat_jobs.xml").replace("@n1", "@-oProxyCommand=x")
    with pytest.raises(SliceRefused, match="Grid Engine names a node '-oProxyCommand=x'"):
        read_jobs(text)


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        ("qw", "waiting"),
        ("Eqw", "waiting"),
        ("hRwq", "waiting"),
        ("t", "running"),
        ("Rr", "running"),
        ("S", "running"),
        ("dr", "ending"),
        ("dt", "ending"),
        ("z", "over"),
        ("r?", "unknown"),
        ("", "unknown"),
    ],
)
def test_the_phase_of_a_state(state: str, phase: str) -> None:
    assert phase_of(state) == phase


@pytest.mark.parametrize("version", VERSIONS)
def test_nodes_are_read_with_their_slots_and_why_they_are_not_to_be_had(version: str) -> None:
    assert read_nodes(printed(version, "qstat_nodes.xml")) == (
        NodeInfo(
            name="n1",
            cores=4,
            memory_bytes=int(23.541 * 2**30),
            state="4 of 4 slots used",
        ),
        NodeInfo(name="n2", cores=4, memory_bytes=512 << 20),
        NodeInfo(name="n3", cores=4, state="load alarm, unreachable, X"),
    )


def test_a_queue_without_a_name_is_kept() -> None:
    text = "<?xml version='1.0'?><x><Queue-List/></x>"
    assert read_nodes(text) == (NodeInfo(name="", cores=0),)
    assert state_text("d") == "disabled"


def test_queues_are_read_with_their_limits() -> None:
    parallel = ("nodes", "one", "mixed", "wide")
    queues = [read_queue(printed(version, "qconf_queue.txt")) for version in VERSIONS]
    assert queues == [
        SgeQueue(name="main.q", interactive=False, parallel=parallel, max_seconds=math.inf),
        SgeQueue(name="main.q", interactive=True, parallel=parallel, max_seconds=86400.0),
        SgeQueue(name="main.q", interactive=True, parallel=parallel, max_seconds=3600.0),
    ]
    assert read_queue("# a comment\nodd\n") == SgeQueue(
        name="", interactive=False, parallel=(), max_seconds=math.inf
    )
    assert read_names("all.q\n\nmain.q\n") == ("all.q", "main.q")


@pytest.mark.parametrize("version", VERSIONS)
def test_parallel_environments_are_read_with_their_rule(version: str) -> None:
    assert read_parallel(printed(version, "qconf_parallel.txt")) == NODES
    assert read_parallel("") == SgeParallel(name="", slots=0, rule="", tight=False)


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("6.2", 'cannot run in PE "nodes" because it only offers 4 slots'),
        ("8.1", 'cannot run in PE "nodes" because it only offers 4 slots'),
        ("8.6", ""),
    ],
)
def test_why_a_job_waits_is_read_where_the_scheduler_keeps_it(version: str, reason: str) -> None:
    assert read_reason(printed(version, "qstat_reason.txt")) == reason
    assert read_reason("") == ""
    assert read_reason("scheduling info:            There are no messages available\n") == ""


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        (
            "refused",
            'Unable to run job: job rejected: the requested parallel environment "x" does not '
            "exist.\nExiting.\n",
            'the requested parallel environment "x" does not exist.',
        ),
        (
            "refused",
            'Job was rejected because job requests unknown queue "nope.q"\n',
            'job requests unknown queue "nope.q"',
        ),
        ("refused", "error: no suitable queues\n", "no suitable queues"),
        (
            "refused",
            "critical error: Please set the environment variable SGE_ROOT.\n",
            "Please set the environment variable SGE_ROOT.",
        ),
        ("refused", "nope is not a parallel environment\n", "nope is not a parallel environment"),
        ("gone", 'denied: job "999" does not exist\n', 'job "999" does not exist'),
        (
            "refused",
            'job rejected: the requested parallel environment "x" does not exist\n',
            'the requested parallel environment "x" does not exist',
        ),
        (
            "gone",
            "The job flowos-1 of user(s) mara does not exist\n",
            "The job flowos-1 of user(s) mara does not exist",
        ),
        ("gone", "Following jobs do not exist: \n99\n", "99"),
        ("gone", "job 7 is already in deletion\n", "job 7 is already in deletion"),
        (
            "unreachable",
            "error: commlib error: got select error (Connection refused)\n",
            "commlib error: got select error (Connection refused)",
        ),
        (
            "unreachable",
            'Your job 3 ("a") has been submitted\n'
            'error: unable to send message to qmaster using port 6444 on host "ctl": got send '
            "error\n",
            'unable to send message to qmaster using port 6444 on host "ctl": got send error',
        ),
        ("unknown", "error: the moon is full\n", "the moon is full"),
        ("unknown", 'Your job 3 ("a") has been submitted\n', ""),
    ],
)
def test_a_complaint_says_whether_it_can_help_to_try_again(kind: str, text: str, says: str) -> None:
    found = read_complaint(text)
    assert (found.kind, found.text) == (kind, says)


def test_the_port_of_its_daemons_is_one() -> None:
    assert [read_port(text) for text in ("", "1", "7000", "65535")] == [6445, 1, 7000, 65535]
    for text in ("abc", "0", "65536", "-1", " 7", "9" * 5000):
        with pytest.raises(SliceRefused, match=r"^SGE_EXECD_PORT='.*: expected a port, 1 to "):
            read_port(text)


# ---- what a cluster can never give ----

NODES = SgeParallel(name="nodes", slots=999, rule="4", tight=True)
QUEUE = SgeQueue(name="main.q", interactive=True, parallel=("nodes",), max_seconds=3600.0)


def test_the_rule_of_an_environment_says_how_many_slots_a_node_gives() -> None:
    assert whole_nodes(POOL, Ask(nodes=2), NODES) == replace(POOL, cores=4)
    one = replace(NODES, rule="$pe_slots")
    assert whole_nodes(POOL, Ask(), one) == replace(POOL, cores=1)
    for ours, asked in ((2, 3), (3, 2)):
        pool = replace(POOL, cores=ours)
        assert whole_nodes(pool, Ask(cores=asked), one) == replace(POOL, cores=3)
    assert whole_nodes(POOL, Ask(nodes=2), one) == (
        "parallel environment 'nodes' gives slots of one node"
    )
    assert whole_nodes(POOL, Ask(), replace(NODES, rule="$fill_up")) == (
        "parallel environment 'nodes' gives slots as they come ($fill_up); one whose "
        "allocation_rule is a number gives whole nodes"
    )


@pytest.mark.parametrize(
    ("ask", "queue", "parallel", "complaint"),
    [
        (Ask(nodes=3, cores=4, seconds=3600.0), QUEUE, NODES, ""),
        (Ask(nodes=3), QUEUE, replace(NODES, slots=12), ""),
        (
            Ask(nodes=4),
            QUEUE,
            replace(NODES, slots=12),
            "4 nodes asked for, parallel environment 'nodes' has 12 slots",
        ),
        (
            Ask(cores=5),
            QUEUE,
            NODES,
            "5 cores asked for, parallel environment 'nodes' has 4 of each node",
        ),
        (
            Ask(seconds=3601.0),
            QUEUE,
            NODES,
            "3601 s asked for, queue 'main.q' gives 3600 s at most",
        ),
        (
            Ask(),
            replace(QUEUE, interactive=False),
            NODES,
            "queue 'main.q' takes no interactive jobs, which qrsh starts",
        ),
        (Ask(), QUEUE, replace(NODES, tight=False), ""),
        (
            Ask(nodes=2),
            QUEUE,
            replace(NODES, tight=False),
            "parallel environment 'nodes' lets nothing start on further nodes (control_slaves "
            "FALSE)",
        ),
        (
            Ask(lease_seconds=5.0),
            QUEUE,
            NODES,
            "lease_seconds: what it holds ends with this program",
        ),
        (
            Ask(topology="pack"),
            QUEUE,
            NODES,
            "topology='pack': Grid Engine does not place nodes",
        ),
    ],
)
def test_what_grid_engine_would_let_wait_for_ever_is_refused(
    ask: Ask, queue: SgeQueue, parallel: SgeParallel, complaint: str
) -> None:
    assert refusal(replace(POOL, cores=4), ask, queue, parallel) == complaint


def test_nodes_held_for_as_long_as_the_pool_allows_are_refused_alike() -> None:
    day = replace(POOL, max_seconds=86400.0)
    limited = replace(QUEUE, max_seconds=3600.0)
    says = "86400 s asked for, queue 'main.q' gives 3600 s at most"
    assert refusal(day, Ask(), limited, NODES) == says
    assert refusal(day, Ask(seconds=60.0), limited, NODES) == ""


def test_where_no_cores_are_said_a_node_has_one() -> None:
    assert refusal(POOL, Ask(nodes=4, cores=1), QUEUE, replace(NODES, slots=4)) == ""
    assert refusal(POOL, Ask(cores=2), QUEUE, NODES) == (
        "2 cores asked for, parallel environment 'nodes' has 1 of each node"
    )
