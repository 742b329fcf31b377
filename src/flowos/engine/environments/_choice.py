"""Which runtime enters an image here: the one requested, or the first of the table that can."""

from collections.abc import Sequence

from flowos._dataclasses import replace
from flowos.drivers import BOOTING, RUNTIMES, Reason
from flowos.engine.environments._devices import Devices
from flowos.engine.environments._runtimes import Runtimes
from flowos.model import Environment, EnvironmentRefused, Facts, Form, Image, Launch, LaunchFailed

_ENTERING = tuple(name for name in RUNTIMES if name not in {"bare", *BOOTING})
_FIXED = frozenset({"form", "no-program", "refused"})
"""Reasons that trying again cannot change."""


def choose_runtime(
    runtimes: Runtimes, env: Environment, image: Image, devices: Devices
) -> tuple[str, Form, Facts]:
    """The runtime's name, the form in which it enters the image, and what the node has for it.

    Raises EnvironmentRefused if none can.
    """
    requested = env.runtime
    if requested not in ("auto", *RUNTIMES):
        known = ", ".join(["auto", *RUNTIMES])
        raise EnvironmentRefused(f"unknown runtime {requested!r}; known are {known}")
    if requested == "bare":
        raise EnvironmentRefused(
            f"image {image.source}: the bare runtime enters no image; name another"
        )
    names = _ENTERING if requested == "auto" else (requested,)
    found = _first_able(runtimes, names, env, image, devices)
    if isinstance(found, list) and any(reason.code not in _FIXED for _, reason in found):
        runtimes.facts(anew=True, only=names)  # what was kept may have been mended meanwhile
        found = _first_able(runtimes, names, env, image, devices)
    if isinstance(found, tuple):
        return found
    why = "; ".join(f"{name}: {_in_words(reason)}" for name, reason in found)
    others = f"; {_others(runtimes, env, image, devices)}" if requested != "auto" else ""
    raise EnvironmentRefused(f"image {image.source}: cannot be entered by {why}{others}")


def _first_able(
    runtimes: Runtimes, names: Sequence[str], env: Environment, image: Image, devices: Devices
) -> tuple[str, Form, Facts] | list[tuple[str, Reason]]:
    """Or why each of them cannot."""
    complaints = []
    for name in names:
        facts = runtimes.facts(only=(name,))
        found = _form_or_complaint(runtimes, facts, name, env, image, devices)
        if not isinstance(found, Reason):
            return name, found, facts
        complaints.append((name, found))
    return complaints


def _form_or_complaint(
    runtimes: Runtimes, facts: Facts, name: str, env: Environment, image: Image, devices: Devices
) -> Form | Reason:
    for reason in RUNTIMES[name].usable(facts):
        return reason
    form = _form(name, image, facts)
    return (
        form
        if isinstance(form, Reason)
        else _refusal(runtimes, name, form, env, image, devices) or form
    )


def _form(name: str, image: Image, facts: Facts) -> Form | Reason:
    """A squashfs can be unpacked to a folder."""
    forms = RUNTIMES[name].forms(facts)
    if image.form in forms:
        return image.form
    if image.form == "squashfs" and "folder" in forms:
        return "folder"
    able = " and ".join(forms) or "nothing"
    remedy = "flowos image import makes a squashfs of it" if image.form != "folder" else ""
    return Reason(code="form", text=f"it enters {able} here, no {image.form}", remedy=remedy)


def _refusal(
    runtimes: Runtimes, name: str, form: Form, env: Environment, image: Image, devices: Devices
) -> Reason | None:
    """What its command line would be refused for: a bind that it cannot make, or a device."""
    runtime, some_run = RUNTIMES[name], runtimes.session.folder() / "0"
    entered = runtime.entered(replace(image, form=form), some_run)
    given = devices.given_to(replace(env, image=entered, runtime=name), runtimes)
    try:
        runtime.wrap(("true",), Launch(argv=("true",), env=given), some_run)
    except LaunchFailed as error:
        return Reason(code="refused", text=str(error))
    return None


def _others(runtimes: Runtimes, env: Environment, image: Image, devices: Devices) -> str:
    facts = runtimes.facts(only=_ENTERING)
    found = (
        (name, _form_or_complaint(runtimes, facts, name, env, image, devices)) for name in _ENTERING
    )
    able = [name for name, form in found if not isinstance(form, Reason)]
    return f"it can be by {', '.join(able)}" if able else "no other runtime here can"


def _in_words(reason: Reason) -> str:
    return f"{reason.text} ({reason.remedy})" if reason.remedy else reason.text
