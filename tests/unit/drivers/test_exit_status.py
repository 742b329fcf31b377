"""From status files to how a launch ended."""

from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.drivers import Seen, classify_end, read_progress
from flowos.model import (
    CpuTimes,
    End,
    Environment,
    Exited,
    Killed,
    Launch,
    Lost,
    NotStarted,
    RuntimeFailed,
    Usage,
)

ONE = Launch(argv=("prog", "-x"), variables=(("PATH", "/a:/b"),), cwd=PurePath("/work"))
TWO = replace(ONE, ranks=2)


def status(first: str, *, stopped: int = 0, ended: float = 1.0) -> bytes:
    return (
        f"{first}\nstopped {stopped}\nended_seconds {ended}\nwall_seconds 2.5\n"
        "user_seconds 1.5\nsystem_seconds 0.25\nmax_rss_bytes 4096\n"
    ).encode()


def seen(*statuses: bytes | None, code: int = 0, by: str = "", stderr: bytes = b"") -> Seen:
    """A rank without a status (None) had started."""
    assert by in ("", "limit", "request")
    return Seen(
        statuses={rank: text for rank, text in enumerate(statuses) if text is not None},
        started=frozenset(range(len(statuses))),
        code=code,
        stopped_by=by,  # type: ignore[arg-type]
        stderr=stderr,
    )


def end(launch: Launch, what: Seen) -> End:
    return classify_end(launch, what)[0]


def not_started(words: str, launch: Launch = ONE) -> str:
    ended = end(launch, seen(status(f"error {words}"), code=127))
    assert isinstance(ended, NotStarted)
    return ended.reason


def test_an_exit_code_is_an_exit_whatever_the_outermost_process_says() -> None:
    assert end(ONE, seen(status("exit 3"), code=1)) == Exited(3)
    assert end(ONE, seen(status("exit 0"))) == Exited(0)


def test_a_signal_of_somebody_else_is_told_as_such() -> None:
    assert end(ONE, seen(status("signal 9"), code=137)) == Killed(9, "other")


@pytest.mark.parametrize("by", ["limit", "request"])
def test_what_we_stopped_is_killed_by_us_even_if_it_left_in_good_order(by: str) -> None:
    assert end(ONE, seen(status("signal 9", stopped=1), by=by)) == Killed(9, by)  # type: ignore[arg-type]
    assert end(ONE, seen(status("exit 0", stopped=1), by=by)) == Killed(15, by)  # type: ignore[arg-type]


def test_what_had_ended_before_our_stop_keeps_its_own_end() -> None:
    assert end(ONE, seen(status("exit 4"), by="request")) == Exited(4)


@pytest.mark.parametrize("code", [0, 4])
def test_a_runtime_killed_as_it_hung_after_its_command_does_not_change_the_end(code: int) -> None:
    hung = replace(seen(status(f"exit {code}"), code=-9), hung=True)
    assert end(ONE, hung) == Exited(code)


def test_what_we_had_to_end_hard_is_killed_by_us() -> None:
    assert end(ONE, seen(None, code=-9, by="limit")) == Killed(9, "limit")


def test_usage_is_read() -> None:
    usage = classify_end(ONE, seen(status("exit 0")))[1]
    assert usage == Usage(
        wall_seconds=2.5, user_seconds=1.5, system_seconds=0.25, max_rss_bytes=4096
    )


def test_what_the_node_of_rank_0_did_is_read() -> None:
    cpus = "cpus_busy_seconds 3.5\ncpus_idle_seconds 0.5\ncpus_steal_seconds 0.25\n"
    usage = classify_end(ONE, seen(status("exit 0") + cpus.encode()))[1]
    assert usage.cpus == CpuTimes(busy=3.5, idle=0.5, steal=0.25)
    assert usage.memory_stalled_seconds is None
    stalled = cpus + "memory_stalled_seconds 0.125\n"
    usage = classify_end(ONE, seen(status("exit 0") + stalled.encode()))[1]
    assert usage.memory_stalled_seconds == 0.125
    assert (usage.io_stalled_seconds, usage.disk_bytes, usage.own_disk_bytes) == (None, None, None)
    storage = cpus + "io_stalled_seconds 0.5\ndisk_bytes 8192.000000\nown_disk_bytes 4096\n"
    usage = classify_end(ONE, seen(status("exit 0") + storage.encode()))[1]
    assert (usage.io_stalled_seconds, usage.disk_bytes, usage.own_disk_bytes) == (0.5, 8192, 4096)


def test_of_ranks_the_disks_of_the_first_node_count_and_what_all_moved_if_all_say_it() -> None:
    first = status("exit 0") + b"io_stalled_seconds 0.5\ndisk_bytes 8192\nown_disk_bytes 4096\n"
    other = status("exit 0") + b"io_stalled_seconds 0.1\ndisk_bytes 1024\nown_disk_bytes 512\n"
    usage = classify_end(TWO, seen(first, other))[1]
    assert (usage.io_stalled_seconds, usage.disk_bytes, usage.own_disk_bytes) == (0.5, 8192, 4608)
    assert classify_end(TWO, seen(first, status("exit 0")))[1].own_disk_bytes is None


