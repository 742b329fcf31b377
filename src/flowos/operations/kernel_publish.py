"""`flowos kernel publish`: what nodes need to boot a kernel with an image, in a folder to serve.

    ROOT/NAME/vmlinuz initrd.img      the kernel; its modules, flowos-init and the image
              boot.ipxe next-boot ... texts, as `drivers.netboot` writes them
              SHA256SUMS              of all of these
    ROOT/.NAME.XXXX                   while it is written

A folder is replaced if all in it is as SHA256SUMS says, so nothing of another hand is lost.
"""

import hashlib
import tempfile
from pathlib import Path, PurePath

from flowos._dataclasses import dataclass, replace
from flowos.drivers.images import squashfs
from flowos.drivers.images.kernel import MAX_CPIO_BYTES
from flowos.drivers.netboot import INITRD, KERNEL, Netboot, check_netboot, texts
from flowos.engine import here
from flowos.model import EnvironmentRefused, Image, LinuxKernel
from flowos.operations._files import put_folder
from flowos.operations._images._resolve import resolve_image
from flowos.operations._images._tools import call, need
from flowos.operations.kernel import NODE_MODULES, VMLINUZ, kernel_named

SUMS = "SHA256SUMS"
_INIT = "/sbin/init"
_PROGRAM = "#!/bin/sh\n"
_RANDOM_SIGNS = 8
"""In the name of a temporary folder."""


@dataclass(frozen=True, kw_only=True)
class PublishedKernel:
    """files: their names in the folder. notes: what is yet to be seen to."""

    name: str
    release: str
    image: str
    digest: str
    folder: PurePath
    files: tuple[str, ...]
    notes: tuple[str, ...]


def publish_kernel(asked: Netboot, image: str, *, dry_run: bool = False) -> PublishedKernel:
    """Write the folder of a kernel of the library and an image, in place of an earlier one.

    asked: without release, and without the parameters that the kernel has in the library. dry_run:
    all is checked, nothing is written. Raises UsageError for what scripts cannot hold,
    EnvironmentRefused for a kernel or image that no node could boot, and for a folder in which
    something is not our own.
    """
    kernel = kernel_named(asked.name)
    netboot = replace(
        asked,
        release=kernel.release,
        root=str(Path(asked.root).absolute()),
        parameters=(*kernel.parameters, *asked.parameters),
    )
    check_netboot(netboot)
    _check_library(kernel)
    found = resolve_image(image)
    notes = _image_notes(netboot, found, image)
    files = (KERNEL, INITRD, *texts(netboot))
    folder = Path(netboot.root) / netboot.name
    try:
        _refuse_foreign(folder)
        notes += _left(folder)
        if not dry_run:
            _write(netboot, kernel, found, folder)
    except OSError as error:
        raise EnvironmentRefused(f"{error.filename or folder}: {error.strerror}") from error
    return PublishedKernel(
        name=kernel.name,
        release=kernel.release,
        image=image,
        digest=found.digest,
        folder=folder,
        files=(*files, SUMS),
        notes=notes,
    )


def _check_library(kernel: LinuxKernel) -> None:
    if not all(_of_library(kernel, file).exists() for file in (VMLINUZ, NODE_MODULES)):
        raise EnvironmentRefused(
            f"kernel {kernel.name}: an older FlowOS added it, without what nodes boot; add it "
            f"again: flowos kernel add {kernel.name} --deb linux-image-{kernel.release}_...deb"
        )


def _of_library(kernel: LinuxKernel, file: str) -> Path:
    return here().kernels_folder() / kernel.name / file


def _image_notes(netboot: Netboot, image: Image, name: str) -> tuple[str, ...]:
    if image.form != "squashfs":
        raise EnvironmentRefused(
            f"image {name}: nodes boot a squashfs, not a form {image.form}; flowos image import "
            "makes one"
        )
    need("unsquashfs", squashfs.PACKAGE, "look into the image with")
    if Path(image.source).stat().st_size > MAX_CPIO_BYTES:
        raise EnvironmentRefused(f"image {name}: an initrd holds no more than 4 GiB of it")
    listed = call(squashfs.listing(image.source))
    if listed.code:
        why = squashfs.complaint(listed.code, listed.stderr)
        raise EnvironmentRefused(f"image {name}: it cannot be read: {why}")
    entries = squashfs.read_listing(listed.stdout)
    first = netboot.init or _INIT
    mode = squashfs.mode_of(entries, first)
    if not mode:
        raise EnvironmentRefused(
            f"image {name}: it has no {first} for a node to start (Debian: systemd-sysv); --init "
            "names another program"
        )
    if mode[0] != "-" or {*"xst"}.isdisjoint(mode):
        raise EnvironmentRefused(
            f"image {name}: its {first} ({mode}) is no program that a node can start; --init names "
            "another one"
        )
    modules = f"/lib/modules/{netboot.release}"
    if squashfs.mode_of(entries, modules):
        return ()
    return (
        f"the image has no {modules}: nodes load no drivers but those in the kernel, and most have "
        "no network then",
    )


def _refuse_foreign(folder: Path) -> None:
    """Also a link: what it leads to would be taken away."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise EnvironmentRefused(f"{folder}: it is no folder of `flowos kernel publish`")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    try:
        expected = _read_sums((folder / SUMS).read_text())
    except (OSError, UnicodeDecodeError):
        expected = {}
    for file in sorted({*folder.iterdir()} - {folder / SUMS}):
        if file.name not in expected or file.is_symlink() or not file.is_file():
            raise EnvironmentRefused(f"{file}: it is not of `flowos kernel publish`; move it away")
        if _digest(file) != expected[file.name]:
            raise EnvironmentRefused(f"{file}: it was changed since it was published; move it away")


def _read_sums(text: str) -> dict[str, str]:
    """File name -> digest."""
    rows = (line.split("  ", 1) for line in text.splitlines())
    return {row[1]: row[0] for row in rows if len(row) == 2}


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _left(folder: Path) -> tuple[str, ...]:
    return tuple(
        f"{path}: of one that was killed, unless it runs now; remove it"
        for path in sorted(folder.parent.glob(f".{folder.name}." + "[!.]" * _RANDOM_SIGNS))
    )


def _write(netboot: Netboot, kernel: LinuxKernel, image: Image, folder: Path) -> None:
    """Under a hidden name, then renamed. A node that boots meanwhile may get files of both."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as made:
        new = Path(made) / folder.name
        new.mkdir()
        (new / KERNEL).write_bytes(_of_library(kernel, VMLINUZ).read_bytes())
        with (new / INITRD).open("wb") as initrd:
            modules = _of_library(kernel, NODE_MODULES)
            here().write_node_initrd(modules, Path(image.source), initrd)
        for name, text in texts(netboot).items():
            (new / name).write_text(text)
        files = sorted(new.iterdir())
        (new / SUMS).write_text("".join(f"{_digest(file)}  {file.name}\n" for file in files))
        for file in new.iterdir():
            with file.open("rb") as content:
                is_program = content.read(len(_PROGRAM)) == _PROGRAM.encode()
            file.chmod(0o755 if is_program else 0o644)
        new.chmod(0o755)
        put_folder(new, folder)
