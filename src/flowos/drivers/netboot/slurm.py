"""Slurm: a kernel is a feature of node_features/helpers, which its controller has nodes boot.

With SlurmctldParameters=reboot_from_controller the RebootProgram runs on the controller, with the
nodes, and the features that they are to have. So nodes have no part in what they boot, and no
credentials; their helper says what they have booted.
"""

from flowos.drivers.netboot._netboot import ASKED, Netboot
from flowos.drivers.netboot._shell import ROOT, program

_HELPER_ABOUT = """\
Slurm's helper on nodes: says which kernel of `flowos kernel publish` this one has booted.
With a word, the kernel to boot next, it has nothing to do: the RebootProgram gets it, too."""
_HELPER = """\
[ $# = 0 ] || exit 0
tr ' ' '\\n' </proc/cmdline | sed -n "s/^$asked=//p"
"""

_REBOOT_ABOUT = """\
Slurm's RebootProgram, run by its controller: boots nodes into the kernel that is asked for.
usage: reboot NODES [FEATURES]
Slurm shows nothing of what it prints: what goes wrong stands in nodes/NODE.log."""
_REBOOT = """\
if [ $# = 0 ]; then
  echo "usage: $0 NODES [FEATURES]" >&2
  exit 2
fi
nodes=$(scontrol show hostnames "$1")
kernel=
for feature in $(echo "${2:-}" | tr -c 'A-Za-z0-9._\\n-' ' '); do
  case $feature in .*) continue ;; esac
  if [ -x "$root/$feature/next-boot" ]; then kernel=$feature; fi
done
boot() {
  if [ -n "$2" ] && [ -z "$kernel" ]; then
    echo "none of $2 is a kernel in $root: $1 boots what it booted before"
  fi
  if [ -n "$kernel" ]; then "$root/$kernel/next-boot" "$1"; fi
  "$(dirname "$(readlink -f "$0")")/power-cycle" "$1"
}
umask 022
mkdir -p "$root/nodes"
started=
for node in $nodes; do
  log="$root/nodes/$node.log"
  (: >"$log") || log=/dev/null
  boot "$node" "${2:-}" >"$log" 2>&1 &
  started="$started $!"
done
status=0
for each in $started; do wait "$each" || status=1; done
exit "$status"
"""


def helper() -> str:
    return program(_HELPER_ABOUT, {"asked": ASKED.replace(".", "[.]")}, _HELPER)


def reboot() -> str:
    return program(_REBOOT_ABOUT, {}, f"{ROOT}{_REBOOT}")


def helpers_conf(netboot: Netboot) -> str:
    """Its line in the helpers.conf of the cluster."""
    return f"Feature={netboot.name} Helper={netboot.helper}\n"


def slurm_conf(netboot: Netboot) -> str:
    """Lines of the cluster's slurm.conf. It takes one RebootProgram: any of its kernels has it."""
    return (
        "NodeFeaturesPlugins=node_features/helpers\n"
        "SlurmctldParameters=reboot_from_controller\n"
        f"RebootProgram={netboot.root.rstrip('/')}/{netboot.name}/reboot\n"
    )
