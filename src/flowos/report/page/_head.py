"""The head element of every page."""

from flowos.report.page._markup import Markup, tag
from flowos.report.page._style import CSS, DARK, LIGHT

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""A page loads nothing and runs nothing, whatever external text it contains."""


def head(title: str) -> Markup:
    theme = ((LIGHT, "light"), (DARK, "dark"))
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
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
    )
