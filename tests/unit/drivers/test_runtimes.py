"""What the runtimes build and refuse."""

from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.drivers import RUNTIMES, Reason, bind_for_us, runtime_named
from flowos.model import Environment, Facts, Image, Launch, LaunchFailed, Tool, Tried

AT = PurePath("/tmp/flowos-7/abc/0")
IMAGE = Image(form="squashfs", digest="sha256:0", source=PurePath("/images/a.sqfs"))
FACTS = Facts(
    host="h", system="s", kernel="k", architecture="a", cpu_model="c", cpus=(), allowed=()
)


def test_bare_is_usable_everywhere_and_adds_nothing() -> None:
    bare = runtime_named("bare")
    assert bare.usable(FACTS) == ()
    assert bare.variants(FACTS) == (bare,)
    assert bare.wrap(("a", "b"), Launch(argv=("b",)), AT) == ("a", "b")


def test_bare_refuses_an_image_and_names_it() -> None:
    bare = runtime_named("bare")
    launch = Launch(argv=("b",), env=Environment(image=IMAGE))
    with pytest.raises(LaunchFailed, match=r"/images/a\.sqfs: the bare runtime enters no image"):
        bare.wrap(("a",), launch, AT)
    assert bare.forms(FACTS) == ()
    for meet in (bare.setup, bare.entered, bare.teardown):
        with pytest.raises(
            LaunchFailed, match=r"/images/a\.sqfs: the bare runtime enters no image"
        ):
            meet(IMAGE, AT)


def test_bare_refuses_a_bind_and_names_it() -> None:
    launch = Launch(argv=("b",), env=Environment(binds=(("/data", "/mnt"),)))
    with pytest.raises(LaunchFailed, match=r"bind /data at /mnt: .* leave out binds"):
        runtime_named("bare").wrap(("a",), launch, AT)


def test_an_unknown_runtime_is_one_line_that_names_the_known() -> None:
    with pytest.raises(LaunchFailed) as told:
        runtime_named("docker")
    assert (
        str(told.value)
        == "unknown runtime 'docker'; known are apptainer, bare, bwrap, ch-run, podman, qemu"
    )


def test_a_reason_may_come_without_a_remedy() -> None:
    assert Reason(code="no-fuse", text="no /dev/fuse").remedy == ""


def test_an_environment_is_told_apart_by_image_and_runtime() -> None:
    assert Environment().label == "bare"
    assert Environment(image=IMAGE, runtime="ch-run").label == "a.sqfs@ch-run"


def node(*tools: str, tried: dict[str, bool] | None = None, says: str = "") -> Facts:
    return replace(
        FACTS,
        tools=tuple(Tool(name=t, version="", path=PurePath("/bin", t)) for t in tools),
        tried=tuple(Tried(name=n, works=w, says=says) for n, w in (tried or {}).items()),
    )


def test_ch_run_enters_a_squashfs_only_where_fuse_may_be_used() -> None:
    ch_run = runtime_named("ch-run")
    assert ch_run.forms(node("ch-run")) == ("folder", "squashfs")
    assert ch_run.forms(node("ch-run", tried={"fuse": False})) == ("folder",)
    both = {"fuse": True, "ch-run squashfs": False}
    assert ch_run.forms(node("ch-run", tried=both)) == ("folder",)


@pytest.mark.parametrize(
    ("tools", "forms"),
    [
        ("bwrap squashfuse_ll fusermount3", ("folder", "squashfs")),
        ("bwrap squashfuse fusermount", ("folder", "squashfs")),
        ("bwrap fusermount3", ("folder",)),
        ("bwrap squashfuse_ll", ("folder",)),
    ],
)
def test_bwrap_needs_a_server_and_a_mounter_for_a_squashfs(
    tools: str, forms: tuple[str, ...]
) -> None:
    bwrap = runtime_named("bwrap")
    assert bwrap.forms(node(*tools.split())) == forms
    assert bwrap.forms(node(*tools.split(), tried={"fuse": False})) == ("folder",)


