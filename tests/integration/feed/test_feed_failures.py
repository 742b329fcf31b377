"""Samples that cannot be had, and functions that decode them."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import flowos as fo

from .shared import content, taken


def without_one(data: Path, policy: str) -> fo.Feed:
    """One sample is gone after it was listed, and before its epoch is read."""
    feed = fo.Feed(data, batch_size=10, shuffle=False, on_error=policy, memory_bytes=1 << 16)
    (data / "ant" / "013.jpg").unlink()
    return feed


def test_a_missing_sample_is_an_error_that_names_it(data: Path) -> None:
    with without_one(data, "error") as feed:
        feed.epoch(0)
        with pytest.raises(fo.SampleError, match=r"ant/013\.jpg") as error:
            taken(feed.epoch(7), feed)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_a_missing_sample_is_left_out_or_replaced_and_counted(data: Path, policy: str) -> None:
    with without_one(data, policy) as feed:
        names = taken(feed.epoch(7), feed)
        assert "ant/013.jpg" not in names
        assert len(names) == (99 if policy == "skip" else 100)
        stats = feed.stats()
        assert (stats.skipped if policy == "skip" else stats.replaced) >= 1


WITH_LITTLE_MEMORY = """
import resource, sys
import flowos as fo
resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
decode = fo.decode.jpeg(8) if sys.argv[2] == "jpeg" else None
with fo.Feed(sys.argv[1], batch_size=1, shuffle=False, labels=None, decode=decode) as feed:
    try:
        next(feed.epoch(0))
    except fo.SampleError as error:
        print(error)
