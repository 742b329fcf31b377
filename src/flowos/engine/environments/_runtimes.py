"""The runtimes of a node as they are used there: each adapted to it once it has been tried."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Unpack

from flowos.drivers import Runtime, runtime_named
from flowos.engine.launch._prepared import LaunchKeywords, PreparedLaunch, prepare
from flowos.engine.launch._session import LaunchSession
from flowos.model import Environment, Form, Launch

if TYPE_CHECKING:
    from flowos.model import Facts  # slow to load, and a bare launch asks for none


class Runtimes:
    """Methods may be called from any thread. session: of the launches that try them."""

    def __init__(self, session: LaunchSession) -> None:
        self.session = session
        self._found: dict[tuple[str, Form], Runtime] = {}

    def facts(self, *, anew: bool = False, only: Collection[str] | None = None) -> "Facts":
        """What the node has for entering images, and what trying its runtimes said.

        only: names of runtimes; others are not tried for this; else all are. anew: forget what is
        kept of those.
        """
        from flowos.engine.environments._usability import runtime_facts  # slow to import

        facts, found = runtime_facts(self.session, anew=anew, only=only)
        self._found.update(found)
        return facts

    def entering(self, env: Environment) -> Runtime:
        """What enters this environment. Raises LaunchFailed if there is no such runtime."""
        if env.image is None:
            return runtime_named(env.runtime)
        place = env.runtime, env.image.form
        if place not in self._found:
            self.facts(only=(env.runtime,))
        return self._found.get(place) or runtime_named(env.runtime)

    def prepare(self, launch: Launch, **options: Unpack[LaunchKeywords]) -> PreparedLaunch:
        """Check the launch and make its run folder. Options as for `launch._prepared.prepare`."""
        return prepare(launch, self.entering(launch.env), self.session, **options)
