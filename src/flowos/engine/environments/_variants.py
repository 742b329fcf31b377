"""The runtimes as they are used on this node: each adapted to it once it has been tried."""

from flowos.drivers import Runtime
from flowos.model import Form

_found: dict[tuple[str, Form], Runtime] = {}


def note_variant(runtime: str, form: Form, variant: Runtime) -> None:
    _found[runtime, form] = variant


def variant_found(runtime: str, form: Form) -> Runtime | None:
    """None: it was not tried yet, or does not work here."""
    return _found.get((runtime, form))
