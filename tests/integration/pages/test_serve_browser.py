"""The live pages in a real browser: they fit, follow what happens, and show names as names.

docs/serve.png is live-now-1400-light.png of FLOWOS_SCREENSHOTS=FOLDER, with 128 colours.
"""

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from flowos.model import Process, SliceUse
from flowos.report import read_json
from flowos.store import open_store
from tests.waiting import PATIENCE_SECONDS

from .browser import Browser
from .served import Served

RUN = Path(__file__).parents[2] / "data/run.json"
SIZES = [(1400, "light"), (1400, "dark"), (400, "light"), (400, "dark")]
HOSTILE = '<img src=x onerror=alert(1)>\u202e"&<script>alert(2)</script>'
LONG = "l" * 300
SETTINGS = """
[pools.local]
cores = 4
[pools.cloud]
kind = "fake"
nodes = 4
script = ["wait 0.2 Resources"]
price = {per_node_hour = 2.5}
[pools.gpu]
kind = "fake"
nodes = 8
script = ["wait 600 Priority"]
price = {per_node_hour = 9.8}
"""
SWEEP = """
import sys, time
import flowos as fo

@fo.task
def mesh(x: fo.int64) -> fo.int64:
    time.sleep(0.001 * (x % 7))
    return x

@fo.task
def solve(x: fo.int64) -> fo.int64:
    time.sleep(0.002 * (x % 5))
    return x * x

x = fo.flow_input("x", fo.int64)
flow = fo.flow_output(solve(mesh(x)))
with fo.slice(pool="cloud", nodes=2, log="sweep.log") as s:
    list(s.map(flow, range(120)))
    print("held", flush=True)
    sys.stdin.read()
"""
WAITS = """
import flowos as fo
print("waits", flush=True)
fo.slice(pool="gpu", nodes=4, seconds=7200)
"""


SCRIPTS = ("sweep.py points=1200", "preprocess.py pictures/", "solver_loop.py")


def program(number: int, **more: Any) -> Process:
    known: dict[str, Any] = {
        "id": f"p-2026-11-20-{number:08x}",
        "argv": ("/opt/venv/bin/python", *SCRIPTS[number % 3].split(), f"seed={number}"),
        "host": "login1.cluster.example",
        "pid": 4000 + number,
        "started": f"2026-11-20T10:{number % 60:02d}:00Z",
        "ended": f"2026-11-20T11:{number * 7 % 60:02d}:30Z",
        "state": "ended",
        "uses": (use("sweep"), use("collect", pool="gpu")),
        "cpu_seconds": 811.5 - 7 * number,
        "max_rss_bytes": (300 + number) << 20,
    }
    return Process(**{**known, **more})


