"""The command line of `flowos measure` that a remedy shows: it measures where it was measured."""

import shlex

from flowos.model import Argv, Deployment


def measure_command(*options: str, of_pool: Argv = ()) -> str:
    """of_pool: options that name nodes of a pool; () for this machine."""
    return shlex.join(("flowos", "measure", *options, *of_pool))


def pool_words(pool: str, nodes: int) -> Argv:
    return ("--pool", pool, "--nodes", str(nodes))


def deployment_words(deployment: Deployment | None) -> Argv:
    """As many nodes of the same pool; () for this machine."""
    return () if deployment is None else pool_words(deployment.pool, len(deployment.nodes))
