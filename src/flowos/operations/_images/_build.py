"""Images built by recipes: a Dockerfile, a Debian suite, a definition file of Apptainer."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from flowos._dataclasses import dataclass, replace
from flowos._user_folders import expanded
from flowos.drivers.images import apptainer, apt, buildah, charliecloud, dockerfile, mmdebstrap
from flowos.engine import here
from flowos.model import Argv, EnvironmentRefused, OnProgress, Pairs, UsageError
from flowos.operations._images._export import write_oci_archive, write_plain_tar
from flowos.operations._images._layers import digest_of, whole
from flowos.operations._images._names import name_from
from flowos.operations._images._scratch import builders_storage, full_disk, scratch
from flowos.operations._images._sources import (
    Opened,
    config_by_scripts,
    open_folder,
    open_layout_folder,
    open_source,
)
from flowos.operations._images._tools import (
    Ran,
    call,
    call_watched,
    install_line,
    is_here,
    need,
    version,
)
from flowos.report import safe

BUILDERS = (*buildah.PROGRAMS, "ch-image")
_MENDED_BY = install_line("buildah uidmap")
_CHECK_SECONDS = 20.0
_CLEANING_SECONDS = 30.0
_LAST_LINES = 8
_MAX_LETTERS = 40
_APT = Path("/etc/apt")
_BASE = "localhost/flowos-base"
_BUILT = "built"
_RECIPES = ("Dockerfile", "Containerfile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dockerfile:
    """bases: (name after FROM, image file in the library) that stand for a registry's images."""

    file: Path
    context: Path
    builder: str = ""
    arguments: Pairs = ()
    bases: tuple[tuple[str, Path], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A Debian or Ubuntu suite; the archives are those of this machine."""

    name: str
    packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A definition file of Apptainer or Singularity."""

    file: Path


Recipe = Dockerfile | Suite | Definition


def recipe_at(
    path: Path,
    *,
    context: Path | None = None,
    builder: str = "",
    arguments: Pairs = (),
    bases: tuple[tuple[str, Path], ...] = (),
) -> Recipe:
    """The recipe in this file or folder. Raises EnvironmentRefused if there is none."""
    path = expanded(path).absolute()
    file = next((path / name for name in _RECIPES if (path / name).is_file()), path)
    if not file.is_file():
        raise EnvironmentRefused(f"{path}: no recipe there ({' or '.join(_RECIPES)}, or a file)")
    if file.suffix == ".def":
        return Definition(file=file)
    folder = (context or file.parent).absolute()
    if not folder.is_dir():
        raise EnvironmentRefused(f"{folder}: the context is no folder")
    return Dockerfile(file=file, context=folder, builder=builder, arguments=arguments, bases=bases)


def name_of(recipe: Recipe) -> str:
    """The default name of an image."""
    if isinstance(recipe, Suite):
        return name_from("-".join((recipe.name, *recipe.packages))[:_MAX_LETTERS])
    is_plain = recipe.file.name in _RECIPES
    return name_from(recipe.file.parent.name if is_plain else recipe.file.name)


def described(recipe: Recipe) -> str:
    """The recipe as it is recorded: without the values of build arguments, which may be secrets."""
    if isinstance(recipe, Suite):
        return " ".join((recipe.name, *recipe.packages))
    return str(recipe.file)


def recipe_digest(recipe: Recipe) -> str:
    if not isinstance(recipe, Suite):
        return digest_of(whole(recipe.file))
    text = json.dumps([recipe.name, sorted(recipe.packages)])
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def bases_of(recipe: Recipe) -> tuple[str, ...]:
    """The images that it begins with. Raises EnvironmentRefused if its builder would fail later."""
    if not isinstance(recipe, Dockerfile):
        return ()
    try:
        text = recipe.file.read_text(errors="replace")
        named = dockerfile.bases(text)
    except OSError as error:
        raise EnvironmentRefused(f"{recipe.file}: {error.strerror}") from error
    except ValueError as error:
        raise EnvironmentRefused(f"{recipe.file}: {error}") from error
    for path in dockerfile.copied(text):
        if not os.path.lexists(recipe.context / path):
            raise EnvironmentRefused(
                f"{recipe.file}: it copies {path}, which is not in {recipe.context}"
            )
    return named


def built(recipe: Recipe, work: Path, architecture: str, on_progress: OnProgress) -> Opened:
    """Build an image.

    Raises EnvironmentRefused if no builder works here, or with its last lines if the recipe failed.
    """
    if isinstance(recipe, Suite):
        return _from_suite(recipe, work, architecture, on_progress)
    if isinstance(recipe, Definition):
        return _from_definition(recipe, work, on_progress)
    builder = chosen_builder(recipe.builder)
    by = _by_charliecloud if builder == "ch-image" else _by_buildah
    return by(builder, recipe, work, architecture, on_progress)


def chosen_builder(asked: str) -> str:
    """The first that works here, or the requested one. Raises EnvironmentRefused if none."""
    if asked and asked not in BUILDERS:
        raise UsageError(f"no builder is called {asked!r}; known are {', '.join(BUILDERS)}")
    reasons = []
    for program in (asked,) if asked else BUILDERS:
        reason = _unusable(program)
        if not reason:
            return program
        reasons.append(f"{program}: {reason}")
    raise EnvironmentRefused(f"nothing builds here ({'; '.join(reasons)}); mend: {_MENDED_BY}")


def suite_plan(suite: Suite, work: Path, architecture: str) -> Argv:
    """The command line that makes a suite. Raises UsageError for an invalid name."""
    try:
        mmdebstrap.check(suite.name, suite.packages)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return mmdebstrap.make(
        suite.name,
        work / "suite.tar",
        packages=suite.packages,
        sources=apt.lines_for(suite.name, _apt_sources()),
        options=work / "apt.conf",
        architecture=architecture,
        is_root=os.geteuid() == 0,
    )


def _from_suite(suite: Suite, work: Path, architecture: str, on_progress: OnProgress) -> Opened:
    argv = suite_plan(suite, work, architecture)
    need("mmdebstrap", mmdebstrap.PACKAGE, "make a Debian suite with")
    dumped = call(apt.dump()).stdout if is_here("apt-config") else ""
    (work / "apt.conf").write_text(apt.options_taken(dumped))
    doing = f"making {suite.name} with mmdebstrap"
    with scratch(others_pass=True) as room:
        ran = call_watched(argv, on_progress, doing, scratch=room, grace_seconds=_CLEANING_SECONDS)
    if ran.code != 0:
        full = full_disk(work) if mmdebstrap.is_full(ran.stderr) else ""
        raise EnvironmentRefused(f"suite {suite.name}: {full or mmdebstrap.complaint(ran.stderr)}")
    opened = open_source(work / "suite.tar", "archive", work, architecture)
    tool = version(mmdebstrap.version(), mmdebstrap.read_version)
    return replace(opened, made_with=(*opened.made_with, tool), architecture=architecture)


def _from_definition(recipe: Definition, work: Path, on_progress: OnProgress) -> Opened:
    program = next((name for name in apptainer.PROGRAMS if is_here(name)), "")
    if not program:
        raise EnvironmentRefused(
            f"{recipe.file}: no apptainer to build it with; mend: {apptainer.INSTALL}, or write a "
            "Dockerfile"
        )
    to = work / "built"
    argv = apptainer.build(program, recipe.file, to)
    doing = f"building with {program}"
    ran = call_watched(
        argv, on_progress, doing, scratch=work, cwd=Path.cwd()
    )  # %files is relative to it
    _check_built(ran, recipe.file)
    tool = version(apptainer.version(program), apptainer.read_version)
    opened = open_folder(to, work, "")
    return replace(opened, config=config_by_scripts(opened.tree), made_with=(tool,))


def _by_buildah(
    named: str, recipe: Dockerfile, work: Path, architecture: str, on_progress: OnProgress
) -> Opened:
    id_file, layout = work / "id", work / "layout"
    with builders_storage() as storage:
        program = buildah.start(named, storage)
        call(buildah.drop_containers(program))
        with _bases_loaded(program, recipe, architecture, work):
            argv = buildah_argv(program, recipe, id_file, architecture)
            ran = call_watched(
                argv,
                on_progress,
                f"building with {named}",
                scratch=work,
                variables=recipe.arguments,
            )
            _check_built(ran, recipe.file)
            built_id = id_file.read_text().strip()
            _must(call(buildah.save(program, built_id, layout), scratch=work), f"{named}'s image")
    opened = open_layout_folder(layout, work, architecture)
    return replace(opened, made_with=(version(buildah.version(program), buildah.read_version),))


@contextmanager
def _bases_loaded(
    program: Argv, recipe: Dockerfile, architecture: str, work: Path
) -> Iterator[None]:
    """Load the base images from the library into the builder's storage for the time of a build.

    They are removed with the steps built on them. If a killed build left some, the steps built on
    them cannot be distinguished from others, and the storage is cleared.
    """
    if not recipe.bases:
        yield
        return
    if _ids(buildah.images(program, _BASE)):
        call(buildah.clear(program))
    before = _ids(buildah.images(program))
    try:
        for name, image in recipe.bases:
            _load(program, name, image, architecture, work)
        yield
    finally:
        after = _ids(buildah.images(program))
        if ours := [each for each in after if each not in before]:
            call(buildah.remove(program, ours))


def _ids(argv: Argv) -> list[str]:
    return list(dict.fromkeys(call(argv).stdout.split()))


def _load(program: Argv, name: str, image: Path, architecture: str, work: Path) -> None:
    """Load it under a name of ours too, which shows that it is a base if this build is killed."""
    archive = work / "base.oci"
    write_oci_archive(image, archive, name, architecture, work)
    loaded = _must(call(buildah.load(program, archive), scratch=work), f"base {name}")
    digest = here().image_at(image).digest.rpartition(":")[2]
    for called in (f"{_BASE}:{digest}", name):
        _must(call(buildah.tag(program, loaded.stdout.split()[-1], called)), f"base {name}")
    archive.unlink()


def _by_charliecloud(
    _program: str, recipe: Dockerfile, work: Path, architecture: str, on_progress: OnProgress
) -> Opened:
    start, storage = ch_image(), work / "ch-image"
    for base, image in recipe.bases:
        archive = work / "base.tar"
        write_plain_tar(image, archive, work)
        argv = charliecloud.load(start, archive, storage=storage, name=base)
        _must(call(argv, scratch=work), f"base {base}")
        archive.unlink()
    argv = charliecloud_argv(recipe, storage)
    doing = "building with ch-image"
    ran = call_watched(argv, on_progress, doing, scratch=work, variables=recipe.arguments)
    _check_built(ran, recipe.file)
    root = Path(charliecloud.place(storage, _BUILT))
    opened = open_folder(root, work, architecture)
    opened.tree.entries.pop("ch", None)  # ch-image's own notes, with the time in them
    config = charliecloud.read_metadata((root / charliecloud.METADATA).read_bytes())
    tool = ("ch-image", version(charliecloud.version(start), charliecloud.read_version)[1])
    return replace(opened, config=config, made_with=(tool,))


def buildah_argv(program: Argv, recipe: Dockerfile, id_file: Path, architecture: str) -> Argv:
    return buildah.build(
        program,
        recipe.file,
        recipe.context,
        id_file=id_file,
        architecture=architecture,
        arguments=[name for name, _ in recipe.arguments],
    )


def charliecloud_argv(recipe: Dockerfile, storage: Path) -> Argv:
    return charliecloud.build(
        ch_image(),
        recipe.file,
        recipe.context,
        storage=storage,
        name=_BUILT,
        arguments=[name for name, _ in recipe.arguments],
    )


def ch_image() -> tuple[str, ...]:
    """Started by the python3 next to it: the first in PATH may lack its modules."""
    program = shutil.which("ch-image") or "ch-image"
    python3 = Path(program).with_name("python3")
    return (str(python3), program) if python3.is_file() else (program,)


def _unusable(program: str) -> str:
    if not is_here(program):
        return "not installed"
    if program == "ch-image":
        ran = call((*ch_image(), "--version"), seconds=_CHECK_SECONDS)
    else:
        with builders_storage() as storage:
            argv = buildah.check(buildah.start(program, storage))
            ran = call(argv, seconds=_CHECK_SECONDS)
    return "" if ran.code == 0 else " ".join(ran.stderr.strip().splitlines()[-1:])[:200]


def _check_built(ran: Ran, recipe: Path) -> None:
    if ran.code == 0:
        return
    lines = [line for line in (ran.stdout + "\n" + ran.stderr).splitlines() if line.strip()]
    last = "".join(f"\n  | {safe(line[-300:])}" for line in lines[-_LAST_LINES:])
    raise EnvironmentRefused(f"{recipe}: building failed; its last lines:{last}")


def _must(ran: Ran, what: str) -> Ran:
    if ran.code != 0:
        raise EnvironmentRefused(f"{what}: {safe(' '.join(ran.stderr.split())[-300:])}")
    return ran


def _apt_sources() -> tuple[apt.AptSource, ...]:
    """The sources in the order of their files' names, as apt reads them."""
    parts = sorted((_APT / "sources.list.d").glob("*"))
    files = [_APT / "sources.list", *parts]
    readers: dict[str, Callable[[str], tuple[apt.AptSource, ...]]] = {
        ".list": apt.read_list,
        ".sources": apt.read_deb822,
    }
    return tuple(
        source
        for file in files
        if file.suffix in readers and os.access(file, os.R_OK)
        for source in readers[file.suffix](file.read_text(errors="replace"))
    )
