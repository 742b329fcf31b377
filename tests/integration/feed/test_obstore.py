"""Objects in a bucket: what there is of them, and their bytes."""

import base64
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import flowos as fo
from flowos._native import Catalog, Counter
from flowos.feeder._labels import labels_of
from flowos.feeder._remote import open_url
from flowos.feeder._tars import tar_catalog
from flowos.model import FeedError

from .object_store import SECRET, ObjectStore, fed, set_variables, tar_of


def content(name: str) -> bytes:
    return name.encode() * (1 + len(name) * 37 % 211)


def photos(count: int) -> dict[str, bytes]:
    names = [f"train/{'cba'[at % 3]}/{at:04}.jpg" for at in range(count)]
    return {name: content(name) for name in names}


def shard(number: int, count: int = 20) -> dict[str, bytes]:
    """Members of one tar: pictures with a class each."""
    members: dict[str, bytes] = {}
    for at in range(count):
        key = f"{number:02}/{at:03}"
        members[f"{key}.jpg"] = content(key) * 20
        members[f"{key}.cls"] = str(at % 7).encode()
    return members


def test_every_object_below_a_prefix_is_a_sample_in_byte_order(store: ObjectStore) -> None:
    objects = photos(60)
    store.bucket("photos", {**objects, "train/c/": b"", "val/x.jpg": b"x", "trainee.jpg": b"y"})
    found = Counter()
    catalog = open_url("s3://photos/train").catalog(found)
    names = [catalog.name(sample) for sample in range(len(catalog))]
    assert names == sorted(name.removeprefix("train/") for name in objects)
    assert catalog.groups() == ["a", "b", "c"]
    assert labels_of(catalog, "folders").classes == ("a", "b", "c")
    assert catalog.sizes().tolist() == [len(objects[f"train/{name}"]) for name in names]
    assert found.value >= 60


def test_folders_that_are_listed_in_parallel_give_what_one_listing_gives(
    store: ObjectStore,
) -> None:
    objects = {f"{at % 7}/{at:04}": b"%d" % at for at in range(1100)}
    store.bucket("many", {**objects, "top": b"above"})
    catalog = open_url("s3://many").catalog()
    assert [catalog.name(at) for at in range(len(catalog))] == sorted([*objects, "top"])


def test_samples_have_the_bytes_of_their_objects(store: ObjectStore) -> None:
    objects = {**photos(60), "train/a/empty.jpg": b"", "train/a/größe é.jpg": b"umlaut"}
    store.bucket("photos", objects)
    assert fed(open_url("s3://photos/train"), epochs=2) == {
        name.removeprefix("train/"): data for name, data in objects.items()
    }


def test_shards_in_a_bucket_are_indexed_as_native_code_indexes_files(
    store: ObjectStore, tmp_path: Path
) -> None:
    odd = {
        "./d/a.b.jpg": b"two dots",
        "./d/a.CLS": b" 5\n",
        "no_ending": b"-",
        "__meta__/x.jpg": b"-",
        ".hidden.jpg": b"-",
        "e.cls": b"seven",
        "e.json": b"{}",
        "e.png": b"no class",
        "f" * 150 + ".jpg": b"long name",
    }
    names = ["00.tar", "01.tar", "02.tar"]
    tars = dict(zip(names, [tar_of(shard(0)), tar_of(odd), tar_of(shard(2, 1))], strict=True))
    for name, data in tars.items():
        (tmp_path / name).write_bytes(data)
    store.bucket("shards", {f"t/{name}": data for name, data in tars.items()})
    native = Catalog.list_tars(str(tmp_path), names)
    ours = open_url("s3://shards/t").catalog()
    assert ours.groups() == native.groups() == names
    for sample in range(len(native)):
        assert ours.name(sample) == native.name(sample)
    assert ours.classes() == native.classes()
    assert "seven" in ours.classes()
    for column in ("offsets", "sizes", "labels", "group_of"):
        assert getattr(ours, column)().tolist() == getattr(native, column)().tolist()


def test_words_in_class_members_of_remote_shards_are_numbered_as_those_of_files_are(
    store: ObjectStore, tmp_path: Path
) -> None:
    words = ["dog", "7", " cat\n", "", "x" * 2000, "a\0b", "99999999999999999999"]
    members: dict[str, bytes] = {}
    for number, word in enumerate(words):
        members |= {f"{number}.jpg": b"x", f"{number}.cls": word.encode()}
    (tmp_path / "s.tar").write_bytes(tar_of(members))
    store.bucket("shards", {"t/s.tar": tar_of(members)})
    native, ours = Catalog.list_tars(tmp_path, ["s.tar"]), open_url("s3://shards/t").catalog()
    assert native.classes() == ours.classes() == ["7", "99999999999999999999", "cat", "dog"]
    labels, same = native.labels(), ours.labels()
    assert labels is not None
    assert same is not None
    none = Catalog.NO_LABEL
    assert labels.tolist() == same.tolist() == [3, 0, 2, none, none, none, 1]


