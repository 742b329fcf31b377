"""Control groups that this process is in (cgroups(7)), and files of the kernel."""

from pathlib import Path, PurePath


def cpu_cgroups(root: Path) -> list[Path]:
    """Our cgroup and its ancestors, in every mounted hierarchy that may hold a cpu quota."""
    folders: list[Path] = []
    mounts = _cgroup_mounts(root)
    for line in text_of(root / "proc/self/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        kind = "cgroup2" if number == "0" else "cgroup"
        if kind == "cgroup" and "cpu" not in controllers.split(","):
            continue
        for top, mount in mounts.get(kind, ()):
            below = PurePath(path).relative_to(top) if PurePath(path).is_relative_to(top) else None
            here = mount / (below or "")
            folders += (here, *(up for up in here.parents if up.is_relative_to(mount)))
    return folders


def cgroups_v2(root: Path) -> list[Path]:
    """Our cgroup of the unified hierarchy and its ancestors, from the top."""
    tops = [path for _, path in _cgroup_mounts(root).get("cgroup2", [])]
    ours = (folder for folder in cpu_cgroups(root) if any(map(folder.is_relative_to, tops)))
    return sorted(dict.fromkeys(ours), key=lambda folder: len(folder.parts))


def _cgroup_mounts(root: Path) -> dict[str, list[tuple[str, Path]]]:
    """Which cgroup is mounted where: cgroup2, and cgroup (v1) with the controller cpu."""
    mounts: dict[str, list[tuple[str, Path]]] = {}
    for line in text_of(root / "proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = [*right.split(), "", "", ""][:3]
        if kind == "cgroup2" or (kind == "cgroup" and "cpu" in options.split(",")):
            top, mount = left.split()[3:5]
            mounts.setdefault(kind, []).append((top, root / mount.lstrip("/")))
    return mounts


def text_of(file: Path) -> str:
    """Its contents; "" if it cannot be read."""
    try:
        return file.read_text()
    except OSError:
        return ""
