"""Files for nodes that boot a kernel, compared whole with tests/golden/netboot.

FLOWOS_UPDATE_GOLDEN=1 writes them anew; look at the difference. Without that a missing golden file
is a failure.
"""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from flowos.drivers.netboot import BootBy, Netboot, check_netboot, texts
from flowos.model import UsageError

GOLDEN = Path(__file__).parents[2] / "golden/netboot"
PLAIN = Netboot(name="kernelB", release="6.1.0-56-amd64", root="/srv/boot")
FULL = replace(
    PLAIN,
    url="http://head/boot/",
    parameters=("isolcpus=1-3", "console=ttyS0,115200"),
    init="/usr/lib/systemd/systemd",
    redfish="https://{node}-bmc/",
)
BSS = "https://head:8443/"


@pytest.mark.parametrize(
    ("folder", "netboot", "names"),
    [
        ("ipxe", FULL, ()),
        ("plain", PLAIN, ("boot.ipxe",)),
        ("warewulf", replace(FULL, boot_by="warewulf"), ("next-boot",)),
        ("openchami", replace(FULL, boot_by="openchami", bss=BSS), ("next-boot",)),
    ],
)
def test_texts_are_the_golden_ones(folder: str, netboot: Netboot, names: tuple[str]) -> None:
    check_netboot(netboot)
    found = texts(netboot)
    shown = {name: found[name] for name in names or found}
    if os.environ.get("FLOWOS_UPDATE_GOLDEN"):
        shutil.rmtree(GOLDEN / folder, ignore_errors=True)
        (GOLDEN / folder).mkdir(parents=True)
        for name, text in shown.items():
            (GOLDEN / folder / name).write_text(text)
    assert shown == {file.name: file.read_text() for file in (GOLDEN / folder).iterdir()}


@pytest.mark.parametrize("by", ["ipxe", "warewulf", "openchami"])
def test_programs_are_read_by_sh(by: BootBy) -> None:
    programs = [
        text for text in texts(replace(FULL, boot_by=by, bss=BSS)).values() if text[:3] == "#!/"
    ]
    assert len(programs) == 4
    for text in programs:
        done = subprocess.run(["sh", "-n"], input=text, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_without_bmcs_there_is_no_program_for_slurm() -> None:
    assert sorted(texts(PLAIN)) == [
        "boot.ipxe",
        "helper",
        "helpers.conf",
        "next-boot",
        "start.ipxe",
    ]
    by_warewulf = replace(PLAIN, url="http://head", boot_by="warewulf")
    assert "start.ipxe" not in texts(by_warewulf)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parameters": ("a b",)}, "parameter 'a b': expected letters, digits and"),
        ({"name": "nodes"}, "kernel 'nodes': expected another name"),
        ({"parameters": ("",)}, "parameter '': expected"),
        ({"parameters": ('dyndbg="x"',)}, "without quotes"),
        ({"parameters": ("a=${net0/mac}",)}, "parameter 'a=${net0/mac}': expected"),
        ({"parameters": ("a\n",)}, r"parameter 'a\n': expected"),
        ({"parameters": ("init=/x",)}, "parameter 'init=/x': `flowos kernel publish` writes it"),
        ({"parameters": ("--",)}, "parameter '--': `flowos kernel publish` writes it"),
        ({"root": "/srv/a b"}, "--out '/srv/a b': expected an absolute path of letters"),
        ({"helper": "bin/helper"}, "--helper 'bin/helper': expected an absolute"),
        ({"settings": "~"}, "--settings '~': expected an absolute path"),
        ({"init": "systemd"}, "--init 'systemd': expected a path in the image"),
        ({"url": "ftp://head"}, "--url 'ftp://head': expected an address as http://head/boot"),
        ({"url": "http://head:65536/boot"}, "--url 'http://head:65536/boot': expected an address"),
        ({"url": "http://me:secret@head"}, "--url 'http://me:secret@head': expected an address"),
        ({"bss": "head"}, "--bss 'head': expected an address as https://head:8443"),
        ({"redfish": "https://bmc"}, "--redfish 'https://bmc': expected an address as https://{no"),
        ({"redfish": "https://{node}'; x"}, '--redfish "https://{node}\'; x": expected'),
        ({"system": "/redfish/v1/Systems/"}, "--system '/redfish/v1/Systems/': expected as"),
        ({"boot_by": "warewulf"}, "--boot-by warewulf needs --url: where nodes find the files"),
        ({"boot_by": "openchami", "url": "http://head"}, "--boot-by openchami needs --bss"),
        ({"bss": "https://head"}, "--bss is of --boot-by openchami: give that too, or leave it"),
        ({"system": "/redfish/v1/Systems/2"}, "--system is of the BMC that --redfish names: give"),
    ],
)
def test_what_would_have_to_be_quoted_is_refused(change: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_netboot(replace(PLAIN, **change))  # type: ignore[arg-type]
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
