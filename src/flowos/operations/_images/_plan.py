"""The command lines by which a recipe would be built, for --dry-run."""

from collections.abc import Iterator
from pathlib import Path

from flowos.drivers.images import apptainer, buildah, charliecloud
from flowos.model import Argv
from flowos.operations._images._build import (
    Definition,
    Dockerfile,
    Recipe,
    Suite,
    buildah_argv,
    ch_image,
    charliecloud_argv,
    chosen_builder,
    suite_plan,
)

_STORAGE = Path("STORAGE")
_LOADED = "ID"


def build_plan(recipe: Recipe, work: Path, architecture: str) -> tuple[Argv, ...]:
    """The command lines that would build it. Raises EnvironmentRefused if no builder works here."""
    if isinstance(recipe, Suite):
        return (suite_plan(recipe, work, architecture),)
    if isinstance(recipe, Definition):
        return (apptainer.build(apptainer.PROGRAMS[0], recipe.file, work / "built"),)
    if (program := chosen_builder(recipe.builder)) == "ch-image":
        loading = _loading_by_charliecloud(recipe, work)
        return (*loading, charliecloud_argv(recipe, work / "ch-image"))
    start = buildah.start(program, _STORAGE)
    build = buildah_argv(start, recipe, work / "id", architecture)
    return (*_loading_by_buildah(start, recipe, work), build)


def _loading_by_buildah(start: Argv, recipe: Dockerfile, work: Path) -> Iterator[Argv]:
    """ID stands for what the second command prints."""
    for name, image in recipe.bases:
        archive = work / f"{image.stem[:12]}.oci"
        yield _export(image, archive)
        yield buildah.load(start, archive)
        yield buildah.tag(start, _LOADED, name)


def _loading_by_charliecloud(recipe: Dockerfile, work: Path) -> Iterator[Argv]:
    for name, image in recipe.bases:
        archive = work / f"{image.stem[:12]}.tar"
        yield _export(image, archive)
        yield charliecloud.load(ch_image(), archive, storage=work / "ch-image", name=name)


def _export(image: Path, to: Path) -> Argv:
    """The stem of an image's file in the library is its digest."""
    return ("flowos", "image", "export", image.stem[:12], str(to))
