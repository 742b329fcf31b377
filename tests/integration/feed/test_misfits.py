"""Options and servers that a source does not fit: one line, at once, and never other samples."""

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flowos as fo

from .object_store import ObjectStore, tar_of

SHARD = tar_of({f"{at}.jpg": b"%d" % at for at in range(4)})
ARRAYS = "goes with token arrays, .npy or .bin files that are mounted here"


def refused(where: Any, **options: Any) -> str:
    with pytest.raises(fo.FeedError) as error:
        fo.Feed(where, batch_size=2, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("options", [{"length": 4}, {"dtype": "int64"}])
def test_arrays_in_a_bucket_are_not_taken_for_samples_with_their_headers(
    store: ObjectStore, options: dict[str, Any]
) -> None:
    store.bucket("tokens", {"t/0.bin": np.arange(12).tobytes()})
    said = refused("s3://tokens/t", **options)
    (name,) = options
    assert said == f"Feed: {name}={options[name]} {ARRAYS}; s3://tokens/t has none"


def test_a_member_is_of_shards_in_a_bucket_too(store: ObjectStore) -> None:
    store.bucket("photos", {"p/0.jpg": b"0"})
    said = "s3://photos/p: member='jpg' goes with tar shards; there are none"
    assert refused("s3://photos/p", member="jpg") == said


def test_options_of_another_kind_of_source_are_refused(tmp_path: Path) -> None:
    (tmp_path / "0.tar").write_bytes(SHARD)
    np.save(tmp_path / "0.npy", np.arange(12))
    pq.write_table(pa.table({"x": [b"0"]}), tmp_path / "0.parquet")
    assert (
        refused(tmp_path / "0.tar", length=4)
        == f"Feed: length=4 {ARRAYS}; {tmp_path}/0.tar has none"
    )
    assert refused(tmp_path / "0.tar", dtype="u1").startswith(f"Feed: dtype=uint8 {ARRAYS}")
    for name in ("0.npy", "0.parquet"):
        said = f"Feed: member='jpg' goes with tar shards; {tmp_path}/{name} has none"
        assert refused(tmp_path / name, member="jpg", length=4 if name == "0.npy" else None) == said
    assert refused(tmp_path / "0.parquet", length=4).startswith(f"Feed: length=4 {ARRAYS}")


@pytest.mark.parametrize("extensions", [["jpg"], "all", "pictures"])
def test_endings_of_files_are_refused_where_there_are_no_files(
    store: ObjectStore, tmp_path: Path, cache: Path, extensions: Any
) -> None:
    (tmp_path / "0.tar").write_bytes(SHARD)
    np.save(tmp_path / "0.npy", np.arange(12).reshape(4, 3))
    pq.write_table(pa.table({"x": [b"0"]}), tmp_path / "0.parquet")
    store.bucket("shards", {"x.tar": SHARD})
    files = [str(tmp_path / f"0.{kind}") for kind in ("tar", "npy", "parquet")]
    for where in (*files, "s3://shards"):
        said = refused(where, extensions=extensions, cache=cache)
        assert said.startswith(f"Feed: {where}: extensions= goes with files of which each is a ")
        assert said.endswith("there are none") == where.endswith("npy")
        fo.Feed(where, batch_size=1, decode=fo.decode.jpeg(8)).close()


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("{'descr': '<i4', 'fortran_order': False, 'shape': (-2, -2)}", "its shape is (-2, -2)"),
        ("((((", "TokenError: "),
        ("{'descr': '<i4', 'fortran_order': False, 'shape': [2, 1]}", "ValueError: shape is not"),
        ("", "ValueError: EOF: reading array header"),
    ],
)
def test_a_header_that_says_no_array_is_refused_in_one_line(
    tmp_path: Path, header: str, why: str
) -> None:
    path = tmp_path / "a.npy"
    size = (len(header) or 100).to_bytes(2, "little")
    path.write_bytes(b"\x93NUMPY\x01\x00" + size + header.encode() + bytes(16))
    assert refused(path).startswith(f"Feed: {path}: no .npy array: {why}")


def test_fields_have_the_names_that_numpy_gives_them(tmp_path: Path) -> None:
    kind = np.dtype([("\u91cf", "<i4"), ("caf\u00e9", "<f8")])
    with pytest.warns(UserWarning, match="format 3.0"):
        np.save(tmp_path / "a.npy", np.zeros((4, 2), kind))
    with fo.Feed(tmp_path / "a.npy", batch_size=4) as feed:
        assert next(feed.epoch(0))[0].dtype == kind


@pytest.fixture
def folder_server(tmp_path: Path) -> Iterator[str]:
    """As `python -m http.server`: to a request that lists it answers 501."""

    class Handler(SimpleHTTPRequestHandler):
        def do_HEAD(self) -> None:
            if "no-head" in self.path:
                self.send_error(405)
            else:
                super().do_HEAD()

        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Handler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_server_that_will_never_list_is_not_asked_again(
    folder_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOWOS_FEED_RETRY_SECONDS", "1")
    said = refused(f"{folder_server}/photos")
    assert said.endswith(
        "this server does not list its files: name tar shards, as in train-{000..099}.tar"
    )


def test_a_server_without_head_requests_is_called_so(folder_server: str, tmp_path: Path) -> None:
    (tmp_path / "no-head.tar").write_bytes(SHARD)
    url = f"{folder_server}/no-head.tar"
    said = f"{url}: this server refuses HEAD requests, by which sizes are asked for"
    assert refused(url) == said
    assert refused(f"{folder_server}/nowhere.tar").endswith("nowhere.tar: it is not there")
