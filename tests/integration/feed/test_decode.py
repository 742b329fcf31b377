"""Pictures become the arrays that Pillow and torchvision's transforms make of them."""

import math
import pickle
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import flowos as fo
from flowos.model import FeedError, SampleError

from .pictures import (
    KINDS,
    Pixels,
    as_file,
    by_pillow,
    difference,
    photograph,
    resized,
    zone_plate,
)

SIZES = [(298, 370), (365, 495), (224, 224), (97, 61), (40, 700), (3, 5), (1, 1), (1, 300)]
TARGETS = [(224, 224), (31, 57), (500, 333), (1, 1)]


def near(found: NDArray[Any], expected: NDArray[Any] | Image.Image) -> bool:
    """As promised: at most 3 levels, 0.25 on the mean; of one pixel no mean is made."""
    largest, mean = difference(found, expected)
    return largest <= 3 and (mean <= 0.25 or found.size == 3)


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_is_resized_as_by_pillow(
    kind: str, size: tuple[int, int], target: tuple[int, int]
) -> None:
    pixels = KINDS[kind](*size)
    found = fo.decode.image(target, crop="none").decode(as_file(pixels))
    expected = resized(Image.fromarray(pixels), target[1], target[0])
    assert near(found, expected)
    assert difference(found, expected)[0] <= 1  # which JPEG cannot promise


@pytest.mark.parametrize("how", [{}, {"subsampling": 0}, {"subsampling": 1}, {"progressive": True}])
@pytest.mark.parametrize("kind", KINDS)
def test_a_jpeg_becomes_what_pillow_makes_of_it(kind: str, how: dict[str, Any]) -> None:
    data = as_file(KINDS[kind](298, 370), "JPEG", quality=85, **how)
    found = fo.decode.jpeg(224, crop="none").decode(data)
    assert near(found, resized(by_pillow(data), 224, 224))


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_grey_and_cmyk_become_rgb_as_by_pillow(mode: str) -> None:
    data = as_file(Image.fromarray(photograph(120, 150)).convert(mode), "JPEG", quality=90)
    found = fo.decode.jpeg((120, 150), crop="none").decode(data)
    assert difference(found, by_pillow(data))[0] <= 1


@pytest.mark.parametrize("size", [(298, 370), (370, 298), (256, 256), (500, 333), (1200, 201)])
def test_the_centre_is_that_of_torchvisions_resize_and_center_crop(size: tuple[int, int]) -> None:
    pixels = zone_plate(*size)
    height, width = size
    short = 256 / min(size)
    scaled = resized(Image.fromarray(pixels), int(width * short), int(height * short))
    top, left = round((scaled.height - 224) / 2), round((scaled.width - 224) / 2)
    expected = scaled.crop((left, top, left + 224, top + 224))
    assert near(fo.decode.image(224).decode(as_file(pixels)), expected)


class Draws:
    """SplitMix64, by its definition."""

    def __init__(self, seed: int, epoch: int, sample: int) -> None:
        self.state = 0
        for number in (seed, epoch, sample):
            self.state = _mixed(self.state + number + _STEP)

    def bits(self) -> int:
        self.state += _STEP
        return _mixed(self.state)

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * ((self.bits() >> 11) * 2.0**-53)

    def below(self, count: int) -> int:
        return ((self.bits() >> 32) * count) >> 32


_STEP, _ALL = 0x9E3779B97F4A7C15, 2**64 - 1


def _mixed(z: int) -> int:
    z &= _ALL
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _ALL
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _ALL
    return z ^ (z >> 31)


def random_resized_crop(picture: Image.Image, draws: Draws, size: int) -> Image.Image:
    """torchvision's, of these draws."""
    area = picture.width * picture.height
    for _ in range(10):
        wanted = area * draws.uniform(0.08, 1.0)
        aspect = math.exp(draws.uniform(math.log(3 / 4), math.log(4 / 3)))
        width, height = round(math.sqrt(wanted * aspect)), round(math.sqrt(wanted / aspect))
        if 0 < width <= picture.width and 0 < height <= picture.height:
            top = draws.below(picture.height - height + 1)
            left = draws.below(picture.width - width + 1)
            part = picture.crop((left, top, left + width, top + height))
            return resized(part, size, size)
    raise AssertionError("a picture of that aspect always has such a part")


