"""What runs on another node to make an image ready there: only that node knows what it has.

`main` reads a question from a file of its run folder and answers with one line of JSON. What it
made ready is there until it is ended; a line more says each time that the server of the image has
ended, and one that the image, mounted anew, is shown again.
"""

import json
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

from flowos._dataclasses import replace
from flowos.drivers import RUNTIMES, variables_inside
from flowos.engine.environments._devices import gpu_devices
from flowos.engine.environments._image_there import Unseen, image_there
from flowos.engine.environments._runtimes import Runtimes
from flowos.engine.environments._tools import boot_id
from flowos.engine.launch._same_flowos import unlike
from flowos.engine.launch._session import LaunchSession
from flowos.model import (
    Environment,
    EnvironmentRefused,
    FlowosError,
    Launch,
    NotStarted,
    RuntimeFailed,
    from_plain,
    to_plain,
)

_LIMIT_SECONDS = 60.0
_NOT_EXECUTABLE = 126
_PACE_SECONDS = 1.0
"""A server that ends again and again is started no more often."""
AgentAnswer = dict[str, Any]


def main(question: str) -> None:
    """Answer the question in this file. TERM ends it, and undoes what was made."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    asked = json.loads(Path(question).read_text())
    if there := unlike(asked.pop("flowos")):
        _say({"unlike": there})
        return
    runtimes = Runtimes(LaunchSession())
    with ExitStack() as held:
        held.callback(runtimes.session.folders.remove)
        try:
            answer = _ANSWERS[asked.pop("what")](held, runtimes, **asked)
        except Unseen:
            answer = {"unseen": True}
        except FlowosError as error:
            answer = {"refused": str(error)}
        _say(answer)
        if answer.get("stays"):
            _stay(runtimes.session)


def _say(answer: AgentAnswer) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _stay(session: LaunchSession) -> NoReturn:
    """Nothing asks here before a launch, so what has ended is mounted anew at once."""
    server = next(iter(session.servers.values()), None)
    while server is None:
        signal.pause()
    shows = server()
    while True:
        began = time.monotonic()
        shows.wait()
        _say({"ended": True})
        time.sleep(max(0.0, began + _PACE_SECONDS - time.monotonic()))
        shows = server()
        if not shows.done:
            _say({"shown": True})


def _ready(held: ExitStack, runtimes: Runtimes, env: Any, copy: str, scratch: str) -> AgentAnswer:
    from flowos.engine.environments._image_ready import image_ready

    asked = from_plain(Environment, env)
    assert asked.image is not None
    image, notes, verified = image_there(asked.image, copy, scratch)
    asked = replace(asked, image=image)
    ready, more, undo, facts = image_ready(asked, image, runtimes, seen=verified)
    held.callback(undo)
    _try_to_enter(ready, runtimes)
    variants = RUNTIMES[ready.runtime].variants(facts)
    return {
        "stays": True,
        "env": to_plain(ready),
        "facts": to_plain(facts),
        "way": variants.index(runtimes.entering(ready)),
        "notes": [*notes, *more],
    }


def _try_to_enter(env: Environment, runtimes: Runtimes) -> None:
    """Before anything of a person runs in it. Raises EnvironmentRefused if nothing can."""
    variables = variables_inside(env, own=(), host={}, task=(), inherit=False)
    launch = Launch(argv=("true",), env=env, variables=variables, limit_seconds=_LIMIT_SECONDS)
    end = runtimes.prepare(launch).run().end
    if isinstance(end, RuntimeFailed):
        raise EnvironmentRefused(f"{env.label}: {end.reason}")
    if isinstance(end, NotStarted) and end.code == _NOT_EXECUTABLE:
        raise EnvironmentRefused(f"{env.label}: {end.reason}")


def _hold(held: ExitStack, runtimes: Runtimes, env: Any) -> AgentAnswer:
    """A container for ranks, which their flowos-init joins."""
    from flowos.engine.launch._shared_container import HOLD, await_held

    holder = runtimes.prepare(Launch(argv=HOLD, env=from_plain(Environment, env))).start()
    held.callback(holder.wait)
    held.callback(holder.stop, 0.0)
    return {"stays": True, "enter": f"{await_held(holder).decode()} {boot_id()}\n"}


def _devices(*_: object) -> AgentAnswer:
    return {"devices": gpu_devices()}


def _facts(_: ExitStack, runtimes: Runtimes) -> AgentAnswer:
    return {"facts": to_plain(runtimes.facts())}


def _mpis(_: ExitStack, runtimes: Runtimes, env: Any, path: str) -> AgentAnswer:
    from flowos.engine.environments._mpi import MpiCheck

    found = MpiCheck(runtimes).mpis_inside(from_plain(Environment, env), path)
    return {"mpis": [(mpi.family, mpi.version, mpi.manager) for mpi in found]}


_ANSWERS: dict[str, Callable[..., AgentAnswer]] = {
    "ready": _ready,
    "devices": _devices,
    "facts": _facts,
    "mpis": _mpis,
    "hold": _hold,
}
