"""What an environment that is booted is refused for."""

from pathlib import Path, PurePath

import pytest

from flowos.engine.launch._bootable import check_bootable
from flowos.engine.launch._session import Elsewhere, LaunchSession
from flowos.model import Environment, Image, Launch, LaunchFailed

BOOTED = Environment(
    image=Image(form="squashfs", digest="sha256:0", source=PurePath("/a.sqfs")), runtime="qemu"
)
LAUNCH = Launch(argv=("uname", "-r"), env=BOOTED)


def test_on_a_node_of_a_pool_it_is_refused_by_name(tmp_path: Path) -> None:
    check_bootable(LAUNCH, "direct", LaunchSession())
    with pytest.raises(LaunchFailed) as refused:
        check_bootable(LAUNCH, "direct", LaunchSession(Elsewhere(lambda: tmp_path, cpus=1)))
    assert str(refused.value) == (
        f"'uname': {BOOTED.label} boots on this machine alone, not on nodes of a pool; "
        "use another runtime there"
    )
