"""Keywords that cannot be: one clear line each."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowos as fo
from flowos.feeder import CacheLimits, Peers, asked
from flowos.feeder._arrays import converter
from flowos.feeder._cache_entry import cache_folder
from flowos.feeder._decoding import chosen
from flowos.feeder._peers import checked
from flowos.feeder._settings import FeedSettings, sample_number
from flowos.feeder._source_options import Record
from flowos.model import FeedError

GOOD: dict[str, Any] = {
    "batch_size": 32,
    "shuffle": True,
    "seed": 0,
    "last": "keep",
    "on_error": "error",
    "max_skipped": 1000,
    "memory_bytes": 1 << 30,
    "max_in_flight": 256,
    "threads": None,
}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("batch_size", 0, "expected a whole number, 1 to 2147483647"),
        ("batch_size", True, "expected a whole number"),
        ("batch_size", 10**12, "1 to 2147483647"),
        ("memory_bytes", 1 << 70, "at least 1"),
        ("batch_size", 32.0, "expected a whole number"),
        ("seed", 1 << 64, "0 to 18446744073709551615"),
        ("shuffle", 1, "one of True, False"),
        ("last", "fill", "one of 'keep', 'drop', 'pad'"),
        ("on_error", "ignore", "one of 'error', 'skip', 'replace'"),
        ("max_skipped", -1, "at least 0"),
        ("memory_bytes", 0, "at least 1"),
        ("max_in_flight", 0, "1 to 65536"),
        ("threads", 0, "1 to 65536"),
        ("batch_size", np.int64(4), r"1 to 2147483647; give int\(batch_size\)$"),
        ("batch_size", True, "1 to 2147483647$"),
    ],
)
def test_a_wrong_value_is_one_line_with_its_name(name: str, value: object, said: str) -> None:
    with pytest.raises(FeedError, match=said) as refused:
        FeedSettings(**{**GOOD, name: value})
    assert str(refused.value).startswith(f"Feed: {name}=")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("strange", [-1, 20, "cat/3.jpg", 1.0, None])
def test_a_number_of_a_sample_is_one_of_the_data_set(strange: object) -> None:
    assert sample_number(np.int64(19), 20) == 19
    with pytest.raises(FeedError, match=r"^Feed: sample .*; expected 0 to 19$"):
        sample_number(strange, 20)


def test_a_function_is_called_by_as_many_threads_as_we_have_processors() -> None:
    assert FeedSettings(**GOOD).decode_threads >= 1
    some = FeedSettings(**{**GOOD, "threads": 5, "batch_size": 2})
    assert (some.decode_threads, some.batches_ahead) == (5, 4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"dtype": "unit16"}, "dtype='unit16'"),
        ({"dtype": object}, "no fixed size"),
        ({"dtype": "U"}, "no fixed size"),
        ({"length": 0}, "length=0"),
        ({"member": None}, "member=None"),
    ],
)
def test_what_samples_cannot_be_is_one_line(words: dict[str, Any], said: str) -> None:
    given = {"member": "", "dtype": None, "length": None, "column": "", "label_column": ""}
    with pytest.raises(FeedError, match=said):
        asked(**{**given, **words})


def test_a_record_has_the_bytes_of_its_values() -> None:
    assert Record(dtype=np.dtype("uint16"), shape=(1024,)).size_bytes == 2048
    assert Record(dtype=np.dtype("float32"), shape=(3, 5, 7)).size_bytes == 420


def test_an_unknown_framework_and_a_decoder_that_is_none_are_refused() -> None:
    with pytest.raises(FeedError, match=r"framework='tensorflow'.*one of numpy, torch, jax"):
        converter("tensorflow")
    with pytest.raises(FeedError, match=r"decode='jpeg'.*expected fo.decode.jpeg"):
        chosen("jpeg")
    for forgotten in (fo.decode.jpeg, fo.decode.image):
        with pytest.raises(FeedError, match=r"to be called, as fo.decode.jpeg\(224\)"):
            chosen(forgotten)


def test_the_room_of_a_cache_is_whole_numbers() -> None:
    for words in ({"max_bytes": "1G"}, {"max_bytes": -1}):
        with pytest.raises(FeedError, match=r"Feed: cache_bytes=.*; expected a whole number"):
            CacheLimits(**words)
    with pytest.raises(FeedError, match="Feed: min_free_bytes=None"):
        CacheLimits(min_free_bytes=None)  # type: ignore[arg-type]


def test_a_cache_folder_is_a_path_and_may_begin_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert cache_folder("~/cache") == Path("/home/ada/cache")
    for wrong in (5, "", b"/cache", ["/cache"]):
        with pytest.raises(FeedError, match=r"Feed: cache=.*; expected the path of a folder"):
            cache_folder(wrong)
    with pytest.raises(FeedError, match=r"cache='s3://b/c' \(str\) is a URL; expected a folder of"):
        cache_folder("s3://b/c")
    with pytest.raises(FeedError, match=r"x00b.* is no path: it has a zero byte"):
        cache_folder("a\0b")


def test_peers_are_what_they_are_called() -> None:
    assert checked(Peers(nodes=["a:1"]))
    assert not checked(None)
    with pytest.raises(FeedError, match=r"peers=\['a:1'\] .*; expected fo.Peers"):
        checked(["a:1"])
