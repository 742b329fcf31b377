"""OpenCHAMI: its boot script service (BSS) keeps kernel, initrd and parameters of each host.

Written from the documentation of BSS, never tried with one.
"""

import json

from flowos.drivers.netboot._netboot import INITRD, KERNEL, Netboot, address, kernel_words
from flowos.drivers.netboot._shell import CHECK_NODES, ROOT, program

_ABOUT = """\
Sets what nodes boot next, in OpenCHAMI: kernel {name}.
usage: next-boot NODE...
curl reads bss.curl of the folder below: oauth2-bearer = "TOKEN", and cacert = "FILE".
A line `NODE XNAME` of xnames, in the folder above this one, names the host; else NODE does."""

_NEXT = """\
for node; do
  host=
  if [ -e "$root/xnames" ]; then
    host=$(awk -v node="$node" '$1 == node && $2 ~ /^[A-Za-z0-9._-]+$/ { print $2; exit }' \\
      "$root/xnames")
  fi
  curl --config "$settings/bss.curl" --silent --show-error --fail --max-time 60 \\
    --output /dev/null --request PUT --header 'Content-Type: application/json' \\
    --data-raw "{\\"hosts\\": [\\"${host:-$node}\\"], $boot}" "$bss/boot/v1/bootparameters"
done
"""


def next_boot(netboot: Netboot) -> str:
    boot = {
        "kernel": address(netboot, KERNEL),
        "initrd": address(netboot, INITRD),
        "params": f"initrd={INITRD} {kernel_words(netboot)}",
    }
    given = {"bss": netboot.bss.rstrip("/"), "boot": json.dumps(boot)[1:-1]}
    given["settings"] = netboot.settings.rstrip("/")
    return program(_ABOUT.format(name=netboot.name), given, f"{CHECK_NODES}{ROOT}{_NEXT}")
