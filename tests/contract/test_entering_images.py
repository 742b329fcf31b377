"""What every runtime that enters an image promises, whichever it is."""

import copy
from dataclasses import replace
from pathlib import PurePath

import pytest

from flowos.drivers import RUNTIME_PROGRAMS, RUNTIMES, Runtime, SetupStep, runtime_named
from flowos.drivers._binds import Bind, binds_of
from flowos.model import (
    Environment,
    Facts,
    Form,
    Image,
    Launch,
    LaunchFailed,
    Pairs,
    Tool,
    Tried,
)

ENTERING = [name for name in RUNTIMES if name != "bare"]
FORMS: tuple[Form, ...] = ("folder", "squashfs", "sif", "oci-archive")

SESSION = PurePath("/tmp/flowos-7/abc")
AT, MOUNT = SESSION / "0", SESSION / "1"
INNER = (f"{SESSION}/init", f"{AT}", "--", "prog", "", "a b", "--np", "$x", "{cores}", "-b")

PROGRAMS = (
    *(name for name in RUNTIME_PROGRAMS if name not in ("singularity", "newuidmap", "newgidmap")),
    *("squashfuse_ll", "fusermount3"),
)
FACTS = Facts(
    host="h",
    system="s",
    kernel="k",
    architecture="a",
    cpu_model="c",
    cpus=(),
    allowed=(),
    tools=tuple(Tool(name=n, version="", path=PurePath("/opt/bin", n)) for n in PROGRAMS),
)
NOTHING = replace(FACTS, tools=())
FORM: dict[str, Form] = {"qemu": "squashfs"}
"""Of an image that any runtime enters: a folder, but where it enters none."""


def image(form: Form = "folder", source: str = "/images/a") -> Image:
    return Image(form=form, digest="sha256:0", source=PurePath(source))


def image_for(name: str) -> Image:
    return image(FORM.get(name, "folder"))


def line(
    runtime: Runtime,
    env: Environment,
    *,
    variables: Pairs = (),
) -> tuple[str, ...]:
    """The command line of a launch in an environment that was set up."""
    assert env.image
    entered = replace(env, image=runtime.entered(env.image, MOUNT))
    launch = Launch(argv=INNER[3:], env=entered, variables=variables)
    return runtime.wrap(INNER, launch, AT)


def line_or_refusal(runtime: Runtime, env: Environment) -> tuple[str, ...] | str:
    try:
        return line(runtime, env)
    except LaunchFailed as refused:
        return str(refused)


@pytest.mark.parametrize("name", ENTERING)
def test_the_inner_words_come_last_and_unchanged(name: str) -> None:
    argv = line(runtime_named(name), Environment(image=image_for(name)))
    assert argv[-len(INNER) :] == INNER
    assert all(argv[: -len(INNER)])


def test_bare_adds_nothing() -> None:
    assert runtime_named("bare").wrap(INNER, Launch(argv=INNER[3:]), AT) == INNER


@pytest.mark.parametrize("name", ENTERING)
def test_the_same_launch_gives_the_same_words_and_changes_nothing(name: str) -> None:
    runtime, env = (
        runtime_named(name),
        Environment(image=image_for(name), binds=(("/data", "/mnt"),)),
    )
    before = copy.deepcopy((runtime, env))
    assert line(runtime, env) == line(runtime, env)
    assert (runtime, env) == before


@pytest.mark.parametrize("name", ENTERING)
def test_every_form_that_is_entered_here_has_a_command_line(name: str) -> None:
    runtime = runtime_named(name)
    forms = runtime.forms(FACTS)
    assert forms
    for form in forms:
        assert line(runtime, Environment(image=image(form)))[-len(INNER) :] == INNER


@pytest.mark.parametrize("name", ENTERING)
def test_a_form_that_it_does_not_enter_is_refused_in_one_line(name: str) -> None:
    runtime = runtime_named(name)
    refused = [form for form in FORMS if form not in runtime.forms(FACTS)]
    assert refused
    for form in refused:
        with pytest.raises(LaunchFailed, match=rf"^image \S+: {name} enters .*, no {form}$"):
            line(runtime, Environment(image=image(form)))


@pytest.mark.parametrize("name", ENTERING)
def test_without_an_image_there_is_nothing_to_enter(name: str) -> None:
    with pytest.raises(LaunchFailed, match=rf"^runtime {name}: it enters images"):
        runtime_named(name).wrap(INNER, Launch(argv=("prog",)), AT)


