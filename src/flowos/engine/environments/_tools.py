"""What a node lets us do, as far as entering images goes: cheap enough to look at each time."""

import os
import pwd
from pathlib import Path

from flowos.drivers import RUNTIME_PROGRAMS
from flowos.engine._ask import which
from flowos.engine.environments._kernels import kernels
from flowos.model import Tried

_AROUND = (
    "squashfuse",
    "squashfuse_ll",
    "unsquashfs",
    "mksquashfs",
    "fusermount",
    "fusermount3",
)
"""What mounts and unpacks images, whatever runtime enters them."""


def programs() -> dict[str, Path]:
    """Name -> where it lies, of those in PATH."""
    found = ((name, which(name)) for name in (*RUNTIME_PROGRAMS, *_AROUND))
    return {name: Path(path).absolute() for name, path in found if path}


def tried_cheaply() -> tuple[Tried, ...]:
    return _opens("fuse"), _cgroups(), _subordinate_ids(), _opens("kvm"), _kernels()


def boot_id() -> str:
    return _text("/proc/sys/kernel/random/boot_id").strip()


def user_namespace_limits() -> str:
    """What the kernel's switches say; they can be turned while it runs."""
    names = (
        "user/max_user_namespaces",
        "user/max_mnt_namespaces",
        "kernel/unprivileged_userns_clone",
        "kernel/apparmor_restrict_unprivileged_userns",
    )
    return " ".join(_text(f"/proc/sys/{name}").strip() for name in names)


def _opens(name: str) -> Tried:
    """Whether a device may be asked at all; that a kernel boots with KVM is another matter."""
    try:
        os.close(os.open(f"/dev/{name}", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return Tried(name=name, works=False, says=f"/dev/{name}: {error.strerror}")
    return Tried(name=name, works=True)


def _kernels() -> Tried:
    """Which there are: with others, booting is tried anew."""
    known = [f"{kernel.name} {kernel.release}" for kernel in kernels()]
    says = ", ".join(known) or "no kernel to boot with"
    return Tried(name="kernels", works=bool(known), says=says)


def _cgroups() -> Tried:
    """unified: cgroup2 lies at /sys/fs/cgroup itself."""
    kinds = {}
    for line in _text("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        kinds[left.split()[4]] = right.split()[0]
    if kinds.get("/sys/fs/cgroup") == "cgroup2":
        return Tried(name="cgroup v2", works=True, says="unified")
    says = "hybrid" if "cgroup2" in kinds.values() else "v1"
    return Tried(name="cgroup v2", works=False, says=says)


def _subordinate_ids() -> Tried:
    """Of this user, by name or number, in /etc/subuid and /etc/subgid."""
    names = {str(os.geteuid()), _user_name()}
    lacking = [
        file
        for file in ("/etc/subuid", "/etc/subgid")
        if not any(line.split(":")[0] in names for line in _text(file).splitlines())
    ]
    says = f"none for {_user_name()} in {' and '.join(lacking)}" if lacking else ""
    return Tried(name="subordinate ids", works=not lacking, says=says)


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _text(file: str) -> str:
    try:
        return Path(file).read_text()
    except OSError:
        return ""
