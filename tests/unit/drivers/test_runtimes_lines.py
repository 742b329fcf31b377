"""The runtimes' command lines, compared whole with tests/golden/runtimes.

FLOWOS_WRITE_GOLDEN=1 writes them anew; look at the difference before it is committed. A missing
golden file is a failure. One word a line, what was given quoted as a shell would want it.
"""

import os
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePath

import pytest

from flowos.drivers import LinkStep, Runtime, SetupStep, kernel_line, runtime_named
from flowos.model import (
    Argv,
    Boot,
    Environment,
    Facts,
    Form,
    Image,
    Launch,
    LaunchFailed,
    LinuxKernel,
    Needs,
    Pairs,
    Tool,
    Tried,
)

GOLDEN = Path(__file__).parents[2] / "golden/runtimes"
AT, MOUNT = PurePath("/tmp/flowos-7/abc/0"), PurePath("/tmp/flowos-7/abc/1")
INNER = ("/tmp/flowos-7/abc/init", str(AT), "--", "prog", "a b")
BINDS: Pairs = (("/data/set 1", "/mnt/set 1"), ("/home/ada", "/home/ada"))
READ_ONLY: Pairs = (*BINDS, ("/opt/licences", "/opt/licences:ro"))
ODD: Pairs = (('/data/a,b:"c"', "/mnt/a,b:c"),)
DEVICES = ("nvidia.com/gpu=0", "acme.com/nic=hca1")


def facts(**versions: str) -> Facts:
    """A node with these programs; a _ stands for a - in a name."""
    names = {name.replace("_run", "-run"): version for name, version in versions.items()}
    return Facts(
        host="h",
        system="s",
        kernel="k",
        architecture="a",
        cpu_model="c",
        cpus=(),
        allowed=(),
        tools=tuple(
            Tool(name=n, version=v, path=PurePath("/usr/bin", n)) for n, v in names.items()
        ),
    )


def lines(
    runtime: Runtime,
    *,
    form: Form = "folder",
    binds: Pairs = (),
    devices: tuple[str, ...] = (),
    terminal: bool = False,
    boot: Boot | None = None,
) -> Iterator[Argv]:
    """Set-up, launch and teardown."""
    source = PurePath("/images/deb" if form == "folder" else f"/images/deb.{form}")
    image = Image(form=form, digest="sha256:0", source=source)
    env = Environment(image=runtime.entered(image, MOUNT), binds=binds, devices=devices, boot=boot)
    yield from map(words_of, runtime.setup(image, MOUNT))
    yield runtime.wrap(INNER, Launch(argv=INNER[3:], env=env, terminal=terminal), AT)
    yield from (launch.argv for launch in runtime.teardown(image, MOUNT))


def words_of(step: SetupStep | LinkStep) -> Argv:
    if isinstance(step, LinkStep):
        return ("(link)", str(step.link), str(step.target))
    return step.launch.argv


def check(name: str, argvs: Iterator[Argv]) -> None:
    text = "\n".join("".join(f"{shlex.quote(word)}\n" for word in argv) for argv in argvs)
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("FLOWOS_WRITE_GOLDEN"):
        file.write_text(text)
    assert file.is_file(), f"{file} is missing: see at the top"
    assert text == file.read_text()


def way(name: str, number: int = 0, **versions: str) -> Runtime:
    return runtime_named(name).variants(facts(**versions))[number]


CH_RUN = way("ch-run", ch_run="0.31")
BWRAP = way("bwrap", bwrap="0.8.0", squashfuse_ll="0.1.105")
PODMAN = way("podman", podman="4.3.1", crun="1.8.1", runc="1.1.5")
APPTAINER = way("apptainer", apptainer="1.5.3")


def test_ch_run_enters_a_folder() -> None:
    check("ch-run", lines(CH_RUN))


def test_ch_run_enters_a_squashfs_by_itself_with_binds() -> None:
    check("ch-run-binds", lines(CH_RUN, form="squashfs", binds=BINDS))


def test_ch_run_enters_a_squashfs_that_squashfuse_shows_where_that_is() -> None:
    helped = way("ch-run", ch_run="0.31", squashfuse_ll="0.1.105", fusermount3="3.14.0")
    check("ch-run-squashfuse", lines(helped, form="squashfs"))
    assert list(lines(helped)) == list(lines(CH_RUN))
    alone = way("ch-run", 1, ch_run="0.31", squashfuse_ll="0.1.105", fusermount3="3.14.0")
    assert alone == CH_RUN


@pytest.mark.parametrize("version", ["0.24", "0.30"])
def test_an_old_ch_run_is_told_not_to_show_the_home_folder(version: str) -> None:
    check("ch-run-old", lines(way("ch-run", ch_run=version)))