@pytest.mark.parametrize("name", ENTERING)
def test_no_variable_and_no_value_is_ever_on_a_command_line(name: str) -> None:
    secret = (("TOKEN", "s3cr3t"), ("PATH", "/opt/secret/bin"))
    runtime = runtime_named(name)
    env = Environment(image=image_for(name), variables=secret)
    with_them = line(runtime, env, variables=secret)
    assert with_them == line(runtime, replace(env, variables=()))
    steps = runtime.setup(image_for(name), MOUNT)
    launches = [step.launch for step in steps if isinstance(step, SetupStep)]
    launches += runtime.teardown(image_for(name), MOUNT)
    for words in (with_them, *(launch.argv for launch in launches)):
        assert not any("s3cr3t" in word or "secret" in word for word in words)


@pytest.mark.parametrize("name", ENTERING)
def test_source_and_target_of_a_bind_are_named_in_their_order(name: str) -> None:
    argv = line(
        runtime_named(name), Environment(image=image_for(name), binds=(("/data/x", "/mnt/y"),))
    )
    words = "\n".join(argv[: -len(INNER)])
    assert 0 < words.index("/data/x") < words.index("/mnt/y")


@pytest.mark.parametrize("name", ENTERING)
@pytest.mark.parametrize("shared", ["/tmp", "/dev/shm", "/proc", "/sys/fs", "/tmp/mine"])
def test_what_is_the_nodes_own_anyway_needs_no_bind(name: str, shared: str) -> None:
    runtime = runtime_named(name)
    with_it = line(runtime, Environment(image=image_for(name), binds=((shared, shared),)))
    assert with_it == line(runtime, Environment(image=image_for(name)))


@pytest.mark.parametrize(
    ("shared", "needed"), [("/tmp", False), ("/dev", False), ("/tmp/mine", True)]
)
def test_read_only_is_what_lies_in_a_folder_of_the_node_never_the_folder(
    shared: str, needed: bool
) -> None:
    env = Environment(image=image(), binds=((shared, f"{shared}:ro"),))
    made = (Bind(shared, shared, read_only=True),) if needed else ()
    assert binds_of(env, SESSION / "0") == made


@pytest.mark.parametrize("name", ENTERING)
def test_our_own_session_folder_holds_mount_points(name: str) -> None:
    target = f"{SESSION}/devices-1/lib/libcuda.so.1"
    argv = line(
        runtime_named(name), Environment(image=image_for(name), binds=(("/lib/x", target),))
    )
    assert any(target in word for word in argv)


@pytest.mark.parametrize("name", ENTERING)
@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        ("data", "/mnt", r"^bind data at /mnt: data does not begin with /$"),
        ("/data", "mnt", r"^bind /data at mnt: mnt does not begin with /$"),
        ("/data", "", r"^bind /data at '': '' does not begin with /$"),
        ("/data", "/", r"^bind /data at /: that would hide the whole image; name a folder below /"),
        ("/data", "//", r"that would hide the whole image"),
        ("/data", "/mnt/../etc", r"^bind /data at /mnt/../etc: the target holds '..'"),
        ("/data", "//tmp/./x", r"/tmp is the node's own"),
        ("/data", "/tmp/x", r"^bind /data at /tmp/x: /tmp is the node's own in every environment"),
        ("/data", "/dev", r"^bind /data at /dev: /dev is the node's own"),
        ("/data", f"{SESSION}", r"/tmp is the node's own"),
        (
            "/da\nta",
            "/mnt",
            r"^bind '/da\\nta' at /mnt: it holds characters that cannot be printed",
        ),
        ("/data", "/m\x1b[2Jnt", r"^bind /data at '/m\\x1b\[2Jnt': it holds characters"),
    ],
)
def test_a_bind_that_cannot_be_meant_is_refused_in_one_line(
    name: str, source: str, target: str, told: str
) -> None:
    env = Environment(image=image_for(name), binds=((source, target),))
    with pytest.raises(LaunchFailed, match=told) as refused:
        line(runtime_named(name), env)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ENTERING)
@pytest.mark.parametrize("odd", ["a b", "a,b", "a:b", 'a"b', "a=b", "-rf", "$(id)", "a\\b", "ä"])
def test_an_odd_path_stays_one_word_or_is_refused_in_one_line(name: str, odd: str) -> None:
    """One word, except for quoting, and never an option or a second bind."""
    source, target = f"/data/{odd}", f"/mnt/{odd}"
    env = Environment(image=image_for(name), binds=((source, target),))
    argv = line_or_refusal(runtime_named(name), env)
    if isinstance(argv, str):
        assert "\n" not in argv
        assert set(odd) & set(":,")
        return
    plain = line(
        runtime_named(name), Environment(image=image_for(name), binds=(("/data/p", "/mnt/p"),))
    )
    assert len(argv) == len(plain)
    words = "\n".join(argv).replace('""', '"')
    assert source in words
    assert target in words