def use(flow: str, pool: str = "local") -> SliceUse:
    return SliceUse(
        flow=flow, pool=pool, node="node1", env="bare", slices=1, runs=40, held_seconds=73.25
    )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With what a person has after a few weeks, two programs that run, and one of hostile names."""
    folder = tmp_path_factory.mktemp("live")
    variables = {**os.environ, "XDG_DATA_HOME": str(folder / "data")}
    report = read_json(RUN.read_text())
    with open_store(str(folder / "data/flowos/flowos.db")) as store:
        for number in range(60):
            store.keep_process(program(number))
        evil = program(
            61,
            argv=(HOSTILE, HOSTILE * 9, LONG),
            host=HOSTILE,
            uses=(use(HOSTILE), use(LONG, pool=LONG)),
        )
        store.keep_process(evil)
        store.begin(report.run)
        for sample in report.samples[:200]:
            store.keep(sample)
    (folder / "flowos.toml").write_text(SETTINGS)
    with ExitStack() as running:
        for command, text in (("sweep.py points=120", SWEEP), ("train.py epochs=90", WAITS)):
            (folder / command.split()[0]).write_text(text)
            running.enter_context(started(folder, command, variables))
        yield running.enter_context(Served(folder, variables)).open()


@contextmanager
def started(folder: Path, command: str, variables: dict[str, str]) -> Iterator[None]:
    """A program that has its slice, or waits for it; killed at the end."""
    pipe = subprocess.PIPE
    words = [sys.executable, *command.split()]
    with subprocess.Popen(
        words, cwd=folder, env=variables, stdin=pipe, stdout=pipe, text=True
    ) as begun:
        try:
            assert begun.stdout is not None
            assert begun.stdout.readline()
            yield
        finally:
            begun.kill()


@pytest.fixture
def opened(served: Served, browser: Browser) -> str:
    """Where it is, in a browser that has opened its address."""
    browser.show(1400, "light")
    browser.open(served.url)
    browser.complaints.clear()
    return f"http://127.0.0.1:{served.port}"


def until(browser: Browser, expression: str) -> None:
    for _ in range(PATIENCE_SECONDS * 10):
        if browser.evaluate(expression):
            return
        threading.Event().wait(0.1)
    pytest.fail(f"never: {expression}")


def test_the_address_has_no_token_once_it_is_open(opened: str, browser: Browser) -> None:
    assert browser.evaluate("location.href") == f"{opened}/"
    assert browser.evaluate("document.cookie") == ""


def test_a_link_in_a_page_of_another_site_opens_it(
    served: Served, browser: Browser, tmp_path: Path
) -> None:
    page = tmp_path / "mail.html"
    page.write_text(f'<a href="{served.url}">open</a>')
    browser.open(page.as_uri())
    browser.ask("Network.clearBrowserCookies")
    browser.evaluate("document.querySelector('a').click()")
    until(browser, "location.pathname == '/' && document.querySelector('h1') != null")
    assert "token" not in browser.evaluate("location.href")


@pytest.fixture
def addresses(opened: str, browser: Browser) -> dict[str, str]:
    """Name -> address of a page of each kind."""
    link = "[...document.querySelectorAll('article a')].find(a => a.text.includes('sweep.py'))"
    until(browser, f"{link} != null && document.querySelector('#queue') != null")
    sweep = browser.evaluate(f"{link}.href")
    lists = {name: f"{opened}/{name}" for name in ("programs", "slices", "runs", "pools")}
    over = f"{opened}/programs/{program(1).id}"
    return {
        "now": f"{opened}/",
        **lists,
        "over": over,
        "program": sweep,
        "log": f"{sweep}/logs/0",
        "hostile": f"{opened}/programs/{program(61).id}",
    }


def test_curves_of_a_report_are_turned_and_enlarged_as_in_its_file(
    opened: str, browser: Browser
) -> None:
    browser.open(f"{opened}/runs")
    browser.open(browser.evaluate("document.querySelector('main a[href^=\"/runs/\"]').href"))
    until(browser, "document.querySelector('.tools button') != null")
    ticks = "[...document.querySelectorAll('svg.curve .scale text')].map(t => t.textContent)"
    before = browser.evaluate(ticks)
    browser.evaluate("document.querySelector('.tools button').click()")
    assert browser.evaluate(ticks) != before
    assert browser.complaints == []


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_all_pages_fit_their_window(
    width: int, scheme: str, addresses: dict[str, str], browser: Browser
) -> None:
    browser.show(width, scheme)
    for name, address in addresses.items():
        browser.complaints.clear()
        browser.open(address)
        assert browser.complaints == [], name
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        until(browser, "[...document.querySelectorAll('[data-since]')].every(e => e.textContent)")
        browser.show_picture(f"live-{name}-{width}-{scheme}.png")


def test_now_shows_what_waits_and_why_and_what_it_costs(
    addresses: dict[str, str], browser: Browser
) -> None:
    browser.open(addresses["now"])
    assert "Priority" in browser.evaluate("document.querySelector('#queue').textContent")
    cost = "parseFloat(document.querySelector('[data-rate]').textContent)"
    before = browser.evaluate(cost)
    until(browser, f"{cost} > {before}")


def test_the_timeline_of_a_program_is_on_its_page(
    addresses: dict[str, str], browser: Browser
) -> None:
    browser.open(addresses["program"])
    assert browser.evaluate("document.querySelectorAll('.lanes rect.bar').length") > 20
    browser.open(addresses["log"])
    assert browser.evaluate("document.querySelectorAll('.lanes rect.bar').length") > 20
    assert browser.evaluate("document.querySelectorAll('.site [aria-current]').length") == 1
    assert browser.complaints == []


def test_names_of_strangers_are_text(opened: str, browser: Browser) -> None:
    browser.open(f"{opened}/programs/{program(61).id}")
    assert browser.evaluate("document.images.length + document.scripts.length") == 1
    assert HOSTILE[:28] in browser.evaluate("document.querySelector('h1').textContent")
    assert browser.complaints == []


def test_a_program_that_begins_appears_without_a_reload(
    served: Served, opened: str, browser: Browser
) -> None:
    browser.open(opened)
    browser.evaluate("window.same = document.querySelector('#measured')")
    records = Path(served.variables["XDG_DATA_HOME"], "flowos/processes")
    records.mkdir(exist_ok=True)
    text = json.dumps(plain(program(62, argv=("python", "appears.py"))))
    (records / "p-new.json").write_text(text)
    until(browser, "document.body.textContent.includes('appears.py')")
    assert browser.evaluate("window.same.isConnected"), "a part was replaced that had not changed"
    assert browser.complaints == []
    assert browser.evaluate("document.getElementById('live').textContent") == ""


def plain(process: Process) -> dict[str, object]:
    found = {name: getattr(process, name) for name in Process.__dataclass_fields__}
    return {**found, "uses": [], "argv": list(process.argv)}


def test_the_keyboard_leads_from_page_to_page(opened: str, browser: Browser) -> None:
    browser.open(f"{opened}/programs")
    seen = []
    for _ in range(9):
        browser.press("Tab")
        seen.append(browser.evaluate("document.activeElement.textContent"))
    assert seen[:5] == ["Skip to the content", "Now", "Programs", "Slices", "Measurements"]
    assert ".py" in seen[7]
    outline = browser.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


def test_focus_and_what_was_opened_stay_when_a_part_is_replaced(
    served: Served, opened: str, browser: Browser
) -> None:
    browser.open(f"{opened}/programs")
    browser.evaluate("document.querySelector('.list tbody a').focus()")
    before = browser.evaluate("document.querySelectorAll('.list tbody tr').length")
    store = Path(served.variables["XDG_DATA_HOME"], "flowos/flowos.db")
    with open_store(str(store)) as kept:
        kept.keep_process(program(63, started="2020-01-01T00:00:00Z", argv=("old.py",)))
    until(browser, "document.querySelector('.deck').textContent.startsWith('6')")
    assert browser.evaluate("document.querySelectorAll('.list tbody tr').length") == before
    assert browser.evaluate("document.activeElement.closest('.list') != null")


def test_ids_are_unique_and_headings_skip_no_level(
    addresses: dict[str, str], browser: Browser
) -> None:
    for address in addresses.values():
        browser.open(address)
        ids = browser.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
        assert len(ids) == len(set(ids))
        levels = browser.evaluate(
            "[...document.querySelectorAll('h1,h2,h3')].map(e => +e.tagName[1])"
        )
        assert levels[0] == 1
        assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


def test_pages_are_read_without_script(opened: str, browser: Browser) -> None:
    browser.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(f"{opened}/programs")
        browser.show_picture("live-without-script.png")
    finally:
        browser.ask("Emulation.setScriptExecutionDisabled", value=False)
    found = browser.ask("DOM.getDocument", depth=-1)
    text = json.dumps(found)
    assert "sweep.py" in text
    assert '"refresh"' in text


def test_a_mistake_in_the_settings_is_shown_until_it_is_mended(
    served: Served, addresses: dict[str, str], browser: Browser
) -> None:
    browser.open(addresses["pools"])
    settings = served.folder / "flowos.toml"
    settings.write_text("[pools.gpu]\nnodse = 8\n")
    until(browser, "document.body.textContent.includes('nodse')")
    settings.write_text(SETTINGS)
    until(browser, "document.querySelector('#pool-2') != null")
    assert browser.evaluate("document.getElementById('live').textContent") == ""
    browser.complaints.clear()


def test_a_server_that_ended_is_said_and_what_was_shown_stays(
    tmp_path: Path, browser: Browser
) -> None:
    with Served(tmp_path, {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}) as served:
        browser.open(served.url)
    until(browser, "document.getElementById('live').textContent.includes('No answer')")
    assert "What runs now" in browser.evaluate("document.body.textContent")
    browser.complaints.clear()