def test_what_a_status_does_not_say_is_no_usage() -> None:
    assert classify_end(ONE, seen(b"exit 0\n"))[1] == Usage()
    assert classify_end(ONE, seen(code=1))[1] == Usage()


def test_ranks_use_time_together_and_wait_side_by_side() -> None:
    usage = classify_end(TWO, seen(status("exit 0"), status("exit 0")))[1]
    assert usage == Usage(
        wall_seconds=2.5, user_seconds=3.0, system_seconds=0.5, max_rss_bytes=4096
    )


def test_a_missing_command_is_told_with_where_it_was_looked_for() -> None:
    assert not_started("exec 2") == "no such command 'prog' (looked in PATH=/a:/b)"
    assert not_started("exec 2", replace(ONE, variables=())) == (
        "no such command 'prog' (looked in PATH=/usr/local/bin:/usr/bin:/bin)"
    )
    inside = replace(ONE, variables=(), env=Environment(variables=(("PATH", "/image"),)))
    assert not_started("exec 2", inside) == "no such command 'prog' (looked in PATH=/image)"
    assert not_started("exec 20", replace(ONE, argv=("./prog",))) == "no such command './prog'"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("exec 13", "'prog' may not be executed; if it is a program, chmod +x mends it"),
        ("exec 8", "'prog' is no program of this machine: another architecture, or no #! line"),
        ("exec 7", "'prog' cannot start: arguments and variables are longer than the kernel takes"),
        ("exec 26", "'prog' cannot start: the file is still open for writing"),
        ("exec 12", "'prog' cannot be executed: ENOMEM"),
        ("exec 4321", "'prog' cannot be executed: 4321"),
        ("exec 21", "'prog' is a folder: name a program in it"),
        (
            "interpreter 2",
            "'prog' is there, but not the interpreter that its #! line names (a line that ends "
            "as on Windows names none) or, of a binary, its loader",
        ),
        (
            "interpreter 13",
            "'prog' may be executed, but not the interpreter that its #! line names",
        ),
        ("cwd 2", "no such folder to start in: /work"),
        ("cwd 20", "no such folder to start in: /work"),
        ("cwd 13", "cannot start in folder /work: EACCES"),
    ],
)
def test_what_kept_a_command_from_starting_is_told_in_words(words: str, reason: str) -> None:
    assert not_started(words) == reason


@pytest.mark.parametrize(("words", "code"), [("exec 2", 127), ("exec 20", 127), ("exec 13", 126)])
def test_what_did_not_start_has_the_code_of_a_shell(words: str, code: int) -> None:
    ended = end(ONE, seen(status(f"error {words}"), code=1))
    assert isinstance(ended, NotStarted)
    assert ended.code == code


def test_a_failure_of_the_init_is_the_runtimes() -> None:
    assert end(ONE, seen(status("error own 11"), code=125)) == RuntimeFailed(
        "flowos-init cannot start 'prog': own: EAGAIN"
    )


def test_a_rank_that_cannot_join_its_container_is_the_runtimes() -> None:
    assert end(ONE, seen(status("error enter 1"), code=125)) == RuntimeFailed(
        "'prog': its rank cannot join the container held for it: EPERM"
    )


def test_without_any_sign_the_runtime_failed_and_its_last_words_say_why() -> None:
    what = replace(seen(code=1, stderr=b"----\nfirst\n\nno slots\n-----\n"), started=frozenset())
    assert end(ONE, what) == RuntimeFailed(
        "what should start 'prog' ended with 1: first / no slots"
    )
    assert end(ONE, replace(what, code=-11, stderr=b"")) == RuntimeFailed(
        "what should start 'prog' was ended by signal 11"
    )


def test_of_many_last_words_three_lines_are_shown_and_how_it_ended_in_any_case() -> None:
    what = replace(seen(code=0, stderr=b"1\n2\n3\n4\n5\n"), started=frozenset())
    assert end(ONE, what) == RuntimeFailed("what should start 'prog' ended with 0: 3 / 4 / 5")
    assert end(ONE, replace(what, code=-1, stderr=b"")) == RuntimeFailed(
        "what should start 'prog' was ended by signal 1"
    )


def test_a_command_that_had_started_and_gave_no_answer_is_lost() -> None:
    assert end(ONE, seen(None, code=-9)) == Lost("'prog' vanished: flowos-init was killed")
    assert end(TWO, seen(status("exit 0"), None, code=1, stderr=b"oom")) == Lost(
        "rank 1 of 'prog' vanished: flowos-init was killed: oom"
    )


def test_of_several_ranks_without_an_answer_the_first_is_named() -> None:
    assert end(TWO, seen(None, None, code=0)) == Lost(
        "rank 0 of 'prog' vanished: flowos-init was killed"
    )
    three = replace(ONE, ranks=3)
    what = replace(seen(status("exit 0"), code=0), started=frozenset({0}))
    assert end(three, what) == RuntimeFailed("rank 1 of 3 was never started")