"""


@pytest.mark.parametrize("decode", ["jpeg", "none"])
def test_a_sample_that_memory_cannot_hold_is_named(tmp_path: Path, decode: str) -> None:
    with (tmp_path / "0.jpg").open("wb") as file:
        file.truncate(1 << 40)
    ended = subprocess.run(
        [sys.executable, "-c", WITH_LITTLE_MEMORY, tmp_path, decode],
        check=True,
        capture_output=True,
        text=True,
    )
    said = f"{tmp_path}/0.jpg: has {1 << 40} bytes, for which there is no memory\n"
    assert ended.stdout.endswith(said)


def first_byte(data: memoryview) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    return np.frombuffer(data, dtype=np.uint8)[:3].reshape(1, 3)


def test_a_function_decodes_in_threads_and_the_order_stays(data: Path) -> None:
    used: set[str] = set()

    def decode(sample: memoryview) -> Any:
        used.add(threading.current_thread().name)
        return first_byte(sample)

    with (
        fo.Feed(data, batch_size=8, decode=decode, threads=3) as feed,
        fo.Feed(data, batch_size=8) as plain,
    ):
        for (images, labels), (samples, expected) in zip(
            feed.epoch(4), plain.epoch(4), strict=True
        ):
            assert images.shape == (len(samples), 1, 3)
            assert [i.tobytes() for i in images] == [bytes(s[:3]) for s in samples]
            assert labels.tolist() == expected.tolist()
    assert used
    assert all(name.startswith("flowos-decode") for name in used)


def test_results_that_do_not_stack_come_as_a_list(data: Path) -> None:
    with fo.Feed(data, batch_size=8, decode=bytes) as feed:
        values, labels = next(feed.epoch(0))
    assert [type(value) for value in values] == [bytes] * 8
    assert len(labels) == 8
    with fo.Feed(data, batch_size=8, decode=lambda d: np.frombuffer(d, np.uint8)) as feed:
        values, _ = next(feed.epoch(0))
    assert isinstance(values, list)
    assert all(isinstance(value, np.ndarray) for value in values)


def fails_for_7(sample: memoryview) -> int:
    if bytes(sample) == content("bee/007.jpg"):
        raise ValueError("bad marker\nsecond line")
    return len(sample)


def test_a_function_that_raises_names_the_sample(data: Path) -> None:
    with fo.Feed(data, batch_size=8, decode=fails_for_7) as feed:
        with pytest.raises(
            fo.SampleError, match=rf"^{data}/bee/007\.jpg: ValueError: bad marker$"
        ) as error:
            list(feed.epoch(0))
        assert isinstance(error.value.__cause__, ValueError)


def one_is_no_picture(data: Path) -> None:
    for file in data.rglob("*.jpg"):
        Image.fromarray(np.zeros((16, 16, 3), np.uint8)).save(file)
    (data / "bee" / "007.jpg").write_bytes(b"no picture")


def by_python(sample: memoryview) -> Any:
    return fo.decode.jpeg(8).decode(bytes(sample))


@pytest.mark.parametrize("decode", [fo.decode.jpeg(8), by_python])
def test_a_sample_that_cannot_be_decoded_ends_its_epoch_once(data: Path, decode: Any) -> None:
    one_is_no_picture(data)
    with fo.Feed(data, batch_size=8, shuffle=False, decode=decode) as feed:
        epoch, errors, taken = feed.epoch(0), list[str](), 0
        for _ in range(20):
            try:
                next(epoch)
                taken += 1
            except fo.SampleError as error:
                errors.append(str(error))
            except StopIteration:
                break
        assert taken == 4
        (said,) = errors
        assert said.startswith(f"{data}/bee/007.jpg: Not a JPEG")
        assert next(epoch, None) is None
        assert feed.state_dict()["taken"] == 32  # what comes next is tried again


def test_what_a_function_cannot_decode_is_left_out_or_replaced_and_counted(data: Path) -> None:
    with fo.Feed(data, batch_size=8, decode=fails_for_7, on_error="skip") as feed:
        assert sum(len(values) for values, _ in feed.epoch(0)) == 99
        assert feed.stats().skipped == 1
    with fo.Feed(data, batch_size=8, decode=fails_for_7, on_error="replace") as feed:
        pairs = list(feed.epoch(0))
        assert sum(len(values) for values, _ in pairs) == 100
        assert all(len(values) == len(labels) for values, labels in pairs)
        assert feed.stats().replaced == 1
    with (
        fo.Feed(data, batch_size=8, decode=fails_for_7, on_error="skip", max_skipped=0) as feed,
        pytest.raises(fo.SampleError, match=r"bee/007\.jpg"),
    ):
        list(feed.epoch(0))


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_a_batch_of_which_none_can_be_had_is_an_error(data: Path, policy: str) -> None:
    """Not an empty batch, of which a training makes NaN. Decoded in Python as natively."""
    jpeg = fo.decode.jpeg(8)
    ways: list[Any] = [fails_for_7, jpeg]
    for decode, name in zip(ways, ("bee/007", "ant/000"), strict=True):
        options: dict[str, Any] = {"decode": decode, "shuffle": False, "on_error": policy}
        with (
            fo.Feed(data, batch_size=1, **options) as feed,
            pytest.raises(fo.SampleError, match=rf"{name}\.jpg"),
        ):
            list(feed.epoch(0))


class WordlessError(Exception):
    def __str__(self) -> str:
        raise ValueError("nothing to say")


@pytest.mark.parametrize(
    "what", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), WordlessError()]
)
def test_a_function_that_ends_a_program_fails_its_sample_only(
    data: Path, what: BaseException
) -> None:
    def ends_at_7(sample: memoryview) -> int:
        if bytes(sample) == content("bee/007.jpg"):
            raise what
        return len(sample)

    named = rf"^{data}/bee/007\.jpg: {type(what).__name__}"
    with (
        fo.Feed(data, batch_size=8, decode=ends_at_7) as feed,
        pytest.raises(fo.SampleError, match=named),
    ):
        list(feed.epoch(0))
    with fo.Feed(data, batch_size=8, decode=ends_at_7, on_error="skip") as feed:
        assert sum(len(values) for values, _ in feed.epoch(0)) == 99


def test_a_feed_without_a_single_batch_says_so(data: Path) -> None:
    with pytest.warns(UserWarning, match=r"100 samples do not fill one of 64 for each of 2 ranks"):
        fo.Feed(data, batch_size=64, rank=0, world_size=2, last="drop").close()
    fo.Feed(data, batch_size=64, rank=0, world_size=2).close()