def test_a_bucket_of_shards_and_other_files_is_refused(store: ObjectStore) -> None:
    store.bucket("mixed", {"t/0.tar": tar_of(shard(0)), "t/notes.pdf": b"x"})
    line = r"s3://mixed/t has 0\.tar in it.*given as s3://mixed/t/\*"
    with pytest.raises(FeedError, match=line):
        fo.Feed("s3://mixed/t", batch_size=1)


def test_members_of_shards_are_read_by_ranges(store: ObjectStore) -> None:
    members = {f"t/{number:02}.tar": shard(number) for number in range(3)}
    store.bucket("shards", {name: tar_of(inside) for name, inside in members.items()})
    wanted = {
        f"{name.removeprefix('t/')}:{key.removesuffix('.jpg')}": data
        for name, inside in members.items()
        for key, data in inside.items()
        if key.endswith(".jpg")
    }
    assert fed(open_url("s3://shards/t")) == wanted
    some = {name: data for name, data in wanted.items() if not name.startswith("01")}
    assert fed(open_url("s3://shards/t/{00,02}.tar")) == some
    assert len(fed(open_url("s3://shards/t/0[01].tar".replace("[01]", "*")))) == len(wanted)
    assert len(fed(open_url("s3://shards/t/02.tar", member="cls"))) == 20


def test_shards_of_a_web_server_are_named_one_by_one(store: ObjectStore) -> None:
    store.bucket("public", {f"{number:03}.tar": tar_of(shard(number, 4)) for number in range(3)})
    assert len(fed(open_url(f"{store.url}/public/{{000..002}}.tar"))) == 12
    with pytest.raises(FeedError, match=r"does not list its files: name tar shards"):
        open_url(f"{store.url}/public").catalog()
    with pytest.raises(FeedError, match=r"public/003\.tar: .*(not there|denied)"):
        open_url(f"{store.url}/public/{{000..003}}.tar").catalog()


def test_the_identity_of_shards_changes_with_them(store: ObjectStore) -> None:
    store.bucket("shards", {"a.tar": tar_of(shard(0, 2)), "b.tar": tar_of(shard(1, 2))})
    before = open_url("s3://shards").identity()
    assert before == open_url("s3://shards").identity() != ""
    store.put("shards", "b.tar", tar_of(shard(1, 2) | {"00/000.jpg": b"new"}))
    assert open_url("s3://shards").identity() != before
    store.bucket("photos", photos(3))
    assert open_url("s3://photos").identity() == ""


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"no tar at all, but long enough for a header" * 100, "not a whole tar"),
        (tar_of(shard(0, 3))[:-15_000], "not a whole tar"),
        (tar_of(shard(0, 1))[:1024] + b"damaged" * 512 + b"\0" * 2048, "damaged|not a whole"),
        (b"", "not a whole tar"),
        (tar_of({"a.cls": b"1"}), "no sample"),
        (tar_of({"a.jpg": b"1", "a.JPG": b"2"}), "twice for one sample"),
    ],
)
def test_a_broken_shard_is_named(store: ObjectStore, data: bytes, why: str) -> None:
    store.bucket("broken", {"x.tar": data})
    with pytest.raises(FeedError, match=rf"s3://broken.*({why})"):
        open_url("s3://broken/x.tar").catalog()


def test_a_bucket_that_is_not_there_is_told(store: ObjectStore) -> None:
    with pytest.raises(FeedError, match=r"^s3://nobodys/x: there is no such bucket$"):
        open_url("s3://nobodys/x").catalog()
    store.bucket("empty", {})
    with pytest.raises(FeedError, match=r"^s3://empty/x: nothing is there$"):
        open_url("s3://empty/x").catalog()
    with pytest.raises(FeedError, match=r"nothing is there that is called \*\.tar"):
        open_url("s3://empty/*.tar").catalog()


@pytest.mark.usefixtures("store")
def test_without_credentials_the_variables_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    # The address of a cloud's credentials, where no server listens.
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://169.254.169.254:1")
    with pytest.raises(FeedError, match=r"no credentials found: set AWS_ACCESS_KEY_ID and AWS_"):
        open_url("s3://photos", timeout_seconds=1).catalog()


def test_a_server_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    set_variables(monkeypatch, "http://127.0.0.1:9")
    monkeypatch.setenv("FLOWOS_FEED_RETRY_SECONDS", "1")
    line = r"^s3://photos: cannot connect: .*127.*, tried for 1 seconds$"
    with pytest.raises(FeedError, match=line):
        open_url("s3://photos").catalog()


@pytest.mark.parametrize("package", ["obstore", "fsspec"])
def test_a_missing_package_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    url = {"obstore": "s3://photos", "fsspec": "memory://photos"}[package]
    with pytest.raises(FeedError, match=rf"^{url} is read by the package {package}: pip install"):
        open_url(url)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("photos", "no URL"),
        ("s3://", "no URL"),
        ("s3://bucket-{0..3}/x.tar", "below a bucket"),
        ("s3://bucket/{0..99999999}.tar", "stands for more than"),
        ("nonsense://bucket", "no such protocol"),
        ("HTTPS://host/a.tar?x", r"^https://host/a\.tar: what follows \? is not passed on"),
        (f"s3://AK:{SECRET[:3]}/{SECRET[3:]}@buck/x", r"^s3://buck/x: "),
        ("https://host/a.tar?signed=by", r"^https://host/a\.tar: what follows \? is not passed on"),
    ],
)
def test_what_is_no_url_is_told(url: str, why: str) -> None:
    with pytest.raises(FeedError, match=why) as told:
        open_url(url)
    assert SECRET[3:] not in str(told.value)


