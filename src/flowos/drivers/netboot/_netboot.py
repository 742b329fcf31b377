"""What nodes boot: a kernel of the library, published in a folder that an HTTP server shows.

All that a person gives comes into scripts, so nothing is taken that would have to be quoted there.
"""

import re
from typing import Literal

from flowos._dataclasses import dataclass
from flowos.model import UsageError

BootBy = Literal["ipxe", "warewulf", "openchami"]

KERNEL, INITRD = "vmlinuz", "initrd.img"
ASKED = "flowos.kernel"
"""Parameter of the kernel's command line that names it, so that a node can say what it booted."""

_NAME = r"(?!(nodes|xnames)$).+"
"""--out has scripts and names of nodes under these."""
_PARAMETER = r"[A-Za-z0-9_.,:=/@%+-]+"
_OWN = (ASKED, "init", "initrd", "rdinit")
_PORT = r"(6553[0-5]|655[0-2]\d|65[0-4]\d\d|6[0-4]\d{3}|[1-5]\d{4}|[1-9]\d{0,3})"
_URL = rf"https?://[A-Za-z0-9.-]+(:{_PORT})?(/[A-Za-z0-9._~/-]*)?"
_OF_NODES = r"https?://[A-Za-z0-9.:/_-]*\{node\}[A-Za-z0-9.:/_-]*"
_PATH = r"/[A-Za-z0-9._/+@:=-]*"
_SYSTEM = r"/redfish/v1/Systems/[A-Za-z0-9._-]+"


@dataclass(frozen=True, kw_only=True)
class Netboot:
    """root: the folder that is shown, on the machine of Slurm's controller; url: its address.
    init: the image's first process, "" for /sbin/init. helper: where nodes have Slurm's helper.
    bss: of OpenCHAMI's boot script service. redfish: of a node's BMC, with {node} for its name.
    settings: the folder of what curl reads for those, on the machine of Slurm's controller.
    """

    name: str
    release: str
    root: str
    url: str = ""
    parameters: tuple[str, ...] = ()
    init: str = ""
    helper: str = "/usr/local/sbin/flowos-kernel"
    boot_by: BootBy = "ipxe"
    bss: str = ""
    redfish: str = ""
    system: str = "/redfish/v1/Systems/1"
    settings: str = "/etc/flowos"


def check_netboot(netboot: Netboot) -> None:
    """Raises UsageError for what a script, an address or a kernel's command line cannot hold."""
    _check("kernel", netboot.name, _NAME, "another name, as --out has something else under it")
    for word in netboot.parameters:
        _check("parameter", word, _PARAMETER, "letters, digits and _.,:=/@%+-, without quotes")
        if word.partition("=")[0] in _OWN or word == "--":
            raise UsageError(f"parameter {word!r}: `flowos kernel publish` writes it itself")
    paths = {"--out": netboot.root, "--helper": netboot.helper, "--settings": netboot.settings}
    for option, path in paths.items():
        _check(option, path, _PATH, "an absolute path of letters, digits and ._/+@:=-")
    if netboot.init:
        _check("--init", netboot.init, _PATH, "a path in the image, as /usr/lib/systemd/systemd")
    if netboot.url:
        _check("--url", netboot.url, _URL, "an address as http://head/boot")
    if netboot.bss:
        _check("--bss", netboot.bss, _URL, "an address as https://head:8443")
    if netboot.redfish:
        _check("--redfish", netboot.redfish, _OF_NODES, "an address as https://{node}-bmc")
    _check("--system", netboot.system, _SYSTEM, "as /redfish/v1/Systems/1")
    _check_services(netboot)


def _check_services(netboot: Netboot) -> None:
    if netboot.boot_by != "ipxe" and not netboot.url:
        raise UsageError(f"--boot-by {netboot.boot_by} needs --url: where nodes find the files")
    if netboot.boot_by == "openchami" and not netboot.bss:
        raise UsageError("--boot-by openchami needs --bss, as https://head:8443")
    if netboot.boot_by != "openchami" and netboot.bss:
        raise UsageError("--bss is of --boot-by openchami: give that too, or leave it out")
    if netboot.system != Netboot.system and not netboot.redfish:
        raise UsageError("--system is of the BMC that --redfish names: give that too")


def kernel_words(netboot: Netboot) -> str:
    """The kernel's command line."""
    init = (f"init={netboot.init}",) * bool(netboot.init)
    return " ".join((f"{ASKED}={netboot.name}", *init, *netboot.parameters))


def address(netboot: Netboot, file: str) -> str:
    """Of one of its files; without a URL as the boot script next to it finds it."""
    return f"{netboot.url.rstrip('/')}/{netboot.name}/{file}" if netboot.url else file


def _check(option: str, value: str, pattern: str, expected: str) -> None:
    if not re.fullmatch(pattern, value):
        raise UsageError(f"{option} {value!r:.120}: expected {expected}")
