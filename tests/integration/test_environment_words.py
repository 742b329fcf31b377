"""`fo.environment`: from a person's words to data, and what is refused in one line."""

from pathlib import Path
from typing import Any

import pytest

import flowos as fo
from flowos.drivers.images import CONFIG
from flowos.model import BARE, Environment, Image, ImageConfig
from flowos.operations._images._names import changing, give_name, path_of
from flowos.operations.environment import split_runtime
from flowos.operations.exec import ExecRequest, own_command, planned, shell_command

HOSTILE = ("", "-x", "a b", "a&b", "[a|b]", "$(id)", "a\nb", "B\n", "\u00e9", "a" + "\0" * 999)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    folder = tmp_path / "an@image"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/sh").write_text("none")
    return folder


def test_bare_has_many_names() -> None:
    assert {fo.environment(), fo.environment("bare"), fo.environment("bare@bare")} == {BARE}
    assert fo.environment(BARE, variables={"A": "1"}).variables == (("A", "1"),)


def test_an_image_by_its_path_with_and_without_a_runtime(image: Path) -> None:
    plain = fo.environment(image)
    assert plain.image
    assert (plain.image.form, plain.image.source, plain.runtime) == ("folder", image, "auto")
    assert fo.environment(str(image)) == plain
    assert fo.environment(f"{image}@podman").runtime == "podman"
    assert fo.environment(f"{image}@auto") == plain


def test_a_word_is_split_into_a_name_and_a_runtime(image: Path) -> None:
    assert split_runtime("tiny@qemu:mem=1G") == ("tiny", "qemu:mem=1G")
    assert split_runtime(f"{image}@") == (str(image), "")
    for whole in ("", "tiny", "@bwrap", str(image), "host/tiny@sha256:0123"):
        assert split_runtime(whole) == (whole, "")


def test_an_environment_is_added_to(image: Path) -> None:
    first = fo.environment(image, binds=["/a:/b"], devices=["v.com/c=0"], variables=["A=1", "B=2"])
    more = fo.environment(first, binds=["/c"], devices=["v.com/c=1"], variables={"B": "3"})
    assert more.image == first.image
    assert more.binds == (("/a", "/b"), ("/c", "/c"))
    assert more.devices == ("v.com/c=0", "v.com/c=1")
    assert more.variables == (("A", "1"), ("B", "3"))


@pytest.mark.parametrize(
    ("given", "bind"),
    [
        ("/a", ("/a", "/a")),
        ("/a:/b", ("/a", "/b")),
        ("/a:/b:ro", ("/a", "/b:ro")),
        ("/a:/b:rw", ("/a", "/b")),
        ("/a::ro", ("/a", "/a:ro")),
        (Path("/a"), ("/a", "/a")),
        (("/a", "/b:ro"), ("/a", "/b:ro")),
        ((Path("/a:b"), Path("/c")), ("/a:b", "/c")),
    ],
)
def test_binds_are_read_as_people_write_them(image: Path, given: Any, bind: Any) -> None:
    assert fo.environment(image, binds=[given]).binds == (bind,)


