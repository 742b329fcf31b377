"""Which device a bitstream goes to."""

import pytest

from flowos.plan import DevicePicture, choose_device

COLD = DevicePicture(name="cold")
WARM = DevicePicture(name="warm", loaded="sha256:a", loaded_at=9.0)
OLD = DevicePicture(name="old", loaded="sha256:b", loaded_at=1.0)
NEW = DevicePicture(name="new", loaded="sha256:c", loaded_at=5.0)
BUSY = DevicePicture(name="busy", refused="in use by process 7", loaded="sha256:a")


@pytest.mark.parametrize(
    ("devices", "chosen", "why"),
    [
        ((COLD, WARM, OLD), "warm", "it has this bitstream already"),
        ((NEW, OLD, COLD, BUSY), "cold", "it is not configured"),
        ((NEW, OLD), "old", "it was configured longest ago"),
        ((BUSY, NEW), "new", "it is the only one that can"),
        ((BUSY,), "", "busy: in use by process 7"),
        ((), "", "there is no FPGA: name one in flowos.toml, [fpgas.NAME]"),
    ],
)
def test_what_is_warm_comes_first(
    devices: tuple[DevicePicture, ...], chosen: str, why: str
) -> None:
    assert choose_device(devices, "sha256:a") == (chosen, why)
