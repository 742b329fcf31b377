"""Rootless Podman: an unpacked folder as `--rootfs`, under a temporary overlay.

Tested with 4.3.1 and crun 1.8.1, runc 1.1.5 (Debian 12).

Why a folder and no OCI archive: both start in 0.11 s, but an image store contains files of the
subordinate ids, which an ordinary user cannot remove without Podman, and with keep-id Podman copies
every layer again. Other runtimes enter the same unpacked folder. Without `:O` Podman would write
into the folder, even with --read-only. A squashfs behind squashfuse does not work: Podman creates
/etc/mtab in its overlay, and there /etc belongs to `nobody`.

Podman's own files (`--root`, `--runroot`, `--tmpdir`) lie next to the link by which it enters the
image, in the folder passed to `setup`: the user's own store is never touched, no process waits for
another's lock, and all of it is removed with that folder. Remains of a killed container belong to
subordinate ids: `teardown` removes them, and ends the pause process that Podman had for each
--tmpdir until April 2023 (its pull request 18083; since then it has one for each user, which
stays). The link also makes a path with a comma or colon harmless, which the kernel's overlay would
misread. The folder must be ours, or have /etc/mtab, and be open to all (0755).

keep-id: our uid inside. cgroupfs, no systemd: the container stays in our cgroup, with the limits of
our job. label=disable: with SELinux our files would be unreadable otherwise. conmon and the
container have sessions of their own; the path of conmon's pidfile identifies its launch.

No file of Podman's own is removed while one of its processes runs: once its database cannot be
opened, Podman keeps a mutex of its process locked (4.3.1, BoltState.getDBCon), and hangs with the
lock of its container. That lies in /dev/shm for all Podmans of this user: the next container may
get its number, and then its Podman hangs too.

The standard streams are passed as separate descriptors (--preserve-fds). Podman's own way is a
socket of conmon's, which drops output that is printed before it has accepted Podman's connection:
on a busy node the whole output of a short command, with exit code 0 (conmon 2.1.6,
write_back_to_remote_consoles). A terminal needs -i and -t (see `Launch.terminal`) and so that
socket, but what runs in a terminal does not end at once.
"""

from pathlib import PurePath

from flowos._dataclasses import dataclass, replace
from flowos.drivers._base import LinkStep, Reason, RunDir, Traits
from flowos.drivers._binds import binds_of, mount_words
from flowos.drivers._entering import (
    enters,
    image_to_enter,
    not_installed,
    reasons_against,
    refuse_words_not_utf8,
)
from flowos.model import Argv, Facts, Form, Image, Launch, LaunchFailed

_MISSING = not_installed("podman", "apt install podman uidmap crun, or dnf install podman")
_LINK = "image-of-podman"
_OWN = "podman"
_KEEPS_GROUPS = "crun"
_EXTRA_STREAMS = ("/bin/sh", "-c", 'exec "$@" 3<&0 4>&1 5>&2', "sh")
_TEAR_DOWN = """\
root=$1 run=$2 pause=$3; shift 3
rm -rf "$root" "$run" 2>/dev/null ||
  unshare --map-root-user --map-auto rm -rf "$root" "$run" 2>/dev/null ||
  "$@" unshare rm -rf "$root" "$run"
exec pkill -KILL -F "$pause" '^(podman|catatonit)'
"""
"""Files owned by subordinate ids are removed by util-linux since 2.38, or else by Podman, which
takes as long as a start. The pause process is named too: another may have taken its pid."""

_TRAITS = Traits(
    env_blocked=("CONTAINER_", "CONTAINERS_", "STORAGE_", "TMPDIR", "_CONTAINERS_"),
    makes_targets=True,
    reads_cdi=True,
    own_terminal=True,
    extra_streams=True,
    has_helpers=True,
    monitor="conmon",
)


_TERMINAL = ("--interactive", "--tty", "--mount=type=devpts,destination=/dev/pts")
"""A devpts of its own: crun may not pass us a terminal of the node if group tty owns it."""


@dataclass(frozen=True, kw_only=True)
class Podman:
    """oci_runtime: path of the OCI runtime, crun or runc; empty: Podman's own choice."""

    name: str = "podman"
    traits: Traits = _TRAITS
    program: str = "podman"
    oci_runtime: str = ""

    def variants(self, facts: Facts) -> tuple["Podman", ...]:
        """crun before runc: it keeps our supplementary groups, but refuses hybrid cgroups."""
        tool = facts.tool("podman")
        if tool is None:
            return ()
        oci_runtimes = [str(t.path) for name in ("crun", "runc") if (t := facts.tool(name))]
        return tuple(
            replace(self, program=str(tool.path), oci_runtime=s) for s in oci_runtimes or [""]
        )

    def usable(self, facts: Facts) -> tuple[Reason, ...]:
        if facts.tool("podman") is None:
            return (_MISSING,)
        return reasons_against(facts, self.name, ("user namespaces", "subordinate ids"))

    def forms(self, facts: Facts) -> tuple[Form, ...]:
        return ("folder",) if enters(facts, self.name, "folder") else ()

    def setup(self, image: Image, at: PurePath) -> tuple[LinkStep, ...]:
        return (LinkStep(link=at / _LINK, target=image.source),)

    def entered(self, image: Image, at: PurePath) -> Image:
        return replace(image, source=at / _LINK)

    def teardown(self, image: Image, at: PurePath) -> tuple[Launch, ...]:  # noqa: ARG002
        """It may fail if there is nothing to do; ignore that."""
        own = at / _OWN
        files = (str(own / "root"), str(own / "run"), str(own / "tmp/pause.pid"))
        return (Launch(argv=("/bin/sh", "-c", _TEAR_DOWN, "sh", *files, *self._global(at))),)

    def wrap(self, inner: Argv, launch: Launch, at: RunDir) -> Argv:
        image = image_to_enter(launch, self.name, ("folder",))
        refuse_words_not_utf8(inner, self.name)
        if image.source.name != _LINK:
            raise LaunchFailed(f"image {image.source}: podman enters it only after its set-up")
        return (
            *(() if launch.terminal else _EXTRA_STREAMS),
            *self._global(image.source.parent),
            *("run", "--rm"),
            *(_TERMINAL if launch.terminal else ("--preserve-fds=3",)),
            *("--rootfs", "--read-only", "--read-only-tmpfs=false"),
            *("--net=host", "--pid=host", "--ipc=host", "--cgroupns=host", "--ulimit=host"),
            "--userns=keep-id",
            *(("--group-add=keep-groups",) if self._keeps_groups else ()),
            *("--systemd=false", "--log-driver=none", "--env-host"),
            "--security-opt=label=disable",
            f"--conmon-pidfile={at / self.traits.monitor}",
            *("--volume=/dev:/dev", "--volume=/dev/shm:/dev/shm", "--volume=/tmp:/tmp"),
            *mount_words(binds_of(launch.env, at)),
            *(f"--device={device}" for device in launch.env.devices),
            "--workdir=/",
            f"{image.source}:O",
            *inner,
        )

    @property
    def _keeps_groups(self) -> bool:
        return PurePath(self.oci_runtime).name == _KEEPS_GROUPS

    def _global(self, at: PurePath) -> Argv:
        own = at / _OWN
        return (
            self.program,
            *(f"--root={own / 'root'}", f"--runroot={own / 'run'}", f"--tmpdir={own / 'tmp'}"),
            *("--storage-driver=overlay", "--cgroup-manager=cgroupfs"),
            *((f"--runtime={self.oci_runtime}",) if self.oci_runtime else ()),
            *("--events-backend=none", "--log-level=error"),
        )
