"""The site that `make docs` builds, in a real browser from its files: pages fit their window, and
search finds."""

import shutil
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.integration.conftest import MadeOnce
from tests.tutorials import DOCS
from tests.waiting import PATIENCE_SECONDS

from .browser import Browser

SIZES = [(1400, "light"), (1400, "dark"), (400, "light"), (400, "dark")]
PAGES = (
    "index",
    "tutorials/measure",
    "howto/what-nodes-cost",
    "flowos-toml",
    "reference/generated/flowos-measure",
    "reference/generated/python",
)
"""One of each kind: pictures, blocks, tables, a command, classes."""
BACKGROUND = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
LOADED = "[...document.querySelectorAll('[src], link[rel=stylesheet]')].map(e => e.src || e.href)"
UNSAFE = "document.querySelectorAll('article a[href^=\"http:\"]').length"
RESULTS = """new Promise(done => {
  const results = document.querySelector('#search-results');
  const shown = () => results.textContent.includes('Search finished') && done(results);
  new MutationObserver(shown).observe(results, {childList: true, subtree: true});
  shown();
})"""
FOUND = (
    RESULTS
    + """.then(results =>
  [...results.querySelectorAll('.search li > a')].map(a => a.getAttribute('href')))"""
)
EXCERPT = (
    RESULTS
    + """.then(results => new Promise(done => {
  const shown = () => {
    const first = results.querySelector('.search li > p.context');
    if (first) done(first.textContent);
  };
  new MutationObserver(shown).observe(results, {childList: true, subtree: true});
  shown();
}))"""
)


@pytest.fixture(scope="module")
def site(made_once: MadeOnce) -> Path:
    """Of a copy, as pages are generated next to the others. A warning is an error."""
    pytest.importorskip("sphinx")

    def build(work: Path) -> None:
        left = shutil.ignore_patterns("generated", "__pycache__")
        shutil.copytree(DOCS, work / "docs", ignore=left)
        words = (sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html")
        places = (work / "docs", work / "made")
        done = subprocess.run((*words, *places), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    return made_once("site", build) / "made"


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_pages_of_each_kind_fit_their_window(
    width: int, scheme: str, site: Path, browser: Browser
) -> None:
    browser.show(width, scheme)
    for name in PAGES:
        browser.complaints.clear()
        browser.open((site / f"{name}.html").as_uri())
        assert browser.complaints == [], name
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert browser.evaluate("document.querySelector('article h1').textContent"), name
        assert (min(browser.evaluate(BACKGROUND)) > 127) == (scheme == "light"), name
        assert browser.evaluate(UNSAFE) == 0, "an address that no page means as a link"
        loaded = browser.evaluate(LOADED)
        assert len(loaded) > 3, name
        assert [url for url in loaded if not url.startswith(site.as_uri())] == [], name


def test_search_finds_pages_without_a_server(site: Path, browser: Browser) -> None:
    browser.complaints.clear()
    browser.open((site / "search.html").as_uri() + "?q=journal")
    found = awaited(browser, FOUND)
    assert any(href.startswith("guide/flows.html") for href in found), found
    assert browser.complaints == []


def test_search_shows_excerpts_from_a_server(site: Path, browser: Browser) -> None:
    pages = partial(SimpleHTTPRequestHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), pages) as server:
        Thread(target=server.serve_forever).start()
        try:
            browser.open(f"http://127.0.0.1:{server.server_port}/search.html?q=journal")
            assert "journal" in awaited(browser, EXCERPT).lower()
        finally:
            server.shutdown()


def awaited(browser: Browser, expression: str) -> Any:
    answer = browser.ask(
        "Runtime.evaluate",
        expression=expression,
        awaitPromise=True,
        returnByValue=True,
        timeout=PATIENCE_SECONDS * 1000,
    )
    return answer["result"]["value"]
