"""Batches as tensors of PyTorch and arrays of JAX: the same values, in the same memory.

Where these are not installed the tests are skipped; they are no dependency of FlowOS.
"""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import flowos as fo
from flowos.feeder._arrays import converter

from .shared import CLASSES, make_folder

JPEG = fo.decode.jpeg(32, crop="random", flip=True, dtype="float32", layout="NCHW")


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax", reason="JAX is not installed")


@pytest.fixture(params=["torch", "jax"])
def kind(request: pytest.FixtureRequest) -> str:
    request.getfixturevalue(request.param)
    return str(request.param)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """40 small JPEGs in four classes."""
    image = pytest.importorskip("PIL.Image")
    chance = np.random.default_rng(0)
    for number in range(40):
        path = tmp_path / "pictures" / CLASSES[number % 4] / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.fromarray(chance.integers(0, 256, (40, 50, 3), np.uint8)).save(path)
    return tmp_path / "pictures"


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    np.save(tmp_path / "tokens.npy", np.arange(64 * 50, dtype=np.int32).reshape(50, 64))
    return tmp_path / "tokens.npy"


def place(array: Any) -> int:
    """Where its first value lies."""
    if isinstance(array, np.ndarray):
        return array.ctypes.data
    return int(array.data_ptr() if hasattr(array, "data_ptr") else array.unsafe_buffer_pointer())


def test_pictures_and_labels_have_the_values_that_numpy_has(kind: str, pictures: Path) -> None:
    with (
        fo.Feed(pictures, batch_size=8, decode=JPEG) as plain,
        fo.Feed(pictures, batch_size=8, decode=JPEG, framework=kind) as feed,
    ):
        for (expected, classes), (images, labels) in zip(
            plain.epoch(3), feed.epoch(3), strict=True
        ):
            assert type(images).__module__.split(".")[0] in (kind, "jaxlib")
            assert images.shape == (8, 3, 32, 32)
            assert np.array_equal(np.asarray(images), expected)
            assert np.array_equal(np.asarray(labels), classes)


def test_a_batch_that_was_decoded_is_not_copied(kind: str, pictures: Path) -> None:
    if kind == "torch" and sys.modules["torch"].cuda.is_available():
        pytest.skip("there is a GPU: a batch is copied into page-locked memory")
    convert = converter(kind)
    assert convert
    with fo.Feed(pictures, batch_size=8, decode=JPEG) as feed:
        for images, _ in feed.epoch(0):
            assert place(convert(images)) == place(images)


@pytest.mark.parametrize("kept", [False, True])
def test_tokens_are_not_copied_unless_the_cache_is_filled_from_them(
    kind: str, tokens: Path, cache: Path, kept: bool
) -> None:
    convert = converter(kind)
    assert convert
    if kind == "torch" and sys.modules["torch"].cuda.is_available():
        pytest.skip("there is a GPU: a batch is copied into page-locked memory")
    with fo.Feed(tokens, cache if kept else None, batch_size=5, shuffle=False) as feed:
        for at, (rows, _) in enumerate(feed.epoch(0)):
            tensor = convert(rows)
            assert (place(tensor) != place(rows)) == kept
            first = np.arange(64 * 5, dtype=np.int32).reshape(5, 64) + 320 * at
            assert np.array_equal(np.asarray(tensor), first)


def test_memory_is_the_tensors_for_as_long_as_it_lives(kind: str, tokens: Path) -> None:
    with fo.Feed(tokens, batch_size=5, seed=1) as plain:
        expected = [rows.copy() for rows, _ in plain.epoch(0)]
    feed = fo.Feed(tokens, batch_size=5, seed=1, framework=kind, memory_bytes=1)
    held = [rows for rows, _ in feed.epoch(0)]
    for epoch in range(1, 6):
        for _ in feed.epoch(epoch):
            pass
    assert len({place(rows) for rows in held}) == len(held)
    feed.close()
    del feed
    gc.collect()
    for rows, values in zip(held, expected, strict=True):
        assert np.array_equal(np.asarray(rows), values)