def test_a_relative_source_is_meant_from_here(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(image)
    assert fo.environment(image, binds=["data:/d"]).binds == ((f"{image}/data", "/d"),)


@pytest.mark.parametrize(
    ("word", "more", "complaint"),
    [
        ("", {}, "environment '' (str): expected 'bare', or an image by its path or name"),
        (b"image", {}, "environment b'image' (bytes): expected"),
        ("./none.sqfs", {}, "no such image: there is nothing at "),
        ("no-such-name", {}, "no image is called 'no-such-name'"),
        (f"{__file__}@docker", {}, "unknown runtime 'docker'; known are auto, apptainer, bare"),
        ("bare@bwrap", {}, "environment bare: it needs no runtime, leave out @bwrap"),
        ("bare", {"binds": ["/a"]}, "environment bare: it has every file of this machine; leave"),
        ("bare", {"devices": ["v.com/c=0"]}, "environment bare: it has every device of this"),
        (None, {"binds": ["a:b"]}, "bind 'a:b' (str): expected SRC, SRC:DST or SRC:DST:ro"),
        (None, {"binds": ["/a:/b:no"]}, "bind '/a:/b:no' (str): expected SRC"),
        (None, {"binds": [":/b"]}, "bind ':/b' (str): expected SRC"),
        (None, {"devices": ["gpu0"]}, "device 'gpu0' (str): expected a CDI name"),
        (None, {"variables": ["A"]}, "variable 'A': expected NAME=VALUE"),
        (None, {"variables": ["=1"]}, "variable '=1': expected NAME=VALUE"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(
    word: Any, more: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(fo.EnvironmentRefused) as told:
        fo.environment(word, **more)
    assert complaint in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("text", [b"[" * 100_000, b"\xff\xfe", b"{"])
def test_an_image_whose_configuration_is_no_json_is_refused_in_one_line(
    text: bytes, image: Path
) -> None:
    (image / ".flowos").mkdir()
    (image / CONFIG).write_bytes(text)
    with pytest.raises(fo.EnvironmentRefused) as told:
        fo.environment(image)
    assert str(told.value) == f"image {image}: its {CONFIG} is no JSON"


def test_a_kernel_for_the_nodes_of_a_pool_stands_behind_the_environment(image: Path) -> None:
    assert fo.environment("bare:kernel=B_1.x-2") == Environment(kernel="B_1.x-2")
    made = fo.environment(f"{image}@bwrap:kernel=B")
    assert (made.runtime, made.kernel, made.boot) == ("bwrap", "B", None)
    named = image.rename(image.with_name("a:kernel=B"))
    assert fo.environment(named).kernel == ""


@pytest.mark.parametrize("word", [":kernel=B", *(f"bare:kernel={name}" for name in HOSTILE)])
def test_an_odd_name_of_a_kernel_is_one_line(word: str) -> None:
    with pytest.raises(fo.EnvironmentRefused, match="expected letters, digits, _") as told:
        fo.environment(word)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 400


def request(config: ImageConfig, *argv: str) -> ExecRequest:
    image = Image(
        form="folder", digest="tree-sha256:0", source=Path("/images/a.sqfs"), config=config
    )
    return ExecRequest(env=Environment(image=image, runtime="auto"), argv=argv)


def test_arguments_stand_for_the_images_command_behind_its_entry_point() -> None:
    config = ImageConfig(entrypoint=("python", "-m"), command=("app",), cwd=Path("/srv"))
    assert own_command(request(config)).argv == ("python", "-m", "app")
    assert own_command(request(config)).cwd == Path("/srv")
    assert own_command(request(config, "other", "-x")).argv == ("python", "-m", "other", "-x")
    assert own_command(request(ImageConfig(command=("sh",)), "ls")).argv == ("ls",)
    assert own_command(request(ImageConfig(), "a")).argv[-2:] == ("sh", "a")


def test_a_shell_names_where_it_is_and_bare_is_the_persons_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inside = shell_command(request(ImageConfig(), "-l"))
    assert dict(inside.env.variables)["PS1"] == "[a] \\w \\$ "
    assert inside.argv[-2:] == ("sh", "-l")
    monkeypatch.setenv("SHELL", "/bin/zsh")
    assert shell_command(ExecRequest(env=BARE, argv=())).argv == ("/bin/zsh",)


@pytest.mark.parametrize("word", ["tiny", "tiny@bwrap", "12345678"])
def test_a_shell_is_named_as_the_image_of_the_library_was(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    digest = f"sha256:{'12345678' * 8}"
    with changing():
        give_name("tiny", digest)
    image = Image(form="squashfs", digest=digest, source=path_of(digest))
    inside = shell_command(ExecRequest(env=Environment(image=image), argv=()), word)
    prompt = "[123456781234]" if word == "12345678" else "[tiny]"
    assert dict(inside.env.variables)["PS1"].split()[0] == prompt


def test_what_is_planned_bare_is_the_command_in_the_current_folder() -> None:
    plan = planned(ExecRequest(env=BARE, argv=("ls", "-l")))
    assert plan.argv[-3:] == ("--", "ls", "-l")
    assert (plan.environment, plan.cwd, plan.binds, plan.notes) == ("bare", Path.cwd(), (), ())


def test_a_folder_that_is_no_root_file_system_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    with pytest.raises(fo.EnvironmentRefused) as told:
        fo.environment(tmp_path)
    assert str(told.value) == (
        f"image {tmp_path}: this folder is no root file system: it has no /usr or /bin"
    )


def test_a_name_of_the_library_is_not_shadowed_by_what_lies_here(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    image.rename("dk")
    assert fo.environment("dk").image == fo.environment("./dk").image
    with changing():
        give_name("dk", f"sha256:{'0' * 64}")
    for word in ("dk", "dk@podman"):
        with pytest.raises(fo.EnvironmentRefused) as told:
            fo.environment(word)
        assert str(told.value) == (
            "environment dk: both an image of your library and ./dk: write ./dk for what lies "
            "here, sha256:000000000000 for the image, or rename one of them"
        )
    assert fo.environment("./dk").image
    assert fo.environment(Path("dk")).image == fo.environment("./dk").image
