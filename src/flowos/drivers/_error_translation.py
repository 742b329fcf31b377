"""Error messages of runtimes and their meaning.

The messages and their sources are in tests/golden/runtimes/heard.txt. `No space left on device`
about namespaces is the kernel's ENOSPC: the allowed number is used up, and is often 0.
"""

import re

from flowos._dataclasses import dataclass
from flowos.drivers._base import Reason

_LONGEST = 300
_LAST_LINES = 3
_COLOUR = r"\x1b\[[0-9;]*m"


@dataclass(frozen=True)
class _Complaint:
    """words: a regular expression; text contains its first matched group as {found}."""

    code: str
    words: str
    text: str
    remedy: str = ""


_ALLOW_NAMESPACES = (
    "an administrator can allow them: sysctl user.max_user_namespaces=15000, "
    "and kernel.unprivileged_userns_clone=1 where there is such a switch"
)

_NAMESPACES = (
    _Complaint(
        "no-user-namespaces",
        r"(?:namespaces|unshare failed|cannot clone)[^\n]*(?:No space left on device|ENOSPC)"
        r"|(?:maximum number|nesting depth) of user namespaces|user namespace disabled"
        r"|user namespace not supported",
        "user namespaces are switched off on this node, or as many as are allowed are in use",
        _ALLOW_NAMESPACES,
    ),
    _Complaint(
        "user-namespaces-restricted",
        r"setting up uid map: (?:Permission denied|Operation not permitted)"
        r"|Failed to create user namespace: Permission denied"
        r"|write info to setgroups: Permission denied"
        r"|write failed /proc/self/uid_map: Operation not permitted",
        "AppArmor restricts user namespaces on this node, as it does on Ubuntu 24.04",
        "an administrator can lift that: sysctl kernel.apparmor_restrict_unprivileged_userns=0, "
        "or an AppArmor profile for {runtime} that allows userns",
    ),
    _Complaint(
        "user-namespaces-forbidden",
        r"(?:namespaces?|unshare failed|cannot clone)[^\n]*"
        r"(?:Operation not permitted|Permission denied)"
        r"|No permissions to create new namespace|not allowed to create user namespace"
        r"|user namespace requires to set",
        "this node forbids user namespaces: a filter of system calls (seccomp, as in most "
        "containers), or a switch of the kernel",
        _ALLOW_NAMESPACES + "; a container around us needs fewer restrictions",
    ),
)

_FUSE = (
    _Complaint(
        "fuse-closed",
        r"/dev/fuse: (?:Permission denied|Operation not permitted)",
        "/dev/fuse may not be opened",
        "an administrator can open it: chmod 0666 /dev/fuse; until then images are unpacked",
    ),
    _Complaint(
        "no-fuse",
        r"/dev/fuse: No such|fuse: device not found",
        "there is no /dev/fuse",
        "an administrator can load it: modprobe fuse; until then images are unpacked",
    ),
    _Complaint(
        "fusermount",
        r"fusermount3?: (?:mount failed|exec|failed to access|not found|user has no)",
        "fusermount3 may not mount here",
        "it must be installed setuid (package fuse3), outside of containers that forbid it",
    ),
)

_PODMAN = (
    _Complaint(
        "hybrid-cgroups",
        r"cgroups in hybrid mode not supported",
        "crun refuses cgroup v1 and v2 side by side",
        "install runc, or have the node started with systemd.unified_cgroup_hierarchy=1",
    ),
    _Complaint(
        "no-subordinate-ids",
        r"no sub[ug]id ranges found|keep-id requires additional UIDs|none for \S+ in /etc/sub"
        r"|not enough IDs available",
        "this user has no subordinate ids in /etc/subuid and /etc/subgid",
        "an administrator can add some: usermod --add-subuids 100000-165535 "
        "--add-subgids 100000-165535 USER",
    ),
    _Complaint(
        "no-newuidmap",
        r"\"?new[ug]idmap\"?: executable file not found",
        "newuidmap is not installed",
        "apt install uidmap, or dnf install shadow-utils",
    ),
    _Complaint(
        "newuidmap-rights",
        r"new[ug]idmap[^\n]*(?:should have setuid|not permitted|not allowed)"
        r"|set ?up namespace using \"?\S*new[ug]idmap",
        "newuidmap may not do its work",
        "it must be setuid root or have cap_setuid, and the ids of /etc/subuid must be free",
    ),
    _Complaint(
        "no-overlay",
        r"'overlay' is not supported over|kernel does not support overlay"
        r"|overlay[^\n]*(?:invalid argument|not supported|operation not permitted)",
        "the kernel makes no overlay where Podman's files lie (NFS, or a kernel before 5.13)",
        "have /tmp on a local file system, or install fuse-overlayfs",
    ),
    _Complaint(
        "foreign-folder",
        r"creating /etc/mtab symlink: permission denied",
        "podman must write next to what another user's image holds, and may not",
        "use an image of your own, or have /etc/mtab made in it, a link to /proc/self/mounts",
    ),
    _Complaint(
        "runtime-folder",
        r"XDG_RUNTIME_DIR directory \S+ is not owned",
        "XDG_RUNTIME_DIR is another user's, as after su",
        "unset XDG_RUNTIME_DIR, or log in as yourself",
    ),
    _Complaint(
        "no-mqueue",
        r"statfs /dev/mqueue",
        "there is no /dev/mqueue, which Podman wants to share",
        "an administrator can mount it: mount -t mqueue mqueue /dev/mqueue",
    ),
)

