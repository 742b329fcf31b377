"""Builds that are refused or only shown, by each builder."""

import platform
from pathlib import Path

import pytest

from flowos.model import EnvironmentRefused
from flowos.operations import image

from .conftest import Images
from .test_images import BUILDERS, built_by, recipe_in


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, images: Images) -> Path:
    """A Dockerfile whose base, `small`, is in the library."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return recipe_in(tmp_path, images)


def test_control_characters_that_a_failed_build_prints_are_not_shown(recipe: Path) -> None:
    # buildah may lose what a command prints right before its end
    text = r"FROM small" + "\n" + r"RUN printf '\033[31m\033]0;owned\007red\n'; sleep 1; exit 1"
    (recipe / "Dockerfile").write_text(text)
    with pytest.raises(EnvironmentRefused, match=r"\| \?\[31m\?\]0;owned\?red\n"):
        built_by("buildah", recipe)


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_build_for_another_processor_than_its_programs_are_for_is_refused(
    builder: str, recipe: Path, tmp_path: Path
) -> None:
    own, other = ("amd64", "arm64") if platform.machine() == "x86_64" else ("arm64", "amd64")
    (recipe / "Dockerfile").write_text("FROM small")
    library = tmp_path / "data/flowos/images"
    before = set(library.iterdir())
    asked = image.recipe_at(recipe, builder=builder)
    with pytest.raises(EnvironmentRefused, match=f"Dockerfile is for {own}, not for {other}"):
        image.build_image(asked, name="x", architecture=other)
    assert set(library.iterdir()) == before


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_dry_run_shows_how_a_base_of_the_library_is_loaded(builder: str, recipe: Path) -> None:
    planned = image.planned_build(image.recipe_at(recipe, builder=builder))
    digest = image.find("small").stem[:12]
    assert planned[0][:4] == ("flowos", "image", "export", digest)
    archive = planned[0][4]
    assert any(archive in word for word in planned[1])
    assert "small" in {planned[1][-1], planned[2][-1]}
    assert "build" in planned[-2]
    assert planned[-1][0] == "mksquashfs"
