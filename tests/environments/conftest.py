"""Real images, and every runtime that the set-up installs, entered for real.

Run as an ordinary user: by a person as themselves, on a CI machine by tools/as-user. What the
set-up installs must work there: a runtime that does not is a failure where CI is set, and a skip
with the reason elsewhere. Apptainer is tested where it is.
"""

import ctypes
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from flowos.drivers import RUNTIMES
from flowos.drivers.images.kernel import __file__ as kernel_reader
from flowos.engine import Ready, here, remove_tree
from flowos.engine.environments._unpacked import unpacked_folder
from flowos.model import BARE, Environment, EnvironmentRefused, Form, Launch, LinuxKernel, Pairs
from flowos.operations import image
from flowos.operations.kernel import add_kernel, kernels
from tests.waiting import PATIENCE_SECONDS, comes

# fmt: off
APPLETS = (
    "[", "cat", "chmod", "cut", "echo", "env", "expr", "false", "grep", "head", "id", "kill",
    "ls", "mkdir", "mount", "nice", "nproc", "printf", "ps", "pwd", "readlink", "rm", "seq",
    "setsid", "sh", "sleep", "sort", "stat", "tail", "tee", "test", "touch", "tr", "true",
    "tty", "umask", "uname", "wc", "yes",
)
FOLDERS = (
    "bin", "data", "dev", "etc", "home", "mnt", "mnt/flowos", "opt", "proc", "root", "run",
    "scratch", "sys", "tmp", "usr", "usr/bin", "var", "work",
)
# fmt: on
FILES = ("etc/group", "etc/hosts", "etc/passwd", "etc/resolv.conf")

INSIDE: Pairs = (("PATH", "/bin:/usr/bin"), ("HOME", "/"))
"""Variables of a launch whose command is the image's."""


@dataclass(frozen=True, slots=True)
class Images:
    """One small image in the forms that can be made here without a runtime."""

    folder: Path
    squashfs: Path
    archive: Path

    def of(self, form: Form) -> Path:
        return {
            "folder": self.folder,
            "squashfs": self.squashfs,
            "sif": self.squashfs,
            "oci-archive": self.archive,
        }[form]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a launch runs: bare, or an image that was made ready as `requested`."""

    runtime: str
    form: Form | None
    requested: Environment
    env: Environment

    @property
    def patience(self) -> float:
        return BOOT_SECONDS if self.runtime == "qemu" else PATIENCE_SECONDS

    def __str__(self) -> str:
        return f"{self.runtime} {self.form}" if self.form else self.runtime


PLACES: tuple[tuple[str, Form | None], ...] = (
    ("bare", None),
    ("ch-run", "folder"),
    ("ch-run", "squashfs"),
    ("bwrap", "folder"),
    ("bwrap", "squashfs"),
    ("podman", "folder"),
    ("podman", "squashfs"),
    ("apptainer", "folder"),
    ("apptainer", "squashfs"),
)
BOOT_SECONDS = 300.0
"""Patience with a boot on a busy machine; of processor time it takes a few."""
BOOTED: tuple[str, Form] = ("qemu", "squashfs")
"""With promises marked `booted` alone, as a boot takes seconds: FLOWOS_TEST_BOOTS=all tests each
that a machine of its own can keep, which are those not marked `of_this_kernel`."""
HAS_APPTAINER = any(map(shutil.which, ("apptainer", "singularity")))
INSTALLED = ("bare", "ch-run", "bwrap", "podman", "qemu", *("apptainer",) * HAS_APPTAINER)
"""What tools/setup brings; Apptainer only where Debian's unstable suite can be reached."""
CONTAINERS = tuple(name for name in INSTALLED if name != "qemu")
"""Those that need no kernel of their own, and whose speed is this machine's."""


def usable() -> set[str]:
    """The names of the runtimes that can be used here."""
    facts = here().facts()
    return {name for name, runtime in RUNTIMES.items() if not runtime.usable(facts)}


def pytest_report_header() -> str:
    return "" if HAS_APPTAINER else "apptainer is not installed: nothing of it is tested here"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "place" in metafunc.fixturenames:
        inside = metafunc.definition.get_closest_marker("inside")
        left_out = {"bare" if inside else "", "" if HAS_APPTAINER else "apptainer"}
        here = [p for p in PLACES if p[0] not in left_out]
        here += [BOOTED] * boots(metafunc.definition)
        ids = [f"{runtime}-{form}" if form else runtime for runtime, form in here]
        metafunc.parametrize("place", here, ids=ids, indirect=True, scope="session")