@pytest.mark.parametrize("version", ["0.31", "0.38", "0.40.1", "", "unknown"])
def test_a_newer_ch_run_or_one_of_unknown_version_is_not_told_so(version: str) -> None:
    assert list(lines(way("ch-run", ch_run=version))) == list(lines(CH_RUN))


def test_bwrap_enters_a_folder() -> None:
    check("bwrap", lines(BWRAP))


def test_bwrap_enters_a_squashfs_that_squashfuse_shows_with_binds() -> None:
    check("bwrap-binds", lines(BWRAP, form="squashfs", binds=READ_ONLY))


def test_bwrap_takes_any_path_as_it_is() -> None:
    check("bwrap-odd", lines(BWRAP, binds=ODD))


def test_the_faster_squashfuse_is_used_where_there_is_one() -> None:
    both = way("bwrap", bwrap="0.8.0", squashfuse="0.1.105", squashfuse_ll="0.1.105")
    slow = way("bwrap", bwrap="0.8.0", squashfuse="0.1.105")
    assert next(lines(both, form="squashfs"))[0] == "/usr/bin/squashfuse_ll"
    assert next(lines(slow, form="squashfs"))[0] == "/usr/bin/squashfuse"


def test_squashfuse_stays_in_the_foreground_while_the_image_is_used() -> None:
    (step,) = BWRAP.setup(Image(form="squashfs", digest="", source=PurePath("/a.sqfs")), MOUNT)
    assert isinstance(step, SetupStep)
    assert step.stays
    assert step.launch.argv == ("/usr/bin/squashfuse_ll", "-f", "/a.sqfs", str(MOUNT))


def test_podman_enters_a_link_to_a_folder_under_an_overlay_and_clears_up() -> None:
    check("podman", lines(PODMAN))


def test_podman_with_binds_devices_and_a_terminal() -> None:
    check(
        "podman-all",
        lines(PODMAN, binds=READ_ONLY + ODD, devices=DEVICES, terminal=True),
    )


def test_podman_by_runc_keeps_no_groups_as_only_crun_can() -> None:
    check("podman-runc", lines(way("podman", 1, podman="4.3.1", crun="1.8.1", runc="1.1.5")))


def test_podman_is_left_its_own_choice_where_neither_crun_nor_runc_is_in_path() -> None:
    check("podman-own-choice", lines(way("podman", podman="5.0")))


def test_podman_enters_nothing_that_was_not_set_up() -> None:
    image = Image(form="folder", digest="", source=PurePath("/images/deb"))
    launch = Launch(argv=("x",), env=Environment(image=image))
    with pytest.raises(
        LaunchFailed, match=r"^image /images/deb: podman enters it only after its set"
    ):
        PODMAN.wrap(("x",), launch, AT)


def test_apptainer_enters_a_folder() -> None:
    check("apptainer", lines(APPTAINER))


def test_apptainer_enters_a_sif_with_binds_and_devices() -> None:
    check("apptainer-all", lines(APPTAINER, form="sif", binds=READ_ONLY + ODD, devices=DEVICES))


def test_apptainer_is_tried_without_its_setuid_program_first() -> None:
    with_it = list(lines(way("apptainer", 1, apptainer="1.5.3")))
    assert "--userns" not in with_it[0]
    (without,) = lines(APPTAINER)
    assert tuple(word for word in without if word != "--userns") == with_it[0]


OPTIONS = ("--mount", "--bind", "--no-eval")


@pytest.mark.parametrize(
    ("program", "version", "knows"),
    [
        ("apptainer", "0.9", ("--bind",)),
        ("apptainer", "1.0.3", ("--mount",)),
        ("apptainer", "1.1.0", ("--mount", "--no-eval")),
        ("apptainer", "", ("--mount", "--no-eval")),
        ("singularity", "1.4.0", ("--mount", "--no-eval")),
        ("singularity", "2.6.1", ("--bind",)),
        ("singularity", "3.8.7", ("--bind",)),
        ("singularity", "3.9.0", ("--mount",)),
        ("singularity", "3.10.0", ("--mount", "--no-eval")),
        ("singularity", "4.1.0", ("--mount", "--no-eval")),
        ("singularity", "", ("--mount", "--no-eval")),
    ],
)
def test_a_version_gets_only_the_options_that_it_knows(
    program: str, version: str, knows: tuple[str, ...]
) -> None:
    (argv,) = lines(way("apptainer", 0, **{program: version}), binds=BINDS)
    assert argv[0] == f"/usr/bin/{program}"
    assert tuple(option for option in OPTIONS if option in argv) == knows


