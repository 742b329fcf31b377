"""An image that has a FlowOS of its own, which tasks in it would load."""

import re
from pathlib import Path

import pytest

import flowos as fo
from flowos.engine import here
from flowos.model import Environment, LaunchFailed

from .conftest import ready_or_skip


@fo.task
def which() -> fo.str_:
    import flowos

    return str(flowos.__file__)


def test_an_image_with_another_flowos_is_refused_with_both_versions(
    debian: Path, tmp_path: Path
) -> None:
    with ready_or_skip(Environment(image=here().image_at(debian), runtime="auto")):
        pass
    tmp_path.chmod(0o755)
    other = tmp_path / "flowos"
    other.mkdir()
    (other / "__init__.py").write_text("__version__ = '9.9.9'\n")
    inside = "/usr/lib/python3/dist-packages/flowos"
    env = fo.environment(debian, binds=[(other, inside)])
    said = (
        rf"^task 'which': image {re.escape(debian.name)}: it has FlowOS 9\.9\.9, this is FlowOS "
        rf"{re.escape(fo.__version__)}, and Python tasks need the same on both sides, or none in"
    )
    with fo.slice(fo.flow_output(which()), env) as s, pytest.raises(LaunchFailed, match=said):
        s.run()