_IMAGES = (
    _Complaint(
        "damaged-image",
        r"Something went wrong trying to read the squashfs image|can't open SquashFS"
        r"|unknown image type|image format not recognized|Can't create file at /: Is a directory",
        "that is no whole image: it is damaged, or of another kind",
        "compare its digest with that of its source, and fetch it again",
    ),
    _Complaint(
        "other-architecture",
        r"Exec format error|exec format error|architecture \(\S+\) could not run on the host"
        r"|image targets '\S+', cannot run on",
        "the image is for another architecture than this node's",
        "build or fetch it for this one",
    ),
    _Complaint(
        "no-target",
        r"can't bind: destination not found: ([^\n]+?)(?: \(ch_|$)"
        r"|can't mkdir: ([^\n]+?): Read-only"
        r"|Can't (?:mkdir parents for|mkdir|create file at) ([^\n]+?): (?:Read-only|No such)"
        r"|destination ([^\n]+?) doesn't exist in container",
        "the image has no {found} to bind to",
        "make it in the image, or bind to a place that is there, such as /mnt",
    ),
    _Complaint(
        "no-source",
        r"can't bind: source not found: ([^\n]+?)(?: \(ch_|$)"
        r"|Can't find source path ([^\n]+?): No such"
        r"|statfs ([^\n]+?): no such file"
        r"|mount source ([^\n]+?) doesn't exist",
        "there is no {found} to bind",
        "make it, or leave out the bind",
    ),
    _Complaint(
        "no-device",
        r"unresolvable CDI devices? ([^\n]+)",
        "no CDI spec of this node names device {found}",
        "look into /etc/cdi and /var/run/cdi; for NVIDIA: nvidia-ctk cdi generate",
    ),
)

_NODE = (
    _Complaint(
        "root",
        r"keep-id is only supported in rootless mode|RLIMIT_NOFILE`?: Operation not permitted"
        r"|Requesting capability set",
        "{runtime} cannot be used as root here",
        "run as an ordinary user",
    ),
    _Complaint(
        "no-user-name",
        r"\$USER not set",
        "ch-run needs the user's name",
        "export USER=$(id -un)",
    ),
    _Complaint(
        "init-not-run",
        r"(?:can't execve\(2\)|bwrap: execvp|crun: open executable|exec container process"
        r"|start container process: exec)[^\n]*[Pp]ermission denied"
        r"|exec [^\n]+ failed: permission denied",
        "flowos-init, which lies in /tmp, may not be run inside",
        "have /tmp mounted without noexec; for podman chmod 755 the image's folder too",
    ),
    _Complaint(
        "init-not-seen",
        r"(?:can't execve\(2\)|bwrap: execvp)[^\n]*No such file"
        r"|FATAL: +stat [^\n]+: no such file",
        "flowos-init, which lies in /tmp, is not seen inside",
        "unset TMPDIR, and bind nothing over /tmp",
    ),
    _Complaint(
        "no-space",
        r"[Nn]o space left on device|[Dd]isk quota exceeded",
        "the disk is full, or your share of it is",
        "look at df /tmp /var/tmp, and at your quota",
    ),
)

_BOOTED = (
    _Complaint(
        "no-kernel",
        r"no kernel to boot with",
        "there is no kernel to boot with",
        "add one from a package of Debian: flowos kernel add NAME --deb linux-image-...deb",
    ),
    _Complaint(
        "no-guest-memory",
        r"cannot set up guest memory",
        "there is no memory for the guest",
        "boot it with less: @qemu:mem=256M",
    ),
)

_TABLE = (*_BOOTED, *_NAMESPACES, *_FUSE, *_PODMAN, *_IMAGES, *_NODE)


def explain(runtime: str, said: str) -> Reason:
    """Reason for a runtime's error message. Unknown messages are quoted in one line."""
    said = re.sub(_COLOUR, "", said)
    for complaint in _TABLE:
        if match := re.search(complaint.words, said, re.MULTILINE):
            found = next((g for g in match.groups() if g), "")
            return Reason(
                code=complaint.code,
                text=complaint.text.format(runtime=runtime, found=_one_line(found)),
                remedy=complaint.remedy.format(runtime=runtime),
            )
    lines = [line for line in said.splitlines() if line.strip(" -")][-_LAST_LINES:]
    return Reason(code="unknown", text=_one_line(" / ".join(lines)) or f"{runtime} said nothing")


def _one_line(text: str) -> str:
    shown = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(shown.split())[:_LONGEST]