@pytest.mark.parametrize("sample", range(25))
def test_a_random_crop_is_that_of_torchvisions_random_resized_crop(sample: int) -> None:
    data = as_file(photograph(298, 370, sample), "JPEG", quality=85)
    decode = fo.decode.jpeg(96, crop="random", flip=True, seed=11)
    draws = Draws(11, 4, sample)
    flipped = draws.below(2) == 1
    expected = random_resized_crop(by_pillow(data), draws, 96)
    if flipped:
        expected = expected.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    assert near(decode.decode(data, 4, sample), expected)


def test_other_readers_give_the_arrays_that_jpeg_gives() -> None:
    """For the same pixels, whatever is random."""
    data = as_file(photograph(200, 260), "JPEG", quality=95, subsampling=0)
    png = as_file(by_pillow(data))
    for sample in range(20):
        how: dict[str, Any] = {"crop": "random", "flip": True, "seed": 3}
        ours = fo.decode.jpeg((64, 80), **how).decode(data, 1, sample)
        assert difference(ours, fo.decode.image((64, 80), **how).decode(png, 1, sample))[0] <= 1


def test_chance_is_the_same_in_every_thread_and_another_in_every_epoch() -> None:
    data = as_file(photograph(100, 130), "JPEG")
    decode = fo.decode.jpeg(48, crop="random", flip=True)

    def epoch(number: int) -> list[bytes]:
        return [decode.decode(data, number, sample).tobytes() for sample in range(20)]

    with ThreadPoolExecutor(4) as pool:
        first, again, second, other = pool.map(epoch, [0, 0, 1, 2])
    assert first == again
    assert len({*first, *second, *other}) == 60
    assert fo.decode.jpeg(48, crop="random", seed=1).decode(data).tobytes() != first[0]


def test_planes_and_normalised_values_hold_the_same_picture() -> None:
    data = as_file(photograph(100, 130), "JPEG")
    plain = fo.decode.jpeg(48).decode(data)
    planes = fo.decode.jpeg(48, layout="NCHW").decode(data)
    mean, std = (0.1, 0.2, 0.3), [0.5, 0.25, 2.0]
    normal = fo.decode.jpeg(48, layout="NCHW", dtype="float32", mean=mean, std=std).decode(data)
    assert plain.shape == (48, 48, 3)
    assert np.array_equal(planes, plain.transpose(2, 0, 1))
    expected = (planes / 255 - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    assert normal.dtype == np.float32
    assert np.allclose(normal, expected, rtol=0, atol=1e-6)
    assert fo.decode.jpeg(48, dtype="float32").decode(data).shape == (48, 48, 3)


def test_an_orientation_in_exif_is_not_followed() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    data = as_file(photograph(60, 90), "JPEG", exif=exif)
    found = fo.decode.jpeg((60, 90), crop="none").decode(data)
    assert difference(found, by_pillow(data))[0] == 0


def test_values_of_16_bits_are_scaled_and_not_cut_off() -> None:
    values = np.arange(256, dtype=np.uint16).reshape(16, 16) * 257
    found = fo.decode.image(16, crop="none").decode(as_file(values))
    assert np.array_equal(found[:, :, 1], np.arange(256).reshape(16, 16))


WHOLE = as_file(photograph(298, 370), "JPEG", quality=85)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("crop", ["centre", "random"])
def test_a_truncated_file_is_an_error_and_no_grey_picture(crop: Any, share: float) -> None:
    decode = fo.decode.jpeg(224, crop=crop)
    for sample in range(10):
        with pytest.raises(SampleError):
            decode.decode(WHOLE[: int(share * len(WHOLE))], 0, sample)


def test_damage_of_which_libjpeg_only_warns_is_an_error() -> None:
    middle = len(WHOLE) // 2
    with pytest.raises(SampleError, match="Corrupt JPEG data"):
        fo.decode.jpeg(224).decode(WHOLE[:middle] + b"\xff\xc0" + WHOLE[middle + 2 :])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"Thumbs.db", "^Not a JPEG file: starts with 0x54 0x68$"),
        (b"\x00", "^Not a JPEG file|^JPEG datastream contains no image|^Premature end"),
        (b"", "^Empty input file$"),
        (as_file(photograph(90, 90))[:500], "^[^\n]+$"),
    ],
)
def test_what_is_no_picture_is_told_in_one_line(data: bytes, words: str) -> None:
    with pytest.raises(SampleError, match=words):
        fo.decode.jpeg(8).decode(data)


