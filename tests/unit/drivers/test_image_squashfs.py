"""What a squashfs holds, as unsquashfs lists it."""

import pytest

from flowos.drivers.images import squashfs

LISTED = """\
crw-r--r-- root/root            1,  3 2026-11-29 02:02 /null
drwxr-xr-x root/root                 3 2026-11-29 02:02 /lib
lrwxrwxrwx root/root                 8 2026-11-29 02:02 /sbin -> usr/sbin
drwxr-xr-x root/root                27 2026-11-29 02:02 /usr
drwxr-xr-x root/root                27 2026-11-29 02:02 /usr/sbin
lrwxrwxrwx root/root                20 2026-11-29 02:02 /usr/sbin/init -> /lib/systemd/systemd
lrwxrwxrwx root/root                20 2026-11-29 02:02 /usr/sbin/self -> self
-rwxr-xr-x 0/0                      12 2026-11-29 02:02 /usr/sbin/a program
lrwxrwxrwx 0/0                      12 2026-11-29 02:02 /usr/sbin/up -> ../.././usr/sbin/a program
"""


@pytest.mark.parametrize(
    ("path", "mode"),
    [
        ("/lib", "drwxr-xr-x"),
        ("/null", "crw-r--r--"),
        ("/sbin/", "drwxr-xr-x"),
        ("/usr/sbin/a program", "-rwxr-xr-x"),
        ("/sbin/up", "-rwxr-xr-x"),
        ("/sbin/init", ""),
        ("/sbin/self", ""),
        ("/sbin/in", ""),
        ("/no/sbin", ""),
    ],
)
def test_links_are_followed_inside_an_image(path: str, mode: str) -> None:
    assert squashfs.mode_of(squashfs.read_listing(LISTED), path) == mode
