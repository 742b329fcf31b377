"""Files by which an administrator has nodes boot a kernel with an image: texts, and no effects."""

from flowos.drivers.netboot import ipxe, openchami, redfish, slurm, warewulf
from flowos.drivers.netboot._netboot import INITRD, KERNEL, BootBy, Netboot, check_netboot

__all__ = ["INITRD", "KERNEL", "BootBy", "Netboot", "check_netboot", "texts"]

_NEXT_BOOT = {
    "ipxe": ipxe.next_boot,
    "warewulf": warewulf.next_boot,
    "openchami": openchami.next_boot,
}


def texts(netboot: Netboot) -> dict[str, str]:
    """Name -> text. Those that begin with #!/bin/sh are programs."""
    found = {
        "boot.ipxe": ipxe.boot_script(netboot),
        "next-boot": _NEXT_BOOT[netboot.boot_by](netboot),
        "helper": slurm.helper(),
        "helpers.conf": slurm.helpers_conf(netboot),
    }
    if netboot.boot_by == "ipxe":
        found["start.ipxe"] = ipxe.start_script(netboot)
    if netboot.redfish:
        found["power-cycle"] = redfish.power_cycle(netboot)
        found["reboot"] = slurm.reboot()
        found["slurm.conf"] = slurm.slurm_conf(netboot)
    return found
