"""The library of kernels, and the initrd with which one starts flowos-init in a guest, or a node.

$XDG_DATA_HOME/flowos/kernels/NAME/kernel.json   a `model.LinuxKernel`
                                   image
                                   modules.cpio  of which flowos-init makes an initrd
                                   vmlinuz       and node.cpio: the same for nodes, which boot what
                                                 `flowos kernel publish` writes
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import IO

from flowos._dataclasses import replace
from flowos._user_folders import data_folder
from flowos.drivers import BOOTING
from flowos.engine.launch._private_dirs import ON_DISK, own_folder
from flowos.engine.launch._session import LaunchSession
from flowos.model import Boot, Environment, EnvironmentRefused, LinuxKernel, from_plain

ABOUT = "kernel.json"
_PROGRAM, _FILE = 0o100755, 0o100644


def kernels_folder() -> Path:
    """It need not be there."""
    return data_folder() / "kernels"


def kernels() -> tuple[LinuxKernel, ...]:
    """Those of the library, by name."""
    found = []
    for file in sorted(kernels_folder().glob(f"*/{ABOUT}")):
        with suppress(OSError, ValueError):  # removed meanwhile, or of another version of us
            found.append(from_plain(LinuxKernel, json.loads(file.read_bytes())))
    return tuple(found)


def booting(
    env: Environment, runtime: str, accelerator: str, session: LaunchSession
) -> Environment:
    """With its kernel, if this runtime boots one. Raises EnvironmentRefused if it has none."""
    if runtime not in BOOTING:
        return env
    boot = env.boot or Boot()
    _refuse_memory(boot)
    kernel = _chosen(boot.kernel.name)
    kernel = replace(kernel, initrd=_initrd(kernel, session.init_program()))
    return replace(env, boot=replace(boot, kernel=kernel, accelerator=accelerator))


def _refuse_memory(boot: Boot) -> None:
    """QEMU would say it in words of its own, as a guest that died."""
    has = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if boot.memory_bytes > has:
        raise EnvironmentRefused(
            f"mem={boot.memory_bytes >> 20}M: this machine has {has >> 20}M of memory; give less"
        )


def _chosen(name: str) -> LinuxKernel:
    found = {kernel.name: kernel for kernel in kernels()}
    if not found:
        raise EnvironmentRefused(
            "no kernel to boot with; add one from a package of Debian: "
            "flowos kernel add NAME --deb linux-image-...deb"
        )
    known = ", ".join(found)
    if name and name not in found:
        raise EnvironmentRefused(f"no kernel {name!r}; known are {known} (flowos kernel list)")
    if not name and len(found) > 1:
        raise EnvironmentRefused(f"which kernel? name one of {known}: @qemu:kernel=NAME")
    return found[name] if name else next(iter(found.values()))


def _initrd(kernel: LinuxKernel, init: Path) -> Path:
    """Made once for each flowos-init, and published by renaming."""
    from flowos.drivers.images.kernel import cpio  # reads archives, which most starts never need

    modules, seen = Path(kernel.initrd), init.stat()
    key = f"{kernel.name}-{modules.stat().st_mtime_ns}-{seen.st_mtime_ns}"
    made = own_folder(ON_DISK, "kernels") / f"{key}.cpio"
    if not made.exists():
        temporary = made.with_name(f".{made.name}-{os.urandom(4).hex()}")
        program = cpio([("init", _PROGRAM, init.read_bytes())])
        temporary.write_bytes(modules.read_bytes() + program)
        temporary.replace(made)
    return made


def write_node_initrd(modules: Path, image: Path, init: Path, to: IO[bytes]) -> None:
    """Archives, one behind the other: modules, flowos-init, and the image that init/node.c mounts,
    of MAX_CPIO_BYTES at most."""
    from shutil import copyfileobj  # not needed to start anything

    from flowos.drivers.images.kernel import cpio, cpio_head, cpio_padding

    size = image.stat().st_size
    to.write(modules.read_bytes())
    to.write(cpio([("init", _PROGRAM, init.read_bytes())]))
    to.write(cpio_head("image.squashfs", _FILE, size, 1))
    with image.open("rb") as content:
        copyfileobj(content, to, 1 << 20)
    to.write(cpio_padding(size) + cpio([]))