def test_what_a_function_decodes_becomes_tensors_too(kind: str, data: Path) -> None:
    def first_bytes(sample: memoryview) -> NDArray[np.uint8]:
        return np.frombuffer(sample, np.uint8)[:16]

    with (
        fo.Feed(data, batch_size=10, decode=first_bytes) as plain,
        fo.Feed(data, batch_size=10, decode=first_bytes, framework=kind) as feed,
    ):
        for (expected, _), (found, labels) in zip(plain.epoch(0), feed.epoch(0), strict=True):
            assert isinstance(expected, np.ndarray)
            assert not isinstance(found, np.ndarray)
            assert np.array_equal(np.asarray(found), expected)
            assert len(labels) == 10


def test_page_locked_memory_is_given_where_there_is_a_gpu(torch: Any, tokens: Path) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU here: nothing is to be page-locked")
    with fo.Feed(tokens, batch_size=5, shuffle=False, framework="torch") as feed:
        held = [rows for rows, _ in feed.epoch(0)]
    assert all(rows.is_pinned() for rows in held)
    assert torch.equal(torch.cat(held).flatten(), torch.arange(64 * 50, dtype=torch.int32))


def test_a_framework_that_is_not_there_is_told(data: Path) -> None:
    for missing in {"torch", "jax"} - {name for name in ("torch", "jax") if find_spec(name)}:
        with pytest.raises(fo.FeedError, match=f"{missing} is not installed here"):
            fo.Feed(data, batch_size=8, framework=missing)
    with pytest.raises(fo.FeedError, match=r"framework='tensorflow' .*; one of numpy, torch, jax"):
        fo.Feed(data, batch_size=8, framework="tensorflow")


@pytest.mark.parametrize("dtype", [">i4", "longdouble"])
def test_an_array_that_a_framework_has_not_is_refused_before_it_is_read(
    kind: str, tmp_path: Path, dtype: str
) -> None:
    np.save(tmp_path / "a.npy", np.zeros((4, 2), dtype))
    with pytest.raises(fo.FeedError, match=f"{kind} has no arrays of .*give framework='numpy'"):
        fo.Feed(tmp_path / "a.npy", batch_size=2, framework=kind)


def test_a_decoded_array_that_a_framework_has_not_is_told(kind: str, data: Path) -> None:
    with (
        fo.Feed(data, batch_size=2, framework=kind, decode=lambda _: np.zeros(2, "g")) as feed,
        pytest.raises(fo.FeedError, match=f"{kind} has no arrays of float128"),
    ):
        next(feed.epoch(0))


@pytest.mark.parametrize(
    ("how", "said"),
    [({"dtype": "bfloat16"}, "Tensor of torch.bfloat16"), ({"requires_grad": True}, "gradient")],
)
def test_a_tensor_that_numpy_cannot_hold_is_told_with_its_sample(
    torch: Any, data: Path, how: dict[str, Any], said: str
) -> None:
    how = {name: getattr(torch, value) if name == "dtype" else value for name, value in how.items()}

    def decoded(sample: memoryview) -> Any:
        if bytes(sample) == (data / "ant/003.jpg").read_bytes():
            return torch.ones(2, **how)
        return torch.ones(2)

    with (
        fo.Feed(data, batch_size=100, decode=decoded) as feed,
        pytest.raises(fo.SampleError, match=f"ant/003.jpg: .*{said}"),
    ):
        next(feed.epoch(0))
    with fo.Feed(data, batch_size=100, decode=decoded, on_error="skip") as feed:
        assert [len(made) for made, _ in feed.epoch(0)] == [99]


@pytest.mark.parametrize("masked", [False, True])
def test_arrays_of_fields_may_have_a_mask_of_nothing(data: Path, masked: bool) -> None:
    array = np.ma.zeros(3, [("a", "i4"), ("b", "f8", 2)])
    array["b"].mask = [[False, False], [False, masked], [False, False]]
    with fo.Feed(data, batch_size=2, decode=lambda _: array) as feed:
        if masked:
            with pytest.raises(fo.SampleError, match=r"masked values.* as with x\.filled\(0\)"):
                next(feed.epoch(0))
        else:
            assert np.array_equal(next(feed.epoch(0))[0], np.stack([array.data] * 2))