@pytest.mark.parametrize("form", ["PNG", "GIF", "BMP", "WEBP", "TIFF"])
def test_a_picture_that_is_no_jpeg_is_read_by_pillow_whatever_it_is_called(form: str) -> None:
    data = as_file(photograph(60, 80), form)
    how: dict[str, Any] = {"crop": "random", "flip": True, "layout": "NCHW", "dtype": "float32"}
    found = fo.decode.jpeg(24, **how).decode(data, 3, 5)
    assert np.array_equal(found, fo.decode.image(24, **how).decode(data, 3, 5))


WITHOUT_PILLOW = """
import sys
sys.modules["PIL"] = None
import flowos as fo
try:
    fo.decode.jpeg(8).decode(sys.stdin.buffer.read())
except fo.SampleError as why:
    print(why)
"""


def test_without_pillow_the_remedy_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PILLOW],
        input=as_file(photograph(9, 9)),
        capture_output=True,
        check=True,
    )
    assert done.stdout == (
        b"no JPEG by its first bytes; other pictures are read by Pillow: pip install pillow\n"
    )


@pytest.mark.parametrize("data", [b"", b"not a picture", as_file(photograph(90, 90))[:500]])
def test_what_pillow_cannot_read_is_an_error_of_the_sample(data: bytes) -> None:
    with pytest.raises(SampleError) as caught:
        fo.decode.image(8).decode(data)
    assert "\n" not in str(caught.value)


def test_pictures_of_32_bits_are_refused() -> None:
    data = as_file(Image.fromarray(np.full((4, 4), 1e5, np.float32)), "TIFF")
    with pytest.raises(SampleError, match=r"values of 32 bits \(mode F\)"):
        fo.decode.image(4).decode(data)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"size": 0}, r"size=\(0, 0\); expected 1 to 65535"),
        ({"size": "224"}, "size='224' .*; expected pixels, or"),
        ({"size": (1, 2, 3)}, "expected pixels, or"),
        ({"crop": "center"}, "crop='center' .*; expected one of centre, random, none"),
        ({"layout": "NCWH"}, "expected one of NHWC, NCHW"),
        ({"dtype": "float16"}, "expected one of uint8, float32"),
        ({"centre_share": 0}, "centre_share=0 .*; expected 0.01 to 1"),
        ({"area": (0.5, 0.1)}, r"area=\(0.5, 0.1\) .*; expected shares"),
        ({"area": (0.5, 1.5)}, "expected shares"),
        ({"aspect": (0, 1)}, "aspect=.*; expected width / height"),
        ({"aspect": 1.0}, "aspect=.*; expected width / height"),
        ({"flip": 1}, "flip=1 .*; expected True or False"),
        ({"seed": -1}, "seed=-1 .*; expected a whole number"),
        ({"dtype": "float32", "mean": (0.5, 0.5)}, "mean=.*; expected three numbers"),
        ({"dtype": "float32", "mean": ["a", "b", "c"]}, "mean=.*; expected three numbers"),
        ({"dtype": "float32", "mean": [[1], 2, 3]}, "mean=.*; expected three numbers"),
        ({"dtype": "float32", "std": (10**400, 1, 1)}, "std=.*; expected three numbers above 0"),
        ({"dtype": "float32", "std": [10**400, 1, 1]}, "std=.*; expected three numbers above 0"),
        ({"mean": np.zeros((3, 3))}, "mean=.*; expected three numbers"),
        ({"crop": np.array(["a", "b"])}, "crop=.*; expected one of centre"),
        ({"dtype": "float32", "std": (1, 1, 0)}, "std=.*; expected three numbers above 0"),
        ({"dtype": "float32", "std": (1, 1, math.nan)}, "std=.*; expected three numbers above 0"),
        ({"mean": (0, 0, 0)}, "mean and std are for dtype='float32'"),
    ],
)
@pytest.mark.parametrize("kind", ["jpeg", "image"])
def test_what_cannot_be_is_told_before_anything_is_read(
    kind: str, how: dict[str, Any], words: str
) -> None:
    with pytest.raises(FeedError, match=f"^fo.decode: .*{words}") as caught:
        getattr(fo.decode, kind)(**{"size": 224, **how})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["jpeg", "image"])
def test_an_unknown_keyword_is_told_with_those_that_there_are(kind: str) -> None:
    said = rf"^fo\.decode\.{kind}: foo: no such keyword; there are crop, centre_share, .*, seed$"
    with pytest.raises(FeedError, match=said):
        getattr(fo.decode, kind)(3, foo=1)


