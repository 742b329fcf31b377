"""Licences of libraries that are copied into a wheel come with it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
NOTICE = Path("/usr/share/doc/libjpeg62-turbo/copyright")
METADATA = "Metadata-Version: 2.4\nName: x\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\n"


def with_notices(folder: Path, *libraries: str) -> subprocess.CompletedProcess[str]:
    """tools/notices of a wheel that has these; the new one is folder/out/x-1-py3-none-any.whl."""
    wheel = folder / "x-1-py3-none-any.whl"
    inside = {
        **{f"x.libs/{name}": "library" for name in libraries},
        "x-1.dist-info/METADATA": METADATA,
        "x-1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
        "x-1.dist-info/licenses/LICENSE": "of x",
        "x-1.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(wheel, "w") as file:
        for name, text in inside.items():
            file.writestr(name, text)
    subprocess.run((sys.executable, "-c", RECORD, wheel), check=True)
    tool = (HERE / "tools/notices", wheel, folder / "out")
    return subprocess.run(tool, capture_output=True, text=True)


RECORD = """
import base64, hashlib, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as file:
    inside = {name: file.read(name) for name in file.namelist()}
def sum_of(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
del inside["x-1.dist-info/RECORD"]
lines = [f"{name},sha256={sum_of(data)},{len(data)}" for name, data in inside.items()]
inside["x-1.dist-info/RECORD"] = "\\n".join([*lines, "x-1.dist-info/RECORD,,"]).encode()
with zipfile.ZipFile(sys.argv[1], "w") as file:
    for name, data in inside.items():
        file.writestr(name, data)
"""


@pytest.mark.skipif(not NOTICE.exists(), reason="no libjpeg62-turbo of Debian")
def test_the_notice_of_libjpeg_turbo_is_in_a_wheel_that_has_it(tmp_path: Path) -> None:
    done = with_notices(tmp_path, "libjpeg-0123.so.62.3.0")
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "out/x-1-py3-none-any.whl") as file:
        assert file.read("x-1.dist-info/licenses/libjpeg-turbo.txt") == NOTICE.read_bytes()
        said = file.read("x-1.dist-info/METADATA").decode()
        record = file.read("x-1.dist-info/RECORD").decode()
    assert "License-Expression: Apache-2.0 AND IJG AND Zlib AND BSD-3-Clause\n" in said
    assert "License-File: LICENSE\nLicense-File: libjpeg-turbo.txt\n" in said
    assert "x-1.dist-info/licenses/libjpeg-turbo.txt,sha256=" in record


def test_a_wheel_without_libraries_stays_as_it_is(tmp_path: Path) -> None:
    assert with_notices(tmp_path).returncode == 0
    with zipfile.ZipFile(tmp_path / "out/x-1-py3-none-any.whl") as file:
        assert file.read("x-1.dist-info/METADATA").decode() == METADATA


def test_a_library_of_unknown_licence_is_refused(tmp_path: Path) -> None:
    done = with_notices(tmp_path, "libz-0123.so.1")
    assert done.returncode == 1
    assert done.stderr == (
        "notices: x.libs/libz-0123.so.1: its licence is not known: name its package in "
        "tools/notices\n"
    )
    assert not (tmp_path / "out").exists()
