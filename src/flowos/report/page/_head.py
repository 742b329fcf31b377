"""The head element of every page, and what stands around pages that are served."""

from base64 import b64encode
from hashlib import sha256

from flowos._dataclasses import dataclass
from flowos.report.page._markup import Markup, tag
from flowos.report.page._style import CSS, DARK, LIGHT

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""A file loads nothing and runs nothing but a script of ours, whatever external text it contains:
that one is allowed by its digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What a page has around it. head: more of its head; bar: above everything; runs: whether it
    may load scripts, within the policy that its server states; script: where the page's own is."""

    head: Markup | None = None
    bar: Markup | None = None
    runs: bool = False
    script: str = ""


FILE = Frame()
"""A page that is a file of its own."""


def document(
    title: str, *body: Markup | None, skip: str = "", frame: Frame = FILE, script: str = ""
) -> str:
    """A whole page. skip: words of the link to its main part. script: what it runs."""
    link = tag("a", skip, href="#main", class_="skip") if skip else None
    run = _run(script, frame) if script else None
    whole = tag("body", link, frame.bar, *body, run)
    page = tag("html", _head(title, frame, script), whole, lang="en")
    return f"<!doctype html>\n{page}\n"


def _run(script: str, frame: Frame) -> Markup:
    return tag("script", src=frame.script) if frame.script else tag("script", Markup(script))


def _policy(script: str) -> str:
    if not script:
        return _POLICY
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return f"{_POLICY}; script-src 'sha256-{digest}'"


def _head(title: str, frame: Frame, script: str) -> Markup:
    theme = ((LIGHT, "light"), (DARK, "dark"))
    policy = tag("meta", http_equiv="Content-Security-Policy", content=_policy(script))
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        None if frame.runs else policy,
        *(
            tag(
                "meta",
                name="theme-color",
                content=colours["paper"],
                media=f"(prefers-color-scheme: {scheme})",
            )
            for colours, scheme in theme
        ),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Markup(CSS)),
        frame.head,
    )
