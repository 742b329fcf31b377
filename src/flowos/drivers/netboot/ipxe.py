"""iPXE: the script that boots a node, and which of several scripts a node gets."""

from flowos.drivers.netboot._netboot import INITRD, KERNEL, Netboot, address, kernel_words
from flowos.drivers.netboot._shell import CHECK_NODES, ROOT, program

_NEXT = """\
umask 022
mkdir -p "$root/nodes"
for node; do
  printf '#!ipxe\\nchain ../%s/boot.ipxe\\n' "$kernel" >"$root/nodes/.$node.$$"
  mv "$root/nodes/.$node.$$" "$root/nodes/$node.ipxe"
done
"""


def boot_script(netboot: Netboot) -> str:
    """Loads kernel and initrd; `initrd=` is for kernels that EFI starts."""
    return (
        "#!ipxe\n"
        f"# Linux {netboot.release}, published as {netboot.name} by `flowos kernel publish`\n"
        f"kernel {address(netboot, KERNEL)} initrd={INITRD} {kernel_words(netboot)}\n"
        f"initrd {address(netboot, INITRD)}\n"
        "boot\n"
    )


def start_script(netboot: Netboot) -> str:
    """What DHCP names: the kernel that was chosen for the node, or else this one."""
    return (
        "#!ipxe\n"
        f"# The kernel that next-boot chose for this node, or else {netboot.name}\n"
        "chain ../nodes/${hostname}.ipxe || chain boot.ipxe\n"
    )


def next_boot(netboot: Netboot) -> str:
    about = f"Sets what nodes boot next: kernel {netboot.name}.\nusage: next-boot NODE..."
    return program(about, {"kernel": netboot.name}, f"{CHECK_NODES}{ROOT}{_NEXT}")