def boots(test: pytest.Function) -> bool:
    every = bool(os.environ.get("FLOWOS_TEST_BOOTS"))
    own = test.get_closest_marker("of_this_kernel")
    return test.get_closest_marker("booted") is not None or (every and own is None)


@pytest.fixture(scope="session", autouse=True)
def orphans_are_ours() -> None:
    """What a launch loses becomes our child (prctl 36, PR_SET_CHILD_SUBREAPER), not init's."""
    assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0


@pytest.fixture(scope="session", autouse=True)
def unpacked_images_go() -> Iterator[None]:
    """Unpacked images outlive their launches; those that tests unpacked go after the last test."""
    home = unpacked_folder()
    before = {*home.iterdir()}
    yield
    for name in {path.name.lstrip(".").partition(".")[0] for path in {*home.iterdir()} - before}:
        if not here().remove_unpacked(name).startswith("kept"):
            for left in {*home.glob(f"{name}.*"), *home.glob(f".{name}")} - before:
                remove_tree(left) if left.is_dir() else left.unlink()


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Images:
    home = tmp_path_factory.mktemp("images")
    home.chmod(0o755)
    made = Images(home / "busybox", home / "busybox.sqfs", home / "busybox.tar")
    make_busybox(made.folder)
    squash(made.folder, made.squashfs)
    make_oci_archive(made.folder, made.archive)
    return made


@pytest.fixture(scope="session")
def place(request: pytest.FixtureRequest, images: Images) -> Iterator[Place]:
    runtime, form = request.param
    if form is None:
        yield Place("bare", None, BARE, BARE)
        return
    if runtime == "qemu":
        request.getfixturevalue("kernel")
    env = Environment(image=here().image_at(images.of(form)), runtime=runtime)
    with ready_or_skip(env) as ready:
        yield Place(runtime, form, env, ready.env)


@pytest.fixture(scope="session")
def kernel() -> Iterator[LinuxKernel]:
    """Debian's stock kernel, as tools/setup fetched it, in a library kept for later runs (8 s)."""
    packages = sorted((Path(__file__).parents[2] / ".deps/kernel").glob("linux-image-*.deb"))
    if not packages:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no package of a kernel in .deps")
    key = f"{packages[-1].stem}-{hashlib.sha256(Path(kernel_reader).read_bytes()).hexdigest()[:8]}"
    kept = Path(f"/var/tmp/flowos-test-images-{os.geteuid()}") / key
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(kept))
        yield next(iter(kernels()), None) or add_kernel("stock", packages[-1])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_busybox(tmp_path / "image")
    (tmp_path / "image").chmod(0o755)
    return tmp_path / "image"


@pytest.fixture
def squashfs(folder: Path) -> Path:
    """One of its own: its digest is no other test's."""
    (folder / "data/which").write_text(str(folder))
    squash(folder, folder.with_suffix(".sqfs"))
    return folder.with_suffix(".sqfs")


def ready_or_skip(env: Environment) -> Ready:
    """Made ready; a runtime that does not work here is a skip, or in CI a failure."""
    try:
        return here().ready(env)
    except EnvironmentRefused as refused:
        if os.environ.get("CI") and env.runtime in INSTALLED:
            pytest.fail(f"what the set-up installs must work in CI: {refused}")
        pytest.skip(str(refused))


def make_busybox(folder: Path) -> None:
    busybox = static_busybox()
    for name in FOLDERS:
        (folder / name).mkdir(parents=True)
    for name in FILES:
        (folder / name).touch()
    shutil.copy(busybox, folder / "bin/busybox")
    for name in APPLETS:
        (folder / "bin" / name).symlink_to("busybox")


def static_busybox() -> str:
    """As tools/setup unpacked it, or the machine's own where that is static."""
    unpacked = Path(__file__).parents[2] / ".deps/debian/bin/busybox"
    for place in (str(unpacked), shutil.which("busybox") or ""):
        if Path(place).is_file() and subprocess.run(["ldd", place], capture_output=True).returncode:
            return place
    pytest.fail("no static busybox: tools/setup test unpacks one")