def test_a_description_is_a_value() -> None:
    one = fo.decode.jpeg((32, 48), crop="random", area=[0.5, 1])
    assert one == fo.decode.jpeg((32, 48), crop="random", area=(0.5, 1.0))
    assert pickle.loads(pickle.dumps(one)) == one
    assert one.record.shape == (32, 48, 3)
    assert one.native.size == one.record.size_bytes


def test_the_place_of_a_result_must_have_its_size() -> None:
    from flowos._native import fit_pixels

    decode = fo.decode.jpeg(8)
    small: Pixels = np.zeros(8 * 8 * 3 - 1, np.uint8)
    with pytest.raises(ValueError, match="must have 192 bytes"):
        decode.native.decode(WHOLE, 0, 0, small)
    with pytest.raises(ValueError, match="must have 192 bytes"):
        fit_pixels(decode._settings(), photograph(5, 5), 0, 0, small)


@pytest.fixture
def album(tmp_path: Path) -> Path:
    """24 JPEGs of different sizes in two folders."""
    for number in range(24):
        file = tmp_path / "album" / f"c{number % 2}" / f"{number:02d}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        pixels = photograph(60 + number, 90 - number, number)
        file.write_bytes(as_file(pixels, "JPEG", quality=85))
    return tmp_path / "album"


HOW: dict[str, Any] = {"crop": "random", "flip": True, "layout": "NCHW", "dtype": "float32"}


def by_bytes(album: Path, **how: Any) -> Counter[bytes]:
    """What came in an epoch, of all ranks."""
    came: Counter[bytes] = Counter()
    for rank in range(how.get("world_size", 1)):
        with fo.Feed(album, rank=rank, **{"world_size": 1, **how}) as feed:
            for arrays, _ in feed.epoch(3):
                came.update(array.tobytes() for array in np.asarray(arrays))
    return came


def test_a_feed_gives_the_same_arrays_whatever_the_ranks_and_the_batches(album: Path) -> None:
    decode = fo.decode.jpeg(32, seed=5, **HOW)
    files = sorted(album.rglob("*.jpg"))
    expected = Counter(
        decode.decode(file.read_bytes(), 3, sample).tobytes() for sample, file in enumerate(files)
    )
    assert by_bytes(album, decode=decode, batch_size=5) == expected
    assert by_bytes(album, decode=decode, batch_size=4, world_size=3) == expected


def test_a_feed_decodes_by_pillow_to_the_same_batches(album: Path) -> None:
    natively = fo.Feed(album, batch_size=8, decode=fo.decode.jpeg(32, **HOW))
    by_threads = fo.Feed(album, batch_size=8, decode=fo.decode.image(32, **HOW))
    with natively, by_threads:
        pairs = list(zip(natively.epoch(1), by_threads.epoch(1), strict=True))
    assert len(pairs) == 3
    for (ours, labels), (theirs, same_labels) in pairs:
        assert ours.shape == (8, 3, 32, 32)
        assert ours.dtype == theirs.dtype == np.float32
        assert np.array_equal(labels, same_labels)
        assert np.abs(ours - theirs).max() <= 1.01 / 255 / 0.224  # a level


def test_a_png_called_jpeg_and_a_cmyk_jpeg_do_not_stop_a_feed(album: Path) -> None:
    odd = photograph(70, 80, 1)
    (album / "c0" / "00.jpg").write_bytes(as_file(odd))
    cmyk = Image.fromarray(odd).convert("CMYK")
    (album / "c0" / "02.jpg").write_bytes(as_file(cmyk, "JPEG"))
    files = sorted(album.rglob("*.jpg"))
    for decode in (fo.decode.jpeg(32), fo.decode.jpeg(16, crop="random", flip=True)):
        expected = Counter(
            decode.decode(file.read_bytes(), 3, sample).tobytes()
            for sample, file in enumerate(files)
        )
        assert by_bytes(album, decode=decode, batch_size=5) == expected


@pytest.mark.parametrize("kind", ["jpeg", "image"])
def test_a_damaged_picture_in_a_feed_is_named_or_skipped(album: Path, kind: str) -> None:
    victim = album / "c1" / "07.jpg"
    victim.write_bytes(victim.read_bytes()[:700])
    decode = getattr(fo.decode, kind)(32)
    with (
        fo.Feed(album, batch_size=8, decode=decode) as feed,
        pytest.raises(SampleError, match=r"c1/07\.jpg: "),
    ):
        list(feed.epoch(0))
    with fo.Feed(album, batch_size=8, decode=decode, on_error="skip") as feed:
        assert sum(len(images) for images, _ in feed.epoch(0)) == 23
