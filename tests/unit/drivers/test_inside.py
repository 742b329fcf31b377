"""What a launch in an image sees of the host."""

from pathlib import PurePath

import pytest

from flowos.drivers import Placed, path_inside, path_outside, variables_inside, with_devices
from flowos.drivers._inside import DEFAULT_PATH
from flowos.model import Environment, Image, ImageConfig, Pairs

BINDS = (("/home/u/project", "/inside:ro"), ("/home/u", "/home/u"), ("/data", "/data"))
AT = PurePath("/tmp/flowos-7/s/devices")


@pytest.mark.parametrize(
    ("outside", "inside"),
    [
        ("/tmp/a", "/tmp/a"),
        ("/dev/shm", "/dev/shm"),
        ("/data", "/data"),
        ("/data/x/y", "/data/x/y"),
        ("/home/u/notes", "/home/u/notes"),
        ("/home/u/project/a.c", "/inside/a.c"),
        ("/database", None),
        ("/home", None),
        ("/etc/passwd", None),
        ("relative", None),
    ],
)
def test_a_path_is_seen_where_the_nearest_bind_puts_it(outside: str, inside: str | None) -> None:
    found = path_inside(PurePath(outside), BINDS)
    assert found == (None if inside is None else PurePath(inside))


def test_a_path_that_was_told_inside_is_found_again_outside() -> None:
    assert path_outside(PurePath("/inside/b/out"), BINDS) == PurePath("/home/u/project/b/out")
    assert path_outside(PurePath("/tmp/x"), BINDS) == PurePath("/tmp/x")
    assert path_outside(PurePath("/usr/share/x"), BINDS) is None


def image(*variables: tuple[str, str]) -> Image:
    config = ImageConfig(variables=variables)
    return Image(form="folder", digest="tree-sha256:0", source=PurePath("/i"), config=config)


OWN = (("HOME", "/h"), ("TMPDIR", "/tmp"), ("OMP_NUM_THREADS", "2"), ("PYTHONNOUSERSITE", "1"))


@pytest.mark.parametrize(
    ("name", "layers", "value"),
    [
        ("PATH", {}, DEFAULT_PATH),
        ("PATH", {"image": "/opt/bin", "host": "/usr/games"}, "/opt/bin"),
        ("HOME", {"image": "/root", "host": "/home/u"}, "/h"),
        ("HOME", {"env": "/e"}, "/e"),
        ("PYTHONNOUSERSITE", {"image": "", "host": ""}, "1"),
        ("OMP_NUM_THREADS", {}, "2"),
        ("OMP_NUM_THREADS", {"host": "8"}, "8"),
        ("OMP_NUM_THREADS", {"host": "8", "env": "3"}, "3"),
        ("OMP_NUM_THREADS", {"host": "8", "env": "3", "task": "1"}, "1"),
        ("TMPDIR", {"host": "/scratch/mine"}, "/tmp"),
        ("TMPDIR", {"host": "/tmp/mine"}, "/tmp/mine"),
        ("LD_LIBRARY_PATH", {"host": "/opt/cuda"}, None),
        ("PYTHONPATH", {"host": "/home/u/lib"}, None),
        ("SECRET", {"host": "x"}, None),
        ("SECRET", {"host": "x", "task": "x y$z,=\n\"q'`id`"}, "x y$z,=\n\"q'`id`"),
        ("PMIX_RANK", {"host": "1"}, "1"),
        ("SLURM_PROCID", {"host": "1"}, "1"),
        ("CUDA_VISIBLE_DEVICES", {"host": "0"}, "0"),
        ("TERM", {"host": "xterm"}, "xterm"),
    ],
)
def test_the_last_word_on_a_variable_is_the_nearest_to_the_task(
    name: str, layers: dict[str, str], value: str | None
) -> None:
    def layer(which: str) -> Pairs:
        return ((name, layers[which]),) if which in layers else ()

    env = Environment(image=image(*layer("image")), variables=layer("env"))
    told = variables_inside(env, own=OWN, host=dict(layer("host")), task=layer("task"))
    assert dict(told).get(name) == value
    assert len(dict(told)) == len(told)


def test_a_command_that_inherits_nothing_gets_nothing_of_the_host() -> None:
    told = variables_inside(Environment(), own=(), host={"TERM": "x"}, task=(), inherit=False)
    assert told == (("PATH", DEFAULT_PATH),)


def test_devices_come_before_the_images_own_libraries_and_after_its_programs() -> None:
    env = Environment(
        image=image(("LD_LIBRARY_PATH", "/opt/lib"), ("PATH", "/opt/bin")),
        binds=(("/a", "/b"),),
        devices=("v.com/c=d",),
        variables=(("X", "mine"),),
    )
    placed = Placed(
        binds=(("/l", "/m"),),
        variables=(("X", "theirs"), ("Y", "1")),
        libraries=("libcuda.so",),
        programs=("nvidia-smi",),
    )
    made = with_devices(env, placed, AT)
    assert made.devices == ()
    assert made.binds == (("/a", "/b"), ("/l", "/m"))
    assert dict(made.variables) == {
        "X": "mine",
        "Y": "1",
        "LD_LIBRARY_PATH": f"{AT}/lib:/opt/lib",
        "PATH": f"/opt/bin:{AT}/bin",
    }


def test_devices_without_an_image_or_files_change_only_what_they_name() -> None:
    bare = with_devices(Environment(), Placed(libraries=("libx.so",)), AT)
    assert bare.variables == (("LD_LIBRARY_PATH", f"{AT}/lib"),)
    assert with_devices(Environment(), Placed(), AT) == Environment()
