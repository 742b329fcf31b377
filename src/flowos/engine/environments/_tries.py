"""Trying a runtime: it enters an image that holds nothing but flowos-init."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from flowos._dataclasses import dataclass
from flowos.drivers import BOOTING, Runtime
from flowos.engine._ask import ask
from flowos.engine.environments._kernels import booting, kernels
from flowos.engine.environments._setup import set_up
from flowos.engine.launch._prepared import prepare
from flowos.engine.launch._private_dirs import ON_DISK, own_folder
from flowos.engine.launch._session import LaunchSession
from flowos.model import Boot, Environment, Facts, FlowosError, Form, Image, Launch, Tried

LIMIT_SECONDS = 30.0
"""What hangs is given up then. A busy machine is late, and no reason to unpack an image."""

_TRIED_FORMS: tuple[Form, ...] = ("folder", "squashfs")
_FOLDERS = ("dev", "etc", "home", "mnt", "opt", "proc", "root", "run", "sys", "tmp", "usr", "var")
_FILES = ("etc/group", "etc/hosts", "etc/passwd", "etc/resolv.conf")
_LAST_LINES = 3


@dataclass(frozen=True, kw_only=True)
class Try:
    """What came of entering a form of image with a runtime; `way`: which one, if it worked."""

    runtime: str
    form: Form
    way: int
    works: bool
    says: str = ""

    @property
    def tried(self) -> Tried:
        return Tried(name=f"{self.runtime} {self.form}", works=self.works, says=self.says)


def try_runtime(runtime: Runtime, facts: Facts, session: LaunchSession) -> Iterator[Try]:
    """Each form that one of its variants may enter, by the first variant that can."""
    variants = runtime.variants(facts)
    for form in _TRIED_FORMS:
        able = [n for n, way in enumerate(variants) if form in way.forms(facts)]
        if able:
            yield _try_form(variants, able, form, runtime.name, session)


def _try_form(
    variants: Sequence[Runtime], able: Sequence[int], form: Form, name: str, session: LaunchSession
) -> Try:
    """If none works, what the best of them said; of those that boot, TCG, which needs no KVM."""
    complaints = []
    for number in able:
        complaint = _enter(variants[number], form, session)
        if not complaint:
            return Try(runtime=name, form=form, way=number, works=True)
        complaints.append(complaint)
    said = complaints[-1 if name in BOOTING else 0]
    return Try(runtime=name, form=form, way=able[0], works=False, says=said)


def _enter(way: Runtime, form: Form, session: LaunchSession) -> str:
    """A complaint, or nothing if the command inside ran and said what it should."""
    try:
        image, undo = set_up(way, _tiny_image(form, session.init_program()), session)
        try:
            return _first_complaint(way, image, session)
        finally:
            undo()
    except (FlowosError, OSError) as error:
        return str(error)


def _first_complaint(way: Runtime, image: Image, session: LaunchSession) -> str:
    """Nothing once it works: a runtime that boots can do so if any kernel starts."""
    boots: tuple[Boot | None, ...] = (None,)
    if way.name in BOOTING:
        boots = tuple(Boot(kernel=each) for each in kernels()) or boots
    complaints = []
    for boot in boots:
        try:
            complaint = _complaint(way, image, boot, session)
        except (FlowosError, OSError) as error:
            complaint = str(error)
        if not complaint:
            return ""
        complaints.append(complaint)
    return complaints[0]


def _complaint(way: Runtime, image: Image, boot: Boot | None, session: LaunchSession) -> str:
    env = Environment(image=image, runtime=way.name, boot=boot)
    env = booting(env, way.name, way.traits.accelerator, session)
    limit = None if env.boot else LIMIT_SECONDS  # a guest that hangs is ended by what started it
    launch = Launch(argv=("/flowos-init", "--version"), env=env, limit_seconds=limit)
    running = prepare(launch, way, session).start()
    outcome = running.wait()
    if outcome.ok and outcome.stdout.startswith(b"flowos-init"):
        return ""
    said = outcome.stderr.decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
    return f"exit {running.code}: {' / '.join(said) or outcome.end}"


def _tiny_image(form: Form, init: Path) -> Image:
    folder = tiny_folder(init)
    if form == "folder":
        return Image(form=form, digest=f"tree-sha256:{folder.name}", source=folder)
    file = folder.with_suffix(".sqfs")
    if not file.exists():
        _squash(folder, file)
    return Image(form=form, digest=f"sha256:{folder.name}", source=file)


def tiny_folder(init: Path) -> Path:
    """Made once per flowos-init, and published by renaming; anew where a cleaner took a part."""
    seen = init.stat()
    folder = own_folder(ON_DISK) / f"tiny-{seen.st_mtime_ns}"
    if not _is_whole(folder):
        import shutil  # most starts find it there
        import tempfile

        made = Path(tempfile.mkdtemp(prefix=".tiny-", dir=folder.parent))
        made.chmod(0o755)  # for podman, whose overlay of it belongs to an unmapped user
        for name in _FOLDERS:
            (made / name).mkdir()
        for name in _FILES:
            (made / name).touch()
        shutil.copy(init, made / "flowos-init")
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # another was faster
            made.rename(folder)
        shutil.rmtree(made, ignore_errors=True)
    return folder


def _is_whole(folder: Path) -> bool:
    return all((folder / name).exists() for name in (*_FOLDERS, *_FILES, "flowos-init"))


def _squash(folder: Path, file: Path) -> None:
    import tempfile

    handle, new = tempfile.mkstemp(prefix=".tiny-", dir=file.parent)
    os.close(handle)
    words = ["mksquashfs", str(folder), new, "-noappend", "-no-xattrs", "-no-progress", "-quiet"]
    try:
        made = ask(words, seconds=None)
        if made.code != 0:
            raise OSError(f"mksquashfs: {made.says}")
        Path(new).replace(file)
    except FileNotFoundError as error:
        raise OSError("no mksquashfs to make an image to try it with") from error
    finally:
        Path(new).unlink(missing_ok=True)