@pytest.mark.parametrize("name", ENTERING)
def test_reading_only_is_told_apart_or_refused(name: str) -> None:
    runtime, open_env = (
        runtime_named(name),
        Environment(image=image_for(name), binds=(("/d", "/mnt"),)),
    )
    argv = line_or_refusal(runtime, replace(open_env, binds=(("/d", "/mnt:ro"),)))
    if isinstance(argv, str):
        assert argv == (
            f"bind /d at /mnt: {name} cannot bind for reading only; "
            "leave out :ro, or use another runtime"
        )
    assert argv != line(runtime, open_env)


@pytest.mark.parametrize("name", ENTERING)
def test_a_device_is_handed_on_by_name_or_refused(name: str) -> None:
    env = Environment(image=image_for(name), devices=("acme.com/gpu=one",))
    argv = line_or_refusal(runtime_named(name), env)
    if isinstance(argv, str):
        assert argv.startswith(f"device acme.com/gpu=one: {name} knows no CDI")
    else:
        assert any(word.endswith("acme.com/gpu=one") for word in argv[: -len(INNER)])


@pytest.mark.parametrize("name", ENTERING)
def test_without_its_program_there_is_no_way_and_the_reason_says_what_to_install(name: str) -> None:
    runtime = runtime_named(name)
    assert runtime.variants(NOTHING) == ()
    (reason,) = runtime.usable(NOTHING)
    assert reason.code == "no-program"
    assert reason.text == f"{name} is not installed"
    assert "install" in reason.remedy


@pytest.mark.parametrize("name", ENTERING)
def test_each_way_starts_the_program_that_was_found(name: str) -> None:
    variants = runtime_named(name).variants(FACTS)
    assert variants
    assert len(set(map(repr, variants))) == len(variants)
    for variant in variants:
        assert variant.name == name
        program = variant.traits.program or name
        assert f"/opt/bin/{program}" in line(variant, Environment(image=image_for(name)))


@pytest.mark.parametrize("name", ENTERING)
def test_nothing_speaks_against_what_was_not_tried(name: str) -> None:
    assert runtime_named(name).usable(FACTS) == ()


@pytest.mark.parametrize("name", ENTERING)
def test_a_try_that_worked_is_all_that_counts(name: str) -> None:
    tried = (
        Tried(name="user namespaces", works=False, says="exit 1: no"),
        Tried(name=f"{name} folder", works=True),
        Tried(name=f"{name} squashfs", works=False, says="exit 1: fuse"),
    )
    facts = replace(FACTS, tried=tried)
    assert runtime_named(name).usable(facts) == ()
    assert runtime_named(name).forms(facts) == (() if name in FORM else ("folder",))


@pytest.mark.parametrize("name", ENTERING)
def test_tries_that_failed_leave_no_form_and_give_each_reason_once(name: str) -> None:
    says = "exit 1: unshare: unshare failed: No space left on device"
    tried = tuple(
        Tried(name=what, works=False, says=says)
        for what in ("user namespaces", f"{name} folder", f"{name} squashfs")
    )
    facts = replace(FACTS, tried=tried)
    assert [reason.code for reason in runtime_named(name).usable(facts)] == ["no-user-namespaces"]
    assert runtime_named(name).forms(facts) == ()


@pytest.mark.parametrize("name", ENTERING)
def test_what_is_set_up_lies_in_the_folder_that_was_given_for_it(name: str) -> None:
    runtime = runtime_named(name)
    for form in runtime.forms(FACTS):
        given = image(form)
        entered = runtime.entered(given, MOUNT)
        assert entered.digest == given.digest
        assert entered.config == given.config
        assert entered == given or entered.source.is_relative_to(MOUNT)
        assert bool(runtime.setup(given, MOUNT)) == (entered != given)


@pytest.mark.parametrize("name", ENTERING)
def test_a_word_that_is_no_utf8_arrives_or_is_refused_in_one_line(name: str) -> None:
    runtime, inner = runtime_named(name), (*INNER, "a\udcffb")
    env = Environment(image=runtime.entered(image_for(name), MOUNT))
    try:
        assert runtime.wrap(inner, Launch(argv=inner[3:], env=env), AT)[-1] == "a\udcffb"
    except LaunchFailed as refused:
        told = str(refused)
    else:
        return
    assert told == rf"argument 'a\udcffb': {name} takes only UTF-8; use another runtime"


@pytest.mark.parametrize("name", RUNTIMES)
def test_what_is_hidden_from_a_runtime_leaves_the_rest_to_be_seen(name: str) -> None:
    hidden = runtime_named(name).traits.env_blocked
    assert all(hidden), "an empty prefix would hide everything"
    for variable in ("PATH", "HOME", "USER", "XDG_RUNTIME_DIR", "PMIX_RANK", "OMPI_MCA_btl"):
        assert not variable.startswith(hidden or ("=",))
