"""`flowos kernel`: the library of kernels with which images are booted."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from flowos.drivers.images.kernel import UnpackedKernel, cpio, read_kernel_package, unsigned
from flowos.engine import here
from flowos.model import EnvironmentRefused, LinuxKernel, UnknownImage, UsageError, to_plain
from flowos.operations._files import put_folder

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_FOLDER, _FILE = 0o040755, 0o100644

_CHECKING = ("module.sig_enforce", "lockdown", "ima_")
"""Parameters with which a kernel may refuse modules without a signature."""

VMLINUZ, NODE_MODULES = "vmlinuz", "node.cpio"
"""Files of a kernel of the library that nodes boot; an older FlowOS wrote none."""


def add_kernel(
    name: str, deb: Path, parameters: Iterable[str] = (), *, dry_run: bool = False
) -> LinuxKernel:
    """Unpack a Debian package linux-image-... into the library, in place of one of this name.

    parameters: on its command line, as isolcpus=1. dry_run: the package is read, nothing is
    written. Raises EnvironmentRefused if it is none.
    """
    _check_name(name)
    given = tuple(parameters)
    for word in given:
        if not word.isprintable() or not word or " " in word:
            raise UsageError(f"parameter {word!r}: expected one word, as isolcpus=1")
    try:
        if deb.exists() and not deb.is_file():
            raise EnvironmentRefused("it is no file")
        with deb.open("rb") as file:
            unpacked = read_kernel_package(file)
        kernel = _described(name, unpacked, given)
        return kernel if dry_run else _kept(kernel, unpacked)
    except EnvironmentRefused as error:
        raise EnvironmentRefused(f"{deb}: {error}") from error
    except OSError as error:
        raise EnvironmentRefused(f"{error.filename or deb}: {error.strerror or error}") from error


def kernels() -> tuple[LinuxKernel, ...]:
    """The kernels of the library, by name."""
    return here().kernels()


def remove_kernel(name: str, *, dry_run: bool = False) -> LinuxKernel:
    """Raises EnvironmentRefused if there is none of this name."""
    kernel = kernel_named(name)
    if not dry_run:
        shutil.rmtree(here().kernels_folder() / name)
    return kernel


def kernel_named(name: str) -> LinuxKernel:
    """Raises EnvironmentRefused if the library has none of this name."""
    found = {kernel.name: kernel for kernel in kernels()}
    if name not in found:
        known = f"known are {', '.join(found)}" if found else "the library has none yet"
        raise UnknownImage(f"no kernel {name!r}; {known}")
    return found[name]


def _check_name(name: str) -> None:
    if not re.fullmatch(_NAME, name):
        raise UsageError(f"kernel {name!r:.120}: expected letters, digits, and ._- (not first)")


def _described(name: str, unpacked: UnpackedKernel, parameters: tuple[str, ...]) -> LinuxKernel:
    """As it will be in the library."""
    at = here().kernels_folder() / name
    return LinuxKernel(
        name=name,
        release=unpacked.release,
        image=at / "image",
        initrd=at / "modules.cpio",
        modules=tuple(module for module, _ in unpacked.modules),
        parameters=parameters,
    )


def _kept(kernel: LinuxKernel, unpacked: UnpackedKernel) -> LinuxKernel:
    """Made under a hidden name, then renamed: a boot sees one or the other."""
    library = here().kernels_folder()
    library.mkdir(parents=True, exist_ok=True)
    at = library / kernel.name
    with tempfile.TemporaryDirectory(prefix=".", dir=library) as made:
        new = Path(made) / kernel.name
        new.mkdir()
        (new / "image").write_bytes(unpacked.image)
        (new / "modules.cpio").write_bytes(_modules(_for_guests(kernel, unpacked)))
        (new / VMLINUZ).write_bytes(unpacked.vmlinuz)
        (new / NODE_MODULES).write_bytes(_modules(unpacked.node_modules))
        (new / "kernel.json").write_text(json.dumps(to_plain(kernel)))
        put_folder(new, at)
    return kernel


def _for_guests(kernel: LinuxKernel, unpacked: UnpackedKernel) -> Iterable[tuple[str, bytes]]:
    """Modules, with their signatures where the kernel checks them."""
    if unpacked.wants_signed or any(word.startswith(_CHECKING) for word in kernel.parameters):
        return unpacked.modules
    return [(name, unsigned(content)) for name, content in unpacked.modules]


def _modules(modules: Iterable[tuple[str, bytes]]) -> bytes:
    """flowos-init loads them in the order of their names."""
    named = enumerate(modules)
    files = [(f"modules/{n:02}-{name}.ko", _FILE, content) for n, (name, content) in named]
    return cpio([("modules", _FOLDER, b""), *files])
