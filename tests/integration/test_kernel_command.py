"""`flowos kernel`, and the environments that name one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import flowos as fo
from flowos.cli import main
from flowos.engine.environments._kernels import booting
from flowos.engine.launch._session import LaunchSession
from flowos.model import (
    Boot,
    Entered,
    Environment,
    EnvironmentRefused,
    LinuxKernel,
    MeasurementRequest,
)
from flowos.operations.kernel import add_kernel, kernels
from flowos.operations.measure._environments import _refuse_emulated
from flowos.operations.measure._report import _described
from tests.kernel_packages import deb, parts


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    file = tmp_path / "linux-image.deb"
    file.write_bytes(deb(parts()))
    return file


@pytest.fixture
def image(tmp_path: Path) -> str:
    (tmp_path / "root/bin").mkdir(parents=True)
    return str(tmp_path / "root")


def test_a_kernel_is_added_listed_replaced_and_removed(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kernel", "list"]) == 0
    assert main(["kernel", "add", "a", "--deb", str(package), "--parameter", "isolcpus=1"]) == 0
    assert main(["kernel", "add", "a", "--deb", str(package)]) == 0
    assert main(["kernel", "list"]) == 0
    assert main(["kernel", "list", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "no kernels yet",
        "added: a  6.1-x isolcpus=1",
        "added: a  6.1-x",
        "a  6.1-x",
    ]
    assert json.loads("\n".join(lines[4:]))[0]["release"] == "6.1-x"
    (kernel,) = kernels()
    assert Path(kernel.image).read_bytes() == b"plain"
    assert Path(kernel.initrd).read_bytes().count(b"modules/") == len(kernel.modules)
    assert main(["kernel", "rm", "a"]) == 0
    assert kernels() == ()
    assert main(["kernel", "rm", "a"]) != 0
    assert "no kernel 'a'; the library has none yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("parameter", "signed"),
    [("isolcpus=1", False), ("lockdown=integrity", True), ("module.sig_enforce=1", True)],
)
def test_guests_get_no_signatures_that_their_kernel_does_not_check(
    parameter: str, signed: bool, package: Path
) -> None:
    end = b"PKCS7" + bytes(8) + (5).to_bytes(4, "big") + b"~Module signature appended~\n"
    files = {
        name: content + end if name.endswith(".ko") else content
        for name, content in parts().items()
    }
    package.write_bytes(deb(files))
    kernel = add_kernel("a", package, [parameter])
    assert (end in Path(kernel.initrd).read_bytes()) == signed
    assert end in Path(kernel.initrd).with_name("node.cpio").read_bytes()


def test_a_dry_run_changes_nothing(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add = ["kernel", "add", "a", "--deb", str(package)]
    assert main([*add, "--dry-run"]) == 0
    assert kernels() == ()
    assert main(add) == 0
    assert main(["kernel", "rm", "a", "--dry-run"]) == 0
    assert [kernel.name for kernel in kernels()] == ["a"]
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[2]) == ("would be added: a  6.1-x", "would be removed: a  6.1-x")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["a", "--deb", "/no/such"], "/no/such: No such file"),
        (["../a", "--deb", "PACKAGE"], "kernel '../a': expected letters"),
        (["a", "--deb", "PACKAGE", "--parameter", "a b"], "parameter 'a b': expected one word"),
        (["a", "--deb", __file__], "no Debian package"),
        (["a", "--deb", "."], ".: it is no file"),
        (["a", "--deb", "/dev/null"], "/dev/null: it is no file"),
    ],
)
def test_bad_input_is_one_line(
    package: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(package) if word == "PACKAGE" else word for word in words]
    assert main(["kernel", "add", *given]) != 0
    said = capsys.readouterr().err
    assert told in said
    assert "Traceback" not in said


def test_an_environment_names_its_kernel_and_memory(image: str) -> None:
    assert fo.environment(f"{image}@qemu").boot == Boot()
    boot = fo.environment(f"{image}@qemu:kernel=rt,mem=1G").boot
    assert boot == Boot(kernel=LinuxKernel(name="rt"), memory_bytes=1 << 30)
    with pytest.raises(
        EnvironmentRefused, match=r"@qemu:mem=1: mem=1: expected a whole number of M or G"
    ):
        fo.environment(f"{image}@qemu:mem=1")
    with pytest.raises(EnvironmentRefused, match=r"bwrap takes nothing behind a colon"):
        fo.environment(f"{image}@bwrap:mem=1G")


def test_the_kernel_is_the_named_one_or_the_only_one(package: Path) -> None:
    session, env = LaunchSession(), Environment(runtime="qemu")
    with pytest.raises(EnvironmentRefused, match=r"^no kernel to boot with; add one"):
        booting(env, "qemu", "tcg", session)
    assert booting(env, "bwrap", "", session) == env
    add_kernel("a", package)
    boot = booting(env, "qemu", "tcg", session).boot
    assert boot is not None
    assert (boot.kernel.name, boot.accelerator) == ("a", "tcg")
    assert Path(boot.kernel.initrd).read_bytes().endswith(b"\0")
    Path(boot.kernel.initrd).unlink()
    add_kernel("b", package)
    with pytest.raises(EnvironmentRefused, match=r"^which kernel\? name one of a, b"):
        booting(env, "qemu", "tcg", session)
    other = Environment(runtime="qemu", boot=Boot(kernel=LinuxKernel(name="c")))
    with pytest.raises(EnvironmentRefused, match=r"^no kernel 'c'; known are a, b"):
        booting(other, "qemu", "tcg", session)


def test_a_guest_with_more_memory_than_there_is_is_refused(package: Path) -> None:
    add_kernel("a", package)
    env = Environment(runtime="qemu", boot=Boot(memory_bytes=900_000 << 30))
    with pytest.raises(
        EnvironmentRefused, match=r"^mem=921600000M: this machine has \d+M of memory; give less$"
    ):
        booting(env, "qemu", "tcg", LaunchSession())


def test_measuring_refuses_what_is_computed_one_by_one_unless_asked() -> None:
    asked = MeasurementRequest()
    tcg = Environment(runtime="qemu", boot=Boot(accelerator="tcg"))
    with pytest.raises(EnvironmentRefused, match=r"^environment x@qemu: without KVM .* --emulated"):
        _refuse_emulated("x@qemu", tcg, asked)
    _refuse_emulated("x@qemu", tcg, MeasurementRequest(emulated=True))
    kvm = Environment(runtime="qemu", boot=Boot(accelerator="kvm"))
    _refuse_emulated("x@qemu", kvm, asked)


def test_a_page_says_how_an_environment_was_booted() -> None:
    """Two of the same image and kernel may differ in their memory alone."""
    booted = Entered(label="x@qemu:a", kernel="6.1", parameters="quiet", accelerator="tcg")
    assert [*_described(replace(booted, memory_bytes=1 << 30))] == [
        "x@qemu:a: booted by tcg with Linux 6.1, 1024M of memory, parameters: quiet"
    ]
