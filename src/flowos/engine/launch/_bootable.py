"""What an environment that is booted cannot do: its guest is a machine of its own."""

from flowos.engine.launch._session import LaunchSession
from flowos.model import Environment, Launch, LaunchFailed


def check_bootable(launch: Launch, launcher: str, session: LaunchSession) -> None:
    """Raises LaunchFailed for ranks of a gang, and on another node than this machine."""
    if session.elsewhere:
        raise LaunchFailed(
            f"'{launch.argv[0]}': {launch.env.label} boots on this machine alone, not on nodes of "
            "a pool; use another runtime there"
        )
    if launch.ranks > 1 or launcher != "direct":
        refuse_ranks(launch.env)


def refuse_ranks(env: Environment) -> None:
    """Raises LaunchFailed for this environment, as it boots a machine of its own."""
    raise LaunchFailed(
        f"ranks of a gang: {env.label} boots a machine of its own; use another runtime for them"
    )