def test_a_rank_that_was_never_started_is_named() -> None:
    what = replace(seen(status("exit 0"), code=0), started=frozenset({0}))
    assert end(TWO, what) == RuntimeFailed("rank 1 of 2 was never started")


def test_the_first_rank_that_ended_badly_counts() -> None:
    cause, consequence = status("exit 3", ended=5.0), status("signal 15", ended=6.0)
    assert end(TWO, seen(cause, consequence, code=3)) == Exited(3)
    assert end(TWO, seen(consequence, cause, code=3)) == Exited(3)
    assert end(TWO, seen(status("exit 0", ended=1.0), cause, code=3)) == Exited(3)
    assert end(TWO, seen(None, cause, code=3)) == Exited(3)


def test_of_ranks_on_several_nodes_the_one_that_ran_the_shortest_ended_first() -> None:
    """Each node counts the seconds since its own boot."""
    later = status("exit 1", ended=2.0).replace(b"wall_seconds 2.5", b"wall_seconds 2.6")
    ranks = seen(status("exit 7", ended=90_000.0), later)
    assert end(replace(TWO, nodes=("n1", "n2")), ranks) == Exited(7)
    assert end(replace(TWO, nodes=("n1",)), ranks) == Exited(1)


@pytest.mark.parametrize("text", [b"exit 3\n", b"odd\n"])
def test_a_rank_that_does_not_say_when_it_ended_badly_ended_at_the_start(text: bytes) -> None:
    alone = end(ONE, seen(text))
    assert end(TWO, seen(text, status("exit 4", ended=0.5), code=4)) == alone
    assert end(TWO, seen(status("exit 4", ended=0.0), text, code=4)) == Exited(4)


def test_of_ranks_that_we_stopped_the_first_says_by_which_signal() -> None:
    stopped = (status("signal 9", stopped=1), status("signal 2", stopped=1))
    assert end(TWO, seen(*stopped, by="limit")) == Killed(9, "limit")


def test_a_rank_that_could_not_start_counts_before_all_others() -> None:
    missing = status("error exec 2", ended=9.0)
    ended = end(TWO, seen(status("signal 15", ended=1.0), missing, code=1))
    assert isinstance(ended, NotStarted)


def test_a_launcher_that_fails_after_good_ranks_is_not_hidden() -> None:
    assert end(TWO, seen(status("exit 0"), status("exit 0"), code=6)) == RuntimeFailed(
        "every rank ended well, what had started them ended with 6"
    )


def test_a_rank_that_mpirun_stopped_as_another_one_had_failed_does_not_hide_it() -> None:
    stopped = status("signal 15", stopped=1, ended=0.5)
    assert end(TWO, seen(stopped, status("exit 3", ended=1.0), code=3)) == Exited(3)
    for other in ("exit 0", "signal 15"):
        assert isinstance(end(TWO, seen(stopped, status(other), code=1)), RuntimeFailed)


def test_ranks_that_ended_because_their_launcher_was_gone_tell_of_the_launcher() -> None:
    for signal in (1, 9):
        assert end(TWO, seen(None, None, code=-signal)) == RuntimeFailed(
            f"what had started 'prog' was ended by signal {signal} before it"
        )
    stopped = status("signal 15", stopped=1)
    assert end(TWO, seen(stopped, stopped, code=-9)) == RuntimeFailed(
        "what had started 'prog' was ended by signal 9 before it"
    )


@pytest.mark.parametrize(
    "text", [b"", b"exit\n", b"exit x\n", b"odd 3\n", b"exit 0\nbroken\n", b"\xff"]
)
def test_an_unreadable_status_is_a_value_never_an_exception(text: bytes) -> None:
    ended = end(ONE, seen(text))
    assert isinstance(ended, Lost)
    assert repr(text[:20])[1:5] in ended.reason


def test_of_an_unreadable_status_a_hundred_bytes_are_shown() -> None:
    assert end(ONE, seen(b"x" * 200)) == Lost(f"unreadable status: {b'x' * 100!r}")


def test_a_status_of_a_later_init_may_tell_more_than_we_know() -> None:
    assert end(ONE, seen(b"exit 0\nnew_thing 7\n")) == Exited(0)


@pytest.mark.parametrize(
    ("text", "progress"),
    [
        (b"signal 9\nstopped 0\nbegun 12884901890\nruns 7\n", (12884901890, 7)),
        (b"exit 0\nstopped 0\n", (0, 0)),
        (b"exit 0\nbegun x\nruns 1\n", (0, 0)),
        (b"", (0, 0)),
    ],
)
def test_what_a_worker_began_last_is_read(text: bytes, progress: tuple[int, int]) -> None:
    assert read_progress(text) == progress


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("error silent 30", "'prog': its guest said nothing for 30 s and was ended"),
        ("error died 1", "'prog': its guest died (qemu ended with 1)"),
    ],
)
def test_a_guest_that_is_gone_is_named(said: str, told: str) -> None:
    end, _ = classify_end(ONE, seen(status(said), code=125))
    assert end == RuntimeFailed(told)