def test_apptainer_enters_a_sif_where_it_enters_a_squashfs() -> None:
    apptainer = runtime_named("apptainer")
    assert apptainer.forms(node("apptainer")) == ("folder", "squashfs", "sif")
    assert apptainer.forms(node("apptainer", tried={"fuse": False})) == ("folder",)
    setuid = {"fuse": False, "apptainer squashfs": True}
    assert apptainer.forms(node("apptainer", tried=setuid)) == ("folder", "squashfs", "sif")
    assert apptainer.forms(node("apptainer", tried={"apptainer sif": False})) == (
        "folder",
        "squashfs",
    )


def test_podman_that_was_not_tried_is_judged_by_what_it_needs() -> None:
    lacking = node("podman", tried={"subordinate ids": False}, says="none for ada in /etc/subuid")
    (reason,) = runtime_named("podman").usable(lacking)
    assert reason.code == "no-subordinate-ids"


def test_what_a_runtime_says_itself_counts_before_what_it_needs() -> None:
    tried = {"user namespaces": False, "bwrap folder": False}
    facts = node("bwrap", tried=tried, says="bwrap: setting up uid map: Permission denied")
    (reason,) = runtime_named("bwrap").usable(facts)
    assert reason.code == "user-namespaces-restricted"


def test_reasons_come_in_the_order_of_the_tries_and_each_once_as_it_was_first_said() -> None:
    says = {
        "podman folder": "Error: cgroups in hybrid mode not supported",
        "podman squashfs": "odd: one",
        "podman sif": "odd: two",
    }
    tried = tuple(Tried(name=name, works=False, says=said) for name, said in says.items())
    reasons = runtime_named("podman").usable(replace(node("podman"), tried=tried))
    assert [(r.code, r.text) for r in reasons] == [
        ("hybrid-cgroups", "crun refuses cgroup v1 and v2 side by side"),
        ("unknown", "odd: one"),
    ]


@pytest.mark.parametrize("word", ["a\ud800", "\udc80b", "\udfff"])
@pytest.mark.parametrize("name", ["podman", "apptainer"])
def test_runtimes_in_go_refuse_words_that_are_no_utf8(name: str, word: str) -> None:
    """Linux gives bytes that are none as U+DC80 to U+DCFF; no surrogate has a UTF-8."""
    runtime = runtime_named(name)
    image = runtime.entered(replace(IMAGE, form="folder"), PurePath("/tmp/flowos-7/abc/1"))
    inside = Launch(argv=("x",), env=Environment(image=image))
    with pytest.raises(LaunchFailed, match="takes only UTF-8"):
        runtime.wrap(("init", word), inside, AT)
    assert runtime.wrap(("\ud7ff", "\ue000"), inside, AT)[-2:] == ("\ud7ff", "\ue000")


def test_a_runtime_has_no_trait_that_it_does_not_state_but_read_only_binds() -> None:
    traits = runtime_named("bare").traits
    assert [name for name in traits.__dataclass_fields__ if getattr(traits, name)] == [
        "binds_read_only"
    ]


@pytest.mark.parametrize(
    ("trait", "names"),
    [
        ("makes_targets", ["apptainer", "podman", "qemu"]),
        ("binds_read_only", ["apptainer", "bare", "bwrap", "podman", "qemu"]),
        ("own_terminal", ["podman", "qemu"]),
        ("accelerator", ["qemu"]),
        ("extra_streams", ["podman"]),
        ("has_helpers", ["apptainer", "podman"]),
    ],
)
def test_engines_do_what_plain_programs_leave_to_their_caller(trait: str, names: list[str]) -> None:
    found = [name for name in sorted(RUNTIMES) if getattr(RUNTIMES[name].traits, trait)]
    assert found == names


def test_a_bind_of_our_own_is_read_only_where_the_runtime_can() -> None:
    assert bind_for_us("bwrap", "/a", "/b") == ("/a", "/b:ro")
    assert bind_for_us("ch-run", "/a", "/b") == ("/a", "/b")
