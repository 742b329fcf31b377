"""Helpers shared by the runtimes that enter an image."""

import re
from collections.abc import Iterable

from flowos.drivers._base import Reason
from flowos.model import Argv, Facts, Form, Image, Launch, LaunchFailed, Tool, Tried


def not_installed(program: str, remedy: str) -> Reason:
    return Reason(code="no-program", text=f"{program} is not installed", remedy=remedy)


def image_to_enter(launch: Launch, runtime: str, forms: Iterable[Form]) -> Image:
    image = launch.env.image
    if image is None:
        raise LaunchFailed(f"runtime {runtime}: it enters images; name one, or use bare")
    if image.form not in forms:
        raise LaunchFailed(
            f"image {image.source}: {runtime} enters {' or '.join(forms)}, no {image.form}"
        )
    return image


def refuse_devices(launch: Launch, runtime: str) -> None:
    if launch.env.devices:
        raise LaunchFailed(
            f"device {launch.env.devices[0]}: {runtime} knows no CDI; "
            "it must have been turned into binds and variables before"
        )


def refuse_words_not_utf8(inner: Argv, runtime: str) -> None:
    """Raises LaunchFailed for words that are not UTF-8.

    Programs in Go write the command line as JSON, where such bytes become U+FFFD.
    """
    for word in inner:
        if any("\ud800" <= c <= "\udfff" for c in word):
            raise LaunchFailed(
                f"argument {word!a}: {runtime} takes only UTF-8; use another runtime"
            )


def tried(facts: Facts, name: str) -> Tried | None:
    return next((each for each in facts.tried if each.name == name), None)


def works(facts: Facts, name: str) -> bool:
    """Whether the trial of this name worked; True if it was not tried."""
    found = tried(facts, name)
    return found is None or found.works


def enters(facts: Facts, runtime: str, form: Form, otherwise: bool = True) -> bool:
    """Whether entering this form worked; `otherwise` if it was not tried."""
    found = tried(facts, f"{runtime} {form}")
    return otherwise if found is None else found.works


def reasons_against(facts: Facts, runtime: str, conditions: Iterable[str]) -> tuple[Reason, ...]:
    """Reasons against an installed runtime; empty if entering any form worked.

    conditions: other trials that it depends on, used if the runtime itself was not tried.
    """
    attempts = [t for t in facts.tried if t.name.partition(" ")[0] == runtime]
    if any(t.works for t in attempts):
        return ()
    from flowos.drivers._error_translation import explain  # of what went wrong

    asked = attempts or [t for name in conditions if (t := tried(facts, name))]
    found: dict[str, Reason] = {}
    for reason in (explain(runtime, t.says) for t in asked if not t.works):
        found.setdefault(reason.code, reason)
    return tuple(found.values())


def version_of(tool: Tool) -> tuple[int, ...]:
    """Version as numbers for comparison; empty if unknown."""
    found = re.search(r"\d+(?:\.\d+)+", tool.version)
    return tuple(map(int, found[0].split("."))) if found else ()
