"""A tool of a node's own, run there for what only that node sees."""

from flowos.engine import Node
from flowos.model import BARE, Launch, Outcome

_LIMIT_SECONDS = 60.0


def outcome_of(node: Node, *words: str) -> Outcome:
    """Run it there and wait. Raises LaunchFailed if it cannot be started."""
    variables = node.variables(BARE)
    return node.run(Launch(argv=words, variables=variables, limit_seconds=_LIMIT_SECONDS))