@pytest.mark.parametrize("framework", ["numpy", "torch", "jax"])
def test_a_mask_is_never_dropped(
    data: Path, framework: str, request: pytest.FixtureRequest
) -> None:
    """np.stack, PyTorch and JAX would all take what is masked for numbers."""
    if framework != "numpy":
        request.getfixturevalue(framework)
    masked = np.ma.masked_less(np.arange(3), 1)
    with (
        fo.Feed(data, batch_size=2, framework=framework, decode=lambda _: masked) as feed,
        pytest.raises(fo.SampleError, match=r"masked values.* as with x\.filled\(0\)"),
    ):
        next(feed.epoch(0))
    with fo.Feed(
        data, batch_size=2, framework=framework, decode=lambda _: masked.filled(7)
    ) as feed:
        assert np.asarray(next(feed.epoch(0))[0]).tolist() == [[7, 1, 2]] * 2


MEMBER = """
import json, os, sys
import torch.distributed as dist
import flowos as fo
data, meeting = sys.argv[1:]
child = os.fork()
rank = int(child == 0)
dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
with fo.Feed(data, batch_size=8) as feed:
    taken = [sample for samples, _ in feed for sample in samples.indices.tolist()]
    print(json.dumps([feed.rank, feed.world_size, taken]))
dist.barrier()
dist.destroy_process_group()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_rank_and_world_size_are_those_of_torch_distributed(
    torch: Any, data: Path, tmp_path: Path
) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this PyTorch was built without gloo")
    variables = {**os.environ, "RANK": "7", "WORLD_SIZE": "9", "GLOO_SOCKET_IFNAME": "lo"}
    words = [sys.executable, "-W", "ignore", "-c", MEMBER, str(data), str(tmp_path / "meeting")]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, env=variables, timeout=300)
    assert done.returncode == 0
    told = sorted(json.loads(line) for line in done.stdout.splitlines())
    assert [one[:2] for one in told] == [[0, 2], [1, 2]]
    assert sorted(told[0][2] + told[1][2]) == list(range(100))


def interrupted_and_resumed(make: Callable[[], Any], numbers: Callable[[Any], Any]) -> list[Any]:
    """What a training program does with a loader that keeps its place, whoever made it."""
    loader = make()
    batches = iter(loader)
    taken = [numbers(next(batches)) for _ in range(5)]
    state = loader.state_dict()
    again = make()
    assert len(again) == 13
    again.load_state_dict(state)
    return taken + [numbers(batch) for batch in again]


@pytest.mark.filterwarnings("ignore:.set_vital. is deprecated")
def test_a_feed_is_checkpointed_as_a_stateful_data_loader_is(data: Path) -> None:
    theirs = pytest.importorskip("torchdata.stateful_dataloader", reason="no torchdata is here")
    found = interrupted_and_resumed(
        lambda: theirs.StatefulDataLoader(list(range(100)), batch_size=8),
        lambda batch: batch.tolist(),
    )
    assert found == interrupted_and_resumed(
        lambda: fo.Feed(data, batch_size=8, shuffle=False),
        lambda batch: batch[0].indices.tolist(),
    )


def test_batches_of_tensors_feed_a_model(torch: Any, tmp_path: Path) -> None:
    make_folder(tmp_path / "data")
    model = torch.nn.Linear(16, len(CLASSES))

    def features(sample: memoryview) -> NDArray[np.float32]:
        return np.frombuffer(sample, np.uint8)[:16].astype(np.float32)

    with fo.Feed(tmp_path / "data", batch_size=10, decode=features, framework="torch") as feed:
        for values, labels in feed:
            torch.nn.functional.cross_entropy(model(values), labels).backward()
    assert bool(model.weight.grad.abs().sum() > 0)
