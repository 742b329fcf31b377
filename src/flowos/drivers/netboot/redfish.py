"""Redfish: a node's BMC has it boot from the network once, and power cycles it.

The properties are those of the schema ComputerSystem. Never tried with a BMC of hardware.
"""

from flowos.drivers.netboot._netboot import Netboot
from flowos.drivers.netboot._shell import CHECK_NODES, program

_ABOUT = """\
Boots nodes from the network once, by their BMCs (Redfish).
usage: power-cycle NODE...
curl reads redfish.curl of the folder below, which should be readable by Slurm's user alone:
user = "NAME:PASSWORD" or netrc-file = "FILE", and cacert = "FILE"."""

_CYCLE = """\
ask() { # METHOD PATH [BODY]
  curl --config "$settings/redfish.curl" --silent --show-error --fail --max-time 60 \\
    --request "$1" --header 'Content-Type: application/json' ${3:+--data-raw "$3"} \\
    "$before$node$after$system$2"
}
for node; do
  ask PATCH '' \\
    '{"Boot": {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}}' \\
    >/dev/null
  state=$(ask GET '')
  case $state in
    *'"PowerState":"Off"'* | *'"PowerState": "Off"'*) reset=On ;;
    *) reset=ForceRestart ;;
  esac
  ask POST /Actions/ComputerSystem.Reset "{\\"ResetType\\": \\"$reset\\"}" >/dev/null
done
"""


def power_cycle(netboot: Netboot) -> str:
    before, _, after = netboot.redfish.partition("{node}")
    given = {"before": before, "after": after.rstrip("/"), "system": netboot.system}
    given["settings"] = netboot.settings.rstrip("/")
    return program(_ABOUT, given, f"{CHECK_NODES}{_CYCLE}")
