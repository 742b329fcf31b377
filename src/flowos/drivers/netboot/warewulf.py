"""Warewulf 4: nodes get an iPXE script by its name, which is a file in /etc/warewulf/ipxe.

Written from the manual of Warewulf 4.6, never tried with one.
"""

from flowos.drivers.netboot._netboot import Netboot
from flowos.drivers.netboot._shell import CHECK_NODES, ROOT, program

_NEXT = """\
if ! cmp -s "$root/$kernel/boot.ipxe" "$templates/flowos-$kernel.ipxe"; then
  echo "$0: first install -m 644 $root/$kernel/boot.ipxe $templates/flowos-$kernel.ipxe" >&2
  exit 1
fi
for node; do wwctl node set --yes --ipxe "flowos-$kernel" "$node"; done
"""


def next_boot(netboot: Netboot) -> str:
    about = (
        f"Sets what nodes boot next, in Warewulf: kernel {netboot.name}.\nusage: next-boot NODE..."
    )
    settings = {"kernel": netboot.name, "templates": "/etc/warewulf/ipxe"}
    return program(about, settings, f"{CHECK_NODES}{ROOT}{_NEXT}")
