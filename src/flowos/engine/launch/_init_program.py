"""Where flowos-init is: in the wheel, or compiled here once for this machine."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from flowos._user_folders import HomeFolderError, cache_folder
from flowos.engine._ask import ask
from flowos.model import LaunchFailed

_IN_PACKAGE = Path(__file__).parents[1] / "init"
_COMPILERS = ("cc", "gcc", "clang", "icx", "nvc", "tcc")
_LIMIT_SECONDS, _ASK_SECONDS = 60.0, 10.0


def find_init(session: Callable[[], Path]) -> Path:
    """A flowos-init that runs here; Raises LaunchFailed if none can be had.

    The wheel has one next to its source. In a source checkout, or where that one does not run
    (another architecture, a noexec file system), it is compiled into the user's cache folder, or
    else into that of the session.
    """
    shipped = _IN_PACKAGE / "flowos-init"
    if shipped.exists() and runs(shipped):
        return shipped
    name = f"flowos-init-{os.uname().machine}-{digest_of(_IN_PACKAGE)}"
    places = [session() / name]
    with suppress(HomeFolderError):
        places.insert(0, cache_folder() / "init" / name)
    return find_or_compile(_IN_PACKAGE, places)


def link_or_copy(program: Path, place: Path) -> None:
    """Give it another name, at once."""
    made = place.with_name(f".{place.name}-{os.urandom(4).hex()}")
    try:
        made.hardlink_to(program)
    except OSError:  # another file system, or another user's file
        made.write_bytes(program.read_bytes())
        made.chmod(0o755)
    made.replace(place)


def digest_of(sources: Path) -> str:
    """Another one when any source or header in that folder is another."""
    import zlib  # of chance, not of enemies; hashlib takes 10 ms to import

    checks = 0
    for file in sorted(sources.glob("*.[ch]")):
        content = file.read_bytes()
        checks = zlib.crc32(f"{file.name} {len(content)}\n".encode() + content, checks)
    return f"{checks:08x}"


def runs(program: Path) -> bool:
    try:
        said = ask([program, "--version"], seconds=_ASK_SECONDS)
    except OSError:
        return False
    return said.stdout.startswith(b"flowos-init ")


def find_or_compile(sources: Path, places: Iterable[Path]) -> Path:
    """The first of `places` that holds a program that runs, or can be made to from that folder."""
    complaint = ""
    for place in places:
        if runs(place):
            return place
        complaint = _compile(sources, place) or complaint
        if runs(place):
            return place
    raise LaunchFailed(
        "flowos-init does not run on this machine and cannot be compiled: "
        f"{complaint or 'what was compiled does not run'}"
    )


def _compile(sources: Path, to: Path) -> str:
    """Compile and publish by rename, for others may do the same; a complaint or ''."""
    import shutil
    import tempfile

    compilers = [*filter(None, [os.environ.get("CC")]), *_COMPILERS]
    compiler = next(filter(None, map(shutil.which, compilers)), None)
    if compiler is None:
        return f"no C compiler ({', '.join(compilers)}) in PATH; install one (Debian: gcc)"
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=to.parent) as temporary:
            made = Path(temporary) / to.name
            complaint = _compile_one(compiler, sources, made)
            if not complaint:
                made.replace(to)
            return complaint
    except OSError as error:
        return f"{to.parent}: {error.strerror}"


def _compile_one(compiler: str, sources: Path, to: Path) -> str:
    """Static if it can be: not every machine has a static C library."""
    files = sorted(sources.resolve().glob("*.c"))
    complaint = ""
    for link in (["-static"], []):
        try:
            done = ask(
                [Path(compiler).absolute(), "-O2", *link, "-o", to.name, *files],
                seconds=_LIMIT_SECONDS,
                cwd=to.parent,  # some compilers leave object files where they run
            )
        except OSError as error:
            return f"{compiler}: {error}"
        if done.code == 0:
            return ""
        last = done.says.splitlines()[-1:]
        complaint = f"{compiler}: {' '.join(last)}"
    return complaint
