"""The live pages: what they show, and that no name of a stranger becomes markup."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

import pytest

from flowos.model import (
    Ask,
    HeldNode,
    ListedRun,
    LoggedTask,
    Pool,
    Price,
    Process,
    SliceAccounts,
    SliceEvent,
    SliceLog,
    SliceRecord,
    SliceUse,
    StorageTier,
)
from flowos.report import Report, html, job_words
from flowos.report.site import (
    CURVES_SCRIPT,
    FOLLOWED,
    LIVE_SCRIPT,
    SERVED,
    ListPart,
    Overview,
    ProgramLog,
    overview_html,
    pools_html,
    problem_html,
    program_html,
    programs_html,
    runs_html,
    slices_html,
)
from flowos.report.site._frame import quoted
from flowos.report.site._tables import clock, command_of, lasted

from .test_page import read

EVIL = "<script>alert('1')</script>\u202e\x00\"&"


BEGIN = datetime(2026, 11, 20, 10, tzinfo=UTC).timestamp()


def use(**more: Any) -> SliceUse:
    known: dict[str, Any] = {
        "flow": "sweep",
        "pool": "local",
        "node": "vm",
        "env": "bare",
        "slices": 2,
        "runs": 7,
        "held_seconds": 12.5,
    }
    return SliceUse(**{**known, **more})


def program(**more: Any) -> Process:
    known: dict[str, Any] = {
        "id": "p-2026-11-20-00000001",
        "argv": ("/opt/venv/bin/python", "sweep.py", "n=5"),
        "host": "login1",
        "pid": 4242,
        "started": "2026-11-20T10:00:00Z",
        "uses": (use(),),
    }
    return Process(**{**known, **more})


OVER = program(
    id="p-2026-11-20-00000000",
    state="ended",
    ended="2026-11-20T10:02:05Z",
    cpu_seconds=130.0,
    max_rss_bytes=300 << 20,
)


NOW = BEGIN + 90.0


def overview(**more: Any) -> Overview:
    return Overview(**{"now": NOW, **more})


def slice_of(**more: Any) -> SliceRecord:
    """Two nodes of gpu, held for a minute after half a minute of waiting."""
    known: dict[str, Any] = {
        "id": "gpu-1a2b",
        "pool": "gpu",
        "kind": "slurm",
        "process": program().id,
        "asked": BEGIN,
        "ask": Ask(nodes=2),
        "state": "held",
        "events": (
            SliceEvent(at=BEGIN, what="waiting", reason="Priority"),
            SliceEvent(at=BEGIN + 30, what="held"),
        ),
        "nodes": tuple(held(f"node{i}") for i in range(2)),
        "price": Price(per_node_hour=36.0),
    }
    return SliceRecord(**{**known, **more})


def held(name: str, until: float | None = None) -> HeldNode:
    return HeldNode(name=name, cores=8, gpus=0, since=BEGIN + 30, until=until)


def waiting(**more: Any) -> SliceRecord:
    events = (SliceEvent(at=BEGIN, what="waiting", reason="Resources"),)
    ask = Ask(nodes=1, cores=4, gpus=1, seconds=3600.0)
    known = {"id": "gpu-9", "state": "waiting", "events": events, "nodes": (), "ask": ask}
    return slice_of(**{**known, **more})


def test_what_waits_is_said_with_its_reason() -> None:
    page = overview_html(overview(host="h", running=(program(),), slices=(waiting(), slice_of())))
    queue = page[page.index('id="queue"') : page.index('id="running"')]
    assert "Resources" in queue
    assert "1 node, 4 cores each, 1 GPU each, 60.0\N{NO-BREAK SPACE}min" in queue
    assert 'data-since="2026-11-20T10:00:00Z"' in queue
    assert "python sweep.py n=5</a>" in queue
    silent = waiting(events=(), process="p-unknown", ask=Ask())
    page = overview_html(overview(host="h", running=(program(),), slices=(silent,)))
    assert "not said yet" in page
    assert ">p-unknown</a>" in page


def test_what_is_held_is_counted_with_its_cost() -> None:
    page = overview_html(overview(host="h", running=(program(),), slices=(slice_of(),)))
    assert 'class="big">2</p>' in page
    assert "in 1 slice" in page
    assert page.count("1.20\N{NO-BREAK SPACE}EUR") == 2
    assert 'data-rate="0.02" data-at="2026-11-20T10:01:30Z" data-unit="EUR"' in page
    assert "node0, node1" in page


def test_without_prices_no_cost_is_shown() -> None:
    page = overview_html(
        overview(host="h", running=(program(uses=()),), slices=(slice_of(price=None),))
    )
    assert "Cost so far" not in page
    assert "EUR" not in page


def test_costs_are_added_up_by_currency() -> None:
    yen = slice_of(id="b", price=Price(per_node_hour=18.0, currency="JPY"))
    page = overview_html(overview(host="h", running=(program(),), slices=(slice_of(), yen)))
    money = page[page.index("Cost so far") :]
    assert money.index("1.20") < money.index(", <span") < money.index("JPY")


def test_slices_that_outlive_their_program_are_said() -> None:
    page = overview_html(overview(host="h", slices=(slice_of(process="p-gone"),)))
    assert "Held, and their programs are gone" in page
    assert "flowos slice free ID" in page


def test_slices_that_are_over_say_how_long_they_were_held_and_why_they_ended() -> None:
    lost = SliceEvent(at=BEGIN + 60, what="lost", reason="no answer", node="node1")
    over = slice_of(
        state="lost",
        ended=BEGIN + 90,
        events=(*slice_of().events, lost, SliceEvent(at=BEGIN + 90, what="ended", reason="gone")),
        nodes=tuple(held(f"node{i}", BEGIN + 60 + i) for i in range(7)),
        jobs=("71", "72"),
        accounts=SliceAccounts(cpu_seconds=720.0, joules=5.5, tres=(("node", 180.0),)),
    )
    refused = waiting(
        id="no", state="refused", events=(SliceEvent(at=BEGIN, what="refused", reason="no such"),)
    )
    page = program_html(OVER, NOW, (over, refused))
    assert "node0, node1, node2, node3 and 3 more" in page
    assert "36.0\N{NO-BREAK SPACE}s" in page
    assert ">lost</span>: gone" in page
    assert ">refused</span>: no such" in page
    assert "4 events of gpu-1a2b" in page
    assert "node node1: lost: no answer" in page
    assert "10:01:00</time>" in page
    assert "10:00:00</time> asked for 2 nodes" in page
    assert "<li>Slurm jobs 71, 72<li>" in page
    assert "accounted by Slurm: 720 s of cpu, 5.5 J, TRES-seconds node=180" in page


def test_a_job_has_the_words_of_the_terminal() -> None:
    held_by_sge = slice_of(kind="sge", jobs=("71",))
    assert f"<li>{job_words(held_by_sge)}</ul>" in program_html(OVER, NOW, (held_by_sge,))


def test_times_that_no_slice_has_are_none_of_a_page() -> None:
    page = program_html(OVER, NOW, (waiting(asked=1e300), waiting(asked=float("nan"))))
    assert "5138-11-16" in page
    assert "1970-01-01" in page


def test_logs_of_a_program_are_drawn_or_led_to() -> None:
    task = LoggedTask(task="solve", worker="vm:0", start=BEGIN, end=BEGIN + 3, bytes_in=0)
    logs = [
        ProgramLog(path="/home/me/old.log"),
        ProgramLog(path="/home/me/gone.log", problem="/home/me/gone.log: no such file"),
        ProgramLog(path="new.log", log=SliceLog(path=PurePath("new.log"), tasks=(task,))),
        ProgramLog(path="empty.log", log=SliceLog(path=PurePath("empty.log"), tasks=())),
    ]
    page = program_html(program(uses=()), NOW, logs=logs)
    assert f'/programs/{program().id}/logs/0">Its timeline' in page
    assert "gone.log: no such file" in page
    assert f'/programs/{program().id}/logs/2">All of its timeline' in page
    assert page.count('role="img"') == 1
    assert "No task is in its log yet." in page


def test_now_shows_what_runs_what_ran_and_what_was_measured(small: Report) -> None:
    runs = (ListedRun(run=small.run, samples=120),)
    page = overview_html(overview(host="login1", running=(program(),), over=(OVER,), runs=runs))
    assert "live on login1" in page
    assert 'href="/programs/p-2026-11-20-00000001">python sweep.py n=5</a>' in page
    assert 'data-since="2026-11-20T10:00:00Z"' in page
    assert "300 MiB" in page
    assert 'href="/runs/2026-11-20-abc"' in page
    assert 'src="/live.js"' in page
    assert 'aria-current="page">Now</a>' in page


def test_now_without_anything_says_how_something_appears() -> None:
    page = overview_html(overview(host="login1", problems=("the store is damaged",)))
    assert "fo.slice(...) and flowos run appear here by themselves" in page
    assert '<p class="warn">the store is damaged' in page
    assert "<table" not in page


def test_a_program_that_ended_says_from_when_to_when() -> None:
    page = program_html(OVER, NOW)
    assert "from 2026-11-20 10:00 to 2026-11-20 10:02 UTC, 125" in page
    assert "data-since" not in page
    assert "pid 4242" in page


def test_a_program_that_runs_says_since_when() -> None:
    assert 'data-since="2026-11-20T10:00:00Z"' in program_html(program(), NOW)


@pytest.mark.parametrize(
    ("number", "links"),
    [(1, ["/programs?page=2"]), (2, ["/programs?page=1", "/programs?page=3"]), (3, ["?page=2"])],
)
def test_a_long_list_has_parts(number: int, links: list[str]) -> None:
    page = programs_html(ListPart(found=(OVER,), total=101, number=number))
    assert f"Part {number} of 3, 101 in all" in page
    assert [link for link in links if link not in page] == []
    assert page.count("?page=") == len(links)


def test_slices_lead_to_their_programs() -> None:
    page = slices_html(ListPart(found=(slice_of(), waiting(process="p-b")), total=120), NOW)
    assert 'href="/programs/p-b">gpu-9</a>' in page
    assert "120 slices of pools." in page
    assert "/slices?page=2" in page
    assert "2026-11-20 10:00<" in page
    assert "<table" not in slices_html(ListPart(found=(), total=0), NOW, ("no store",))


def test_a_list_of_one_part_has_no_links_to_others(small: Report) -> None:
    assert "page=" not in programs_html(ListPart(found=(OVER,), total=50))
    page = runs_html(ListPart(found=(ListedRun(run=small.run, samples=1),), total=1))
    assert "page=" not in page
    assert "1 run of flowos measure" in page


@pytest.mark.parametrize("page", [programs_html, runs_html])
def test_an_empty_list_is_no_table(page: Any) -> None:
    shown = page(ListPart(found=(), total=0), ("no store",))
    assert "<table" not in shown
    assert "no store" in shown


def test_a_run_says_how_it_ended(small: Report) -> None:
    runs = [
        small.run,
        replace(small.run, ended=""),
        replace(small.run, ended_early="its time was over"),
    ]
    page = runs_html(ListPart(found=tuple(ListedRun(run=r, samples=0) for r in runs), total=3))
    assert [page.count(f">{how}<") for how in ("ended", "running or cut off", "ended early")] == [
        1,
        1,
        1,
    ]


def test_pools_show_what_they_have() -> None:
    gpu = Pool(
        name="gpu",
        kind="slurm",
        nodes=8,
        cores=16,
        max_seconds=7200.0,
        partition="a100",
        price=Price(per_node_hour=2.5),
    )
    page = pools_html((Pool(name="local"), gpu), "/home/me/flowos.toml")
    assert "2 pools of /home/me/flowos.toml." in page
    assert "2.5 EUR a node and hour" in page
    assert "a100" in page
    assert page.count("Partition") == 1
    slices = (slice_of(), slice_of(id="b"), waiting(), slice_of(pool="other"))
    page = pools_html((gpu,), "f", slices)
    assert "<dt>Now<dd>4 nodes held in 2 slices, 1 slice waiting" in page
    assert "<dt>Now<dd>1 slice waiting" in pools_html((gpu,), "f", slices[2:])
    rented = Pool(name="hb", size="Standard_HB120rs_v3", spot=True, price=Price())
    page = pools_html((rented,), "f")
    assert "<dt>Size<dd>Standard_HB120rs_v3, spot" in page
    assert "a node and hour" not in page
    assert "Without a flowos.toml: one." in pools_html((Pool(name="local"),), "")
    tiers = Pool(
        name="s",
        kind="slurm",
        shared="/gpfs",
        shared_tier=StorageTier(capacity_bytes=10**14),
        scratch="/local",
        scratch_tier=StorageTier(write_bytes_per_second=2e9),
    )
    page = pools_html((tiers,), "f")
    assert "<dt>Shared folder<dd>/gpfs" in page
    assert "<dt>It promises<dd>100 TB" in page
    assert "<dt>Each promises<dd>write 2.00 GB/s" in page


def test_hostile_names_stay_text(small: Report) -> None:
    event = SliceEvent(at=BEGIN, what="waiting", reason=EVIL, node=EVIL)
    hostile = program(
        argv=(EVIL, EVIL),
        host=EVIL,
        id=EVIL,
        started=EVIL,
        uses=(use(flow=EVIL, pool=EVIL, node=EVIL, env=EVIL),),
    )
    waits = waiting(id=EVIL, pool=EVIL, process=EVIL, events=(event,), nodes=(held(EVIL),))
    logs = (ProgramLog(path=EVIL, problem=EVIL),)
    run = replace(small.run, id=EVIL, host=EVIL, started=EVIL)
    runs = (ListedRun(run=run, samples=1),)
    pages = [
        overview_html(
            overview(host=EVIL, running=(hostile,), over=(hostile,), runs=runs, slices=(waits,))
        ),
        program_html(hostile, NOW, (waits,), logs, (EVIL,)),
        programs_html(ListPart(found=(hostile,), total=1), (EVIL,)),
        runs_html(ListPart(found=runs, total=1), (EVIL,)),
        pools_html((Pool(name="a", kind="slurm", constraint="<i>&"),), EVIL),
        problem_html(EVIL, EVIL),
        slices_html(ListPart(found=(waits,), total=1), NOW, (EVIL,)),
    ]
    for page in pages:
        assert read(page).tags["script"] == 1
        assert read(page).handlers == []
        assert "alert(&#x27;1" in page
        assert not {"\u202e", "\x00"} & set(page)


def test_pages_run_one_script_of_their_own_and_reports_that_of_curves(recorded: Report) -> None:
    page = overview_html(overview(host="login1"))
    assert read(page).loads == ["script /live.js", *(f"a {at}" for at in PLACES)]
    assert "Content-Security-Policy" not in page  # the server states it
    assert FOLLOWED.runs
    report = html(recorded, frame=SERVED)
    assert read(report).loads == [*(f"a {at}" for at in PLACES), "script /curves.js"]
    assert "Content-Security-Policy" not in report
    for script in (LIVE_SCRIPT, CURVES_SCRIPT):
        assert "innerHTML" not in script


PLACES = ("/", "/programs", "/slices", "/runs", "/pools")


def test_commands_are_short_and_have_no_paths() -> None:
    assert command_of(program(argv=())) == "'?'"
    assert command_of(program(argv=("/usr/bin/", "a b"))) == "/usr/bin/ 'a b'"
    assert command_of(program(argv=("x", "\n\n")))
    assert command_of(program(argv=("x", "y" * 400))).endswith("y\N{HORIZONTAL ELLIPSIS}")


def test_times_are_those_of_people_and_others_stay() -> None:
    assert clock("2026-11-20T10:00:59Z") == "2026-11-20 10:00"
    assert clock("yesterday") == "yesterday"
    assert lasted("2026-11-20T10:00:00Z", "2026-11-20T10:00:00Z") == "below 1\N{NO-BREAK SPACE}s"
    assert lasted("2026-11-20T10:00:00Z", "") == ""
    assert lasted("2026-11-20T10:00:00Z", "2026-11-20T10:00:00") == ""


def test_words_of_addresses_are_quoted() -> None:
    assert quoted("a-B_9") == "a-B_9"
    assert quoted("../a?b#\u00e9\ud800") == "%2E%2E%2Fa%3Fb%23%C3%A9%3F"