def squash(folder: Path, file: Path) -> None:
    words = ("-noappend", "-no-xattrs", "-no-progress", "-quiet", "-all-root")
    subprocess.run(["mksquashfs", folder, file, *words], check=True, capture_output=True)


def make_oci_archive(folder: Path, file: Path) -> None:
    """As the OCI image specification 1.0 has it: a layout of one layer."""
    blobs: dict[str, bytes] = {}

    def blob(content: bytes, kind: str) -> dict[str, object]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        media = f"application/vnd.oci.image.{kind}"
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(content)}

    files = io.BytesIO()
    with tarfile.open(fileobj=files, mode="w") as tar:
        tar.add(folder, arcname=".")
    layer = blob(files.getvalue(), "layer.v1.tar")
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    config = {
        "architecture": machine,
        "os": "linux",
        "config": {"Env": ["PATH=/bin", "GREETING=from the image"], "Entrypoint": ["/bin/echo"]},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(json.dumps(config).encode(), "config.v1+json"),
        "layers": [layer],
    }
    index = {
        "schemaVersion": 2,
        "manifests": [blob(json.dumps(manifest).encode(), "manifest.v1+json")],
    }
    blobs["index.json"] = json.dumps(index).encode()
    blobs["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    with tarfile.open(file, "w") as archive:
        for name, content in blobs.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


DEBIAN = image.Suite(
    name="bookworm",
    packages=(
        *("python3", "python3-numpy", "libgomp1", "libopenblas0-pthread", "fio"),
        *("openmpi-bin", "mpich", "python3-mpi4py"),
    ),
)


@pytest.fixture(scope="session")
def debian() -> Path:
    """A Debian image made by our own build command (40 s), kept for later runs by its request."""
    key = image.recipe_digest(DEBIAN).removeprefix("sha256:")[:16]
    kept = Path(f"/var/tmp/flowos-test-images-{os.geteuid()}") / key
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(kept))
        with suppress(EnvironmentRefused):
            if (seen := image.verify("debian")).ok:
                return seen.path
        try:
            return image.build_image(DEBIAN, name="debian").path
        except EnvironmentRefused:  # the mirror failed temporarily
            return image.build_image(DEBIAN, name="debian").path


def printed(path: Path, *argv: str) -> str:
    with here().ready(Environment(image=here().image_at(path), runtime="auto")) as ready:
        outcome = here().run(Launch(argv=argv, env=ready.env))
    assert outcome.ok, outcome
    return outcome.stdout.decode()


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """What a test launches takes its processes, mounts, descriptors and folders along."""
    here().run(Launch(argv=("/bin/true",)))
    before = what_is_there()
    yield
    until = time.monotonic() + PATIENCE_SECONDS
    while (left := what_is_there() - before) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left


def what_is_there() -> set[str]:
    """Also what is on its way out: of a test before, or in the kernel."""
    folders = (path.name for path in here().folder().iterdir() if path.is_dir())
    return {
        *(f"process {pid}: {words}" for pid, words in descendants().items()),
        *(f"mount {line}" for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        *(f"descriptor {fd}" for fd in open_descriptors()),
        *(f"folder {name}" for name in folders),
    }


def descendants() -> dict[int, str]:
    """Processes below this one, orphans too, without zombies; but not the one by which podman keeps
    its namespaces, which goes with the environment."""
    below: dict[int, str] = {}
    todo = [os.getpid()]
    while todo:
        for pid in children_of(todo.pop()):
            words = words_of(pid)
            if pid not in below and words and not words.strip().endswith("podman"):
                below[pid] = words
                todo.append(pid)
    return below


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    tasks: list[Path] = []
    with suppress(OSError):  # it ends meanwhile
        tasks += Path(f"/proc/{pid}/task").iterdir()
    for task in tasks:
        with suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def words_of(pid: int) -> str:
    """Its command line; a zombie has none."""
    try:
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except OSError:
        return ""


def all_gone(pids: Sequence[int]) -> bool:
    """Waits for their end."""
    return comes(lambda: not any(map(words_of, pids)))


def open_descriptors() -> list[str]:
    """Closed ones drop out, and so does that of the listing itself."""
    found = [path.name for path in Path("/proc/self/fd").iterdir()]
    return sorted(fd for fd in found if Path(f"/proc/self/fd/{fd}").is_symlink())


def mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()
