"""Which requests a server of pages answers: decisions on what a client sent, without effects.

Pages are for one person. Their address holds a token once; then a cookie stands for it. Pages of
strangers in the same browser can neither read ours (no cookie is sent: SameSite=Strict) nor give
their own name to our address (DNS rebinding: the host is checked). No request changes anything.
"""

import re
from collections.abc import Sequence
from hmac import compare_digest
from urllib.parse import parse_qsl, urlsplit

from flowos._dataclasses import dataclass

_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
"""With any port: one that ssh forwards has another number on the other side."""

POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """What a client asks for. version: of what it has already, "" if nothing."""

    path: str
    query: tuple[tuple[str, str], ...] = ()
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAnswer:
    """body: empty if the client has this version already (304)."""

    body: bytes = b""
    status: int = 200
    kind: str = "text/html; charset=utf-8"
    version: str = ""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PageKeys:
    """token: of the address; session: what the cookie holds instead."""

    token: str
    session: str
    cookie: str


def refused(hosts: Sequence[str]) -> PageAnswer | None:
    """The answer to a request with these Host headers, unless it comes to us by a name of ours."""
    if len(hosts) == 1 and _HOST.fullmatch(hosts[0].strip()):
        return None
    return plain(421, "flowos serve answers to 127.0.0.1 and localhost alone.")


def admitted(
    target: str, cookies: Sequence[str], keys: PageKeys, *, from_elsewhere: bool = False
) -> PageRequest | PageAnswer:
    """The request, or what is answered to one without the cookie.

    target: of the request line. from_elsewhere: a link on another site was followed: a browser
    sends no cookie with the redirect then, but does when the page leads there itself.
    """
    try:
        parts = urlsplit(target)
        query = tuple(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=20))
    except ValueError:
        return plain(400, "This address cannot be read.")
    if any(name == "token" and _same(value, keys.token) for name, value in query):
        return _logged_in(keys, from_elsewhere=from_elsewhere)
    if not any(_same(value, keys.session) for value in _values(cookies, keys.cookie)):
        words = "Open the address that flowos serve printed: it has the token that is missing here."
        return plain(403, words)
    return PageRequest(path=parts.path, query=query)


def _logged_in(keys: PageKeys, *, from_elsewhere: bool) -> PageAnswer:
    onward = ("Refresh", "0; url=/") if from_elsewhere else ("Location", "/")
    cookie = f"{keys.cookie}={keys.session}; Path=/; HttpOnly; SameSite=Strict"
    return PageAnswer(
        status=200 if from_elsewhere else 303,
        body=b"Opening FlowOS.\n",
        kind="text/plain; charset=utf-8",
        headers=(onward, ("Set-Cookie", cookie)),
    )


def _values(cookies: Sequence[str], name: str) -> list[str]:
    """Whatever other servers of this machine set: cookies know no ports."""
    pairs = (each.partition("=") for text in cookies for each in text.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]


def _same(given: str, secret: str) -> bool:
    """In a time that does not depend on how much of it is right."""
    return compare_digest(given.encode(errors="replace"), secret.encode())


def plain(status: int, words: str) -> PageAnswer:
    return PageAnswer(status=status, body=f"{words}\n".encode(), kind="text/plain; charset=utf-8")


def headers_of(answer: PageAnswer) -> list[tuple[str, str]]:
    """All headers: no answer is stored, framed or passed on, and no other script runs."""
    found = []
    if answer.status != 304:
        found = [("Content-Type", answer.kind), ("Content-Length", str(len(answer.body)))]
    if answer.version:
        found.append(("ETag", f'"{answer.version}"'))
    return [
        *found,
        ("Cache-Control", "no-store"),
        ("Content-Security-Policy", POLICY),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Content-Type-Options", "nosniff"),
        *answer.headers,
    ]