@pytest.mark.parametrize(
    ("url", "variable", "value"),
    [
        ("s3://b/x", "AWS_ENDPOINT_URL", "localhost:18081"),
        ("s3://b", "AWS_ENDPOINT_URL", ""),
        ("s3://b", "AWS_ENDPOINT_URL", "http://host:9000 "),
        ("s3a://b/x", "AWS_ENDPOINT", "http://"),
        ("s3://b/x", "AWS_ENDPOINT_URL_S3", "http://host:port"),
        ("gs://b/x", "GOOGLE_BASE_URL", "localhost:18081"),
        ("az://b/x", "AZURE_STORAGE_ENDPOINT", "localhost:18081"),
    ],
)
def test_an_endpoint_that_is_no_address_is_named(
    monkeypatch: pytest.MonkeyPatch, url: str, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    line = f"{url}: {variable}={value!r} is no address such as https://host:9000; mend it"
    with pytest.raises(FeedError, match=f"^{re.escape(line)}$"):
        open_url(url)


def test_addresses_of_other_clouds_do_not_matter(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_BASE_URL", "nowhere")
    monkeypatch.setenv("AWS_USE_DUALSTACK_ENDPOINT", "false")
    store.bucket("photos", {"x/1": b"1"})
    assert len(open_url("S3://photos/x").catalog()) == 1


def test_one_object_is_no_folder(store: ObjectStore) -> None:
    store.bucket("photos", {"x/3.bin": b"1", "x/f/": b"", "x/f/1.bin": b"2"})
    line = r"^s3://photos/x/3\.bin is one object: give the folder that it is in$"
    with pytest.raises(FeedError, match=line):
        open_url("s3://photos/x/3.bin").catalog()
    assert len(open_url("s3://photos/x/f").catalog()) == 1


class Guarded(BaseHTTPRequestHandler):
    """A web server with one shard, for one user; what is called `round` it sends to itself."""

    shard = tar_of({"a.jpg": b"picture", "a.cls": b"1"})
    authorization = "Basic " + base64.b64encode(b"me:p@ss/word").decode()
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body, status = b"", 200
        if self.path == "/round.tar":
            status = 302
        elif self.headers["authorization"] != self.authorization:
            status = 401
        else:
            body = self.shard
        first, _, last = self.headers.get("range", "").removeprefix("bytes=").partition("-")
        if first and body:
            body, status = body[int(first) : int(last) + 1], 206
        self.send_response(status)
        self.send_header("location", "/round.tar")
        if status == 206:
            self.send_header("content-range", f"bytes {first}-{last}/{len(self.shard)}")
        self.send_header("content-length", str(len(body)))
        self.send_header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def guarded() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Guarded)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_user_and_password_of_a_web_server_are_sent(guarded: str) -> None:
    source = open_url(f"http://me:p@ss%2Fword@{guarded}/d.tar")
    assert source.name == f"http://{guarded}"
    assert fed(source) == {"d.tar:a": b"picture"}
    for user in ("", "me:no@", "me@"):
        line = rf"^http://{re.escape(guarded)}/d\.tar: access denied$"
        with pytest.raises(FeedError, match=line):
            open_url(f"http://{user}{guarded}/d.tar").catalog()


def test_a_web_server_that_sends_in_a_circle_is_told(guarded: str) -> None:
    line = r"/round\.tar: this server sends from one address to the next without an end$"
    with pytest.raises(FeedError, match=line):
        open_url(f"http://{guarded}/round.tar").catalog()


def test_no_secret_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FLOWOS_FEED_RETRY_SECONDS", "0.5")
    monkeypatch.setattr("flowos.feeder._retry._WARN_AFTER_SECONDS", 0.0)
    set_variables(monkeypatch, "http://127.0.0.1:9")
    for url in ("s3://photos", f"http://me:{SECRET}@127.0.0.1:9/{{0..1}}.tar"):
        with pytest.raises(FeedError) as told:
            open_url(url).catalog()
        assert SECRET not in str(told.value)
        assert told.value.__cause__ is None
        assert told.value.__suppress_context__
    assert "trying again" in caplog.text
    assert SECRET not in caplog.text


def test_many_shards_count_samples_while_they_are_indexed(store: ObjectStore) -> None:
    store.bucket("shards", {f"{number}.tar": tar_of(shard(number, 3)) for number in range(4)})
    found, source = Counter(), open_url("s3://shards")
    assert len(source.catalog(found)) == found.value == 12
    entries = source._storage.entries()
    assert len(tar_catalog(source._storage, entries, "jpg", 1)) == 12
