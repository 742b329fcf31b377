"""What obstore says, as one line with a remedy. Its texts hold addresses, which hold secrets."""

import re
from collections.abc import Callable

from flowos._dataclasses import dataclass
from flowos.feeder._object_clouds import CLOUD_OF, WEB
from flowos.feeder._url import line_without_secrets
from flowos.model import FeedError

# Metadata services of clouds, for credentials: asked last, when nothing else was found.
_METADATA = ("169.254.169.254", "169.254.170.2", "metadata.google.internal", "fd00:ec2::254")

# Of those that a request itself is to blame for, these two are about the moment.
_PASSING_STATUS = frozenset({408, 429})
# Of those that a server is to blame for, these two are not: it will never know the request.
_UNKNOWN_REQUEST = frozenset({501, 505})
DENIED_STATUS = frozenset({401, 403})
_DENIED = frozenset({"PermissionDeniedError", "UnauthenticatedError"})
_TOO_FAR = 416  # range not satisfiable
_NO_SUCH_METHOD = 405


@dataclass(frozen=True, slots=True)
class _Said:
    """type: of the exception. status, code: what the server answered; kind: why none came."""

    scheme: str
    type: str
    text: str
    status: int
    code: str
    kind: str


def passes(why: Exception) -> bool:
    """May it go well the next time? Server errors, cut connections and timeouts may."""
    from obstore.exceptions import GenericError

    if isinstance(why, FileNotFoundError | PermissionError) or _wants_credentials(str(why)):
        return False
    if not isinstance(why, GenericError):
        return isinstance(why, OSError)
    said = _said(why, "")
    if said.status:
        return status_passes(said.status)
    return "redirect" not in said.text and "must be specified" not in said.text


def status_passes(status: int) -> bool:
    """Of an HTTP answer that is an error."""
    return status in _PASSING_STATUS or (status >= 500 and status not in _UNKNOWN_REQUEST)


def reason(why: Exception, scheme: str, timeout_seconds: float, tried_seconds: float) -> str:
    """One line, with the remedy where one is known; what passes was tried for so long: 0, once."""
    if isinstance(why, FeedError):
        return str(why)
    said = _said(why, scheme)
    cloud = CLOUD_OF[scheme]
    keys, public = (cloud.keys, cloud.public) if cloud else ("", "")
    remedy = f": check {keys}, or set {public} for what is public to all" if cloud else ""
    template = next((words for is_it, words in _KINDS if is_it(said)), "{text}")
    template += f", tried for {tried_seconds:.0f} seconds" if passes(why) and tried_seconds else ""
    return template.format(
        text=said.text,
        code=f" ({said.code})" if said.code else "",
        remedy=remedy,
        keys=keys,
        public=public,
        seconds=timeout_seconds,
    )


CHANGED = "it has changed since the data set was listed: list it again"

_KINDS: tuple[tuple[Callable[[_Said], bool], str], ...] = (
    (lambda said: said.code == "NoSuchBucket", "there is no such bucket"),
    (
        lambda said: _wants_credentials(said.text),
        "no credentials found: set {keys}, or {public} for what is public to all",
    ),
    (
        lambda said: said.status in DENIED_STATUS or said.type in _DENIED,
        "access denied{code}{remedy}",
    ),
    (
        lambda said: said.status == _NO_SUCH_METHOD and "performing HEAD" in said.text,
        "this server refuses HEAD requests, by which sizes are asked for",
    ),
    (lambda said: said.type in ("FileNotFoundError", "NotFoundError"), "it is not there"),
    (
        lambda said: "PROPFIND" in said.text,
        "this server does not list its files: name tar shards, as in train-{{000..099}}.tar",
    ),
    (lambda said: said.status == _TOO_FAR, CHANGED),
    (
        lambda said: "redirect" in said.text and said.scheme in WEB,
        "this server sends from one address to the next without an end",
    ),
    (lambda said: "redirect" in said.text, "the bucket is in another region: set AWS_REGION"),
    (lambda said: "must be specified" in said.text, "{text}: set {keys}"),
    (lambda said: said.kind == "Timeout", "no answer within {seconds:g} seconds"),
    (lambda said: said.kind == "Connect", "cannot connect: {text}"),
)


def _wants_credentials(text: str) -> bool:
    return any(place in text for place in _METADATA)


def _said(why: Exception, scheme: str) -> _Said:
    text = str(why)
    status = re.search(r"status code: (\d{3})", text)
    code = re.search(r"<Code>(\w+)</Code>", text)
    kind = re.search(r"\bkind: (\w+)", text)
    return _Said(
        scheme,
        type(why).__name__,
        _first_line(text) or type(why).__name__,
        int(status[1]) if status else 0,
        code[1] if code else "",
        kind[1] if kind else "",
    )


def _first_line(text: str) -> str:
    """Without an answer's body, without passwords and signatures, and without how long it took."""
    first = text.strip().partition("\n")[0].partition(": <")[0].strip()
    first = re.sub(
        r"^Generic \w+ error: |Error performing list request: | in [\d.]+[mµn]?s\b", "", first
    )
    return line_without_secrets(first)