@pytest.mark.parametrize("version", ["1.5.0", "1.5.3", "2.0", ""])
def test_a_version_with_cdi_takes_a_device(version: str) -> None:
    runtime = way("apptainer", 0, apptainer=version)
    assert runtime.traits.reads_cdi
    assert "--device" in next(lines(runtime, devices=DEVICES))


@pytest.mark.parametrize(
    ("program", "version"), [("apptainer", "1.4.5"), ("singularity", "4.1.0"), ("singularity", "")]
)
def test_a_version_without_cdi_refuses_a_device(program: str, version: str) -> None:
    runtime = way("apptainer", 0, **{program: version})
    assert not runtime.traits.reads_cdi
    told = f"device nvidia.com/gpu=0: this version of {program} knows no CDI"
    with pytest.raises(LaunchFailed, match=told):
        list(lines(runtime, devices=DEVICES))


def test_an_old_singularity_gets_binds_by_colon_and_refuses_what_it_would_cut() -> None:
    old = way("apptainer", singularity="3.8.7")
    check("singularity-old", lines(old, binds=READ_ONLY))
    for odd, sign in (("/data/a,b", "comma"), ("/data/a:b", "colon")):
        with pytest.raises(LaunchFailed, match=rf"^bind {odd} at /mnt: singularity reads a {sign}"):
            list(lines(old, binds=((odd, "/mnt"),)))


def test_ch_run_takes_a_comma_and_refuses_a_colon() -> None:
    argv = next(lines(CH_RUN, binds=(("/data/a,b", "/mnt"),)))
    assert "/data/a,b:/mnt" in argv
    with pytest.raises(LaunchFailed, match=r"^bind /data at /mnt/a:b: ch-run reads a colon as"):
        list(lines(CH_RUN, binds=(("/data", "/mnt/a:b"),)))


def test_apptainer_enters_a_squashfs_that_squashfuse_shows_where_that_is() -> None:
    helped, _, alone, _ = (
        way("apptainer", n, apptainer="1.5.3", squashfuse_ll="0.1.105", fusermount3="3.14.0")
        for n in range(4)
    )
    check("apptainer-squashfuse", lines(helped, form="squashfs"))
    assert list(lines(helped)) == list(lines(APPTAINER)), "a folder needs no help"
    assert not APPTAINER.setup(Image(form="squashfs", digest="", source=PurePath("/a")), MOUNT)
    assert list(lines(alone, form="squashfs")) == list(lines(APPTAINER, form="squashfs"))


KERNEL = LinuxKernel(
    name="rt",
    release="6.1-rt",
    image=PurePath("/data/kernels/rt/image"),
    initrd=PurePath("/var/tmp/rt.cpio"),
    parameters=("isolcpus=1",),
)
QEMU = facts(**{"qemu-system-x86_64": "7.2"})


def test_qemu_boots_a_squashfs_by_tcg_where_kvm_cannot_be_asked() -> None:
    no_kvm = replace(QEMU, tried=(Tried(name="kvm", works=False, says="/dev/kvm: no"),))
    (tcg,) = runtime_named("qemu").variants(no_kvm)
    check("qemu", lines(tcg, form="squashfs", binds=READ_ONLY))


def test_qemu_boots_by_kvm_with_a_kernel_and_memory_that_were_named() -> None:
    kvm, tcg = runtime_named("qemu").variants(QEMU)
    assert (kvm.traits.accelerator, tcg.traits.accelerator) == ("kvm", "tcg")
    check("qemu-kvm", lines(kvm, form="squashfs", boot=Boot(kernel=KERNEL, memory_bytes=1 << 30)))
    assert kernel_line(KERNEL, "tcg").endswith("mitigations=off cryptomgr.notests isolcpus=1")


def test_qemu_takes_a_comma_in_a_path() -> None:
    image = Image(form="squashfs", digest="sha256:0", source=PurePath("/a,b.sqfs"))
    words = runtime_named("qemu").wrap(
        INNER, Launch(argv=INNER[3:], env=Environment(image=image)), AT
    )
    assert words[words.index("-blockdev") + 1].endswith("file.filename=/a,,b.sqfs")


@pytest.mark.parametrize("needs", [Needs(gpus=1), Needs(devices={"gpu-x": 1})])
def test_qemu_refuses_devices_of_the_machine_by_name(needs: Needs) -> None:
    image = Image(form="squashfs", digest="sha256:0", source=PurePath("/a.sqfs"))
    given = Launch(argv=INNER[3:], env=Environment(image=image), needs=needs)
    with pytest.raises(LaunchFailed, match=r"^device gpu(-x)?: a booted image \(qemu\) has no"):
        runtime_named("qemu").wrap(INNER, given, AT)
