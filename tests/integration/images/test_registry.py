"""Images of a registry: Debian's docker-registry, on loopback."""

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from flowos.model import EnvironmentRefused
from flowos.operations import image

from .conftest import left
from .sources import SMALL, has, in_image, oci_parts, tar, written_folder

CONFIG = """
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: "{root}"}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of a registry with tools/small:1."""
    assert has("docker-registry"), "docker-registry is missing: tools/setup test installs it"
    home = tmp_path_factory.mktemp("registry")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (home / "config.yml").write_text(CONFIG.format(root=home / "data", port=port))
    running = subprocess.Popen(
        ["docker-registry", "serve", home / "config.yml"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await_answer(f"http://127.0.0.1:{port}/v2/")
        push(f"127.0.0.1:{port}/tools/small:1", home / "layout")
        yield f"127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait()


def await_answer(url: str) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            with urlopen(url, timeout=30):
                return
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.05)


def push(to: str, at: Path) -> None:
    written_folder(oci_parts([tar(SMALL[:3]), tar(SMALL[3:])]), at)
    words = [
        "skopeo",
        "copy",
        "--quiet",
        "--dest-tls-verify=false",
        f"oci:{at}:x",
        f"docker://{to}",
    ]
    subprocess.run(words, check=True, capture_output=True)


def digest_there(registry: str) -> str:
    words = ["skopeo", "inspect", "--tls-verify=false", f"docker://{registry}/tools/small:1"]
    done = subprocess.run(words, check=True, capture_output=True)
    return str(json.loads(done.stdout)["Digest"])


def test_an_image_is_fetched_by_its_tag_and_by_its_digest_and_is_the_same(registry: str) -> None:
    by_tag = image.import_image(f"docker://{registry}/tools/small:1")
    assert by_tag.name == "small-1"
    assert in_image(by_tag.path, "bin/hello") == b"hello\n"
    assert image.inspect("small-1").config.entrypoint == ("/bin/hello",)
    digest = digest_there(registry)
    assert by_tag.image.source_digest == digest
    assert by_tag.image.source == f"docker://{registry}/tools/small:1"
    assert dict(by_tag.image.made_with).keys() == {"skopeo", "mksquashfs"}
    for word in (f"small@{digest}", f"small:1@{digest}"):
        made = image.import_image(f"docker://{registry}/tools/{word}", name="again")
        assert made.image.digest == by_tag.image.digest


def test_the_same_image_from_a_registry_and_from_an_archive_is_the_same(
    registry: str, tmp_path: Path
) -> None:
    layout = written_folder(oci_parts([tar(SMALL[:3]), tar(SMALL[3:])]), tmp_path / "layout")
    here = image.import_image(str(layout))
    assert image.import_image(f"docker://{registry}/tools/small:1").was_there
    assert here.image.digest == image.inspect("small-1").digest


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("{registry}/tools/small:2", "the registry has no such name, tag or digest"),
        ("{registry}/none:1", "the registry has no such name"),
        ("{registry}/tools/small@sha256:" + "0" * 64, "the registry has no such name"),
        ("127.0.0.1:9/x:1", "the registry cannot be reached: nothing answers there"),
        ("nowhere.invalid/x:1", "the registry cannot be reached"),
    ],
)
def test_what_cannot_be_fetched_is_told_in_one_line(
    word: str, says: str, registry: str, library: Path, tmp_path: Path
) -> None:
    with pytest.raises(EnvironmentRefused, match=re.escape(says)) as refused:
        image.import_image("docker://" + word.format(registry=registry), name="x")
    assert "\n" not in str(refused.value)
    assert left(library) == left(tmp_path / "room") == set()


def test_an_image_for_another_processor_is_told(registry: str) -> None:
    with pytest.raises(EnvironmentRefused, match="not for s390x"):
        image.import_image(f"docker://{registry}/tools/small:1", architecture="s390x")
