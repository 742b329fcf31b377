"""`fo.Feed` as a person uses it: epochs, ranks, checkpoints, sources; every byte compared."""

import gc
import io
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

import flowos as fo

from .shared import CLASSES, content, flat, make_folder, orders, taken


def test_an_epoch_has_every_sample_once_with_its_bytes_and_its_class(data: Path) -> None:
    with fo.Feed(data, batch_size=8) as feed:
        assert feed.classes == CLASSES
        assert (len(feed), feed.samples) == (13, 100)
        assert sorted(taken(feed.epoch(0), feed)) == sorted(make_folder(data))
        for samples, labels in feed.epoch(1):
            assert labels.dtype == np.int64
            names = [feed.name(sample).split("/")[0] for sample in samples.indices.tolist()]
            assert [CLASSES[label] for label in labels.tolist()] == names


def test_epochs_differ_and_the_same_seed_gives_the_same_order(data: Path) -> None:
    with fo.Feed(data, batch_size=8, seed=1) as feed:
        first, second = orders(feed, 0), orders(feed, 1)
        assert first != second
        assert orders(feed, 0) == first
    with fo.Feed(data, batch_size=8, seed=1) as again, fo.Feed(data, batch_size=8, seed=2) as other:
        assert orders(again, 1) == second
        assert orders(other, 1) != second
    with fo.Feed(data, batch_size=8, shuffle=False) as plain:
        assert flat(orders(plain, 5)) == list(range(100))


def test_ranks_share_an_epoch_in_equal_numbers_of_batches(data: Path) -> None:
    with fo.Feed(data, batch_size=24, last="keep") as whole:
        order = flat(orders(whole, 3))
    parts = []
    for rank in range(3):
        with fo.Feed(data, batch_size=8, rank=rank, world_size=3) as feed:
            parts.append(orders(feed, 3))
            assert len(parts[-1]) == len(feed)
    assert len({len(part) for part in parts}) == 1
    together = [flat(part[at] for part in parts) for at in range(4)]
    assert flat(together) == order[:96]
    assert sorted(flat(flat(part) for part in parts)) == list(range(100))


def test_the_rank_is_found_in_the_variables(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "5")
    with fo.Feed(data, batch_size=4) as feed:
        assert (feed.rank, feed.world_size, len(feed)) == (2, 5, 5)


@pytest.mark.parametrize(("last", "batches"), [("keep", 13), ("drop", 12), ("pad", 13)])
def test_what_fills_no_batch_is_kept_dropped_or_padded(data: Path, last: str, batches: int) -> None:
    with fo.Feed(data, batch_size=8, last=last) as feed:
        sizes = [len(batch) for batch in orders(feed, 0)]
        assert len(sizes) == len(feed) == batches
        assert sizes[-1] == (4 if last == "keep" else 8)


def test_a_checkpoint_in_an_epoch_goes_on_exactly_there(data: Path) -> None:
    with fo.Feed(data, batch_size=8, seed=3) as feed:
        whole = orders(feed, 2) + orders(feed, 3)
        epoch = feed.epoch(2)
        begun = [next(epoch)[0].indices.tolist() for _ in range(5)]
        state = json.loads(json.dumps(feed.state_dict()))
    with fo.Feed(data, batch_size=8, seed=3) as again:
        again.load_state_dict(state)
        assert again.next_epoch == 2
        assert len(rest := orders(again, 2)) == 8
        assert begun + rest + orders(again, 3) == whole


def test_a_checkpoint_goes_on_with_another_number_of_ranks(data: Path) -> None:
    feeds = [fo.Feed(data, batch_size=4, seed=5, rank=r, world_size=4) for r in range(4)]
    before = [next(feed.epoch(1))[0].indices.tolist() for feed in feeds]
    (state,) = {json.dumps(feed.state_dict()) for feed in feeds}
    for feed in feeds:
        feed.close()
    after = []
    for rank in range(2):
        with fo.Feed(data, batch_size=10, seed=5, rank=rank, world_size=2) as feed:
            feed.load_state_dict(json.loads(state))
            after += orders(feed, 1)
    assert sorted(flat(before + after)) == list(range(100))


def test_a_for_statement_is_an_epoch_and_resumes_as_a_stateful_loader_does(data: Path) -> None:
    with fo.Feed(data, batch_size=8) as feed:
        epochs = [[s.indices.tolist() for s, _ in feed] for _ in range(3)]
        assert epochs == [orders(feed, epoch) for epoch in range(3)]
        feed.set_epoch(1)
        for number, _ in enumerate(feed):
            if number == 6:
                break
        state = feed.state_dict()
        assert next(iter(feed))[0].indices.tolist() == epochs[2][0]
    with fo.Feed(data, batch_size=8) as again:
        again.load_state_dict(state)
        assert [s.indices.tolist() for s, _ in again] == epochs[1][7:]
        assert [s.indices.tolist() for s, _ in again] == epochs[2]


def test_a_checkpoint_after_the_last_batch_goes_on_with_the_next_epoch(data: Path) -> None:
    with fo.Feed(data, batch_size=8) as feed:
        second = orders(feed, 1)
        epoch = feed.epoch(0)
        for _ in range(len(feed)):
            next(epoch)
        state = feed.state_dict()
        assert list(epoch) == []
    with fo.Feed(data, batch_size=8) as again:
        again.load_state_dict(state)
        assert again.next_epoch == 1
        assert orders(again, 0) == []
        again.load_state_dict(state)
        assert [s.indices.tolist() for s, _ in again] == second


def test_batches_that_are_kept_are_never_written_again(data: Path) -> None:
    with fo.Feed(data, batch_size=4, memory_bytes=1 << 16) as feed:
        kept = [samples for samples, _ in feed.epoch(0)]
        views = [view for samples in kept for view in samples]
        names = [feed.name(n) for samples in kept for n in samples.indices.tolist()]
        for _ in feed.epoch(1):
            pass
        del kept
    del feed
    gc.collect()
    assert [bytes(view) for view in views] == [content(name) for name in names]


def test_token_arrays_give_one_array_per_batch(tmp_path: Path) -> None:
    tokens = np.arange(1000, dtype=np.uint16)
    np.save(tmp_path / "a.npy", tokens)
    tokens.tofile(tmp_path / "a.bin")
    for name, dtype in (("a.npy", None), ("a.bin", "uint16")):
        with fo.Feed(tmp_path / name, batch_size=4, length=9, dtype=dtype) as feed:
            assert feed.samples == 111
            found = np.concatenate([batch for batch, labels in feed.epoch(0)])
            assert feed.classes == ()
        assert found.dtype == np.uint16
        assert sorted(found[:, 0].tolist()) == list(range(0, 999, 9))
        assert (found == found[:, :1] + np.arange(9)).all()


def test_rows_of_an_array_keep_their_shape(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(10, 3, 2)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    with fo.Feed(tmp_path / "rows.npy", batch_size=5, shuffle=False) as feed:
        (first, _), (second, labels) = feed.epoch(0)
    assert labels is None
    assert np.array_equal(np.concatenate([first, second]), rows)


def write_tar(path: Path, names: Iterable[str]) -> None:
    with tarfile.open(path, "w") as tar:
        for name in names:
            key, number = name.replace("/", "-").removesuffix(".jpg"), CLASSES.index(name[:3])
            for ending, data in (("cls", str(number).encode()), ("jpg", content(name))):
                info = tarfile.TarInfo(f"{key}.{ending}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def test_shards_give_the_same_samples_and_classes_as_the_folder(tmp_path: Path) -> None:
    names = make_folder(tmp_path / "data")
    (tmp_path / "tars").mkdir()
    for number in range(4):
        write_tar(tmp_path / "tars" / f"{number}.tar", names[number::4])
    with fo.Feed(tmp_path / "tars", batch_size=16) as feed:
        found = {
            bytes(d): n
            for batch, labels in feed.epoch(0)
            for d, n in zip(batch, labels, strict=True)
        }
        assert feed.name(0).startswith("0.tar:ant-000")
    assert found == {content(name): CLASSES.index(name[:3]) for name in names}
    with pytest.raises(fo.FeedError, match="png"):
        fo.Feed(tmp_path / "tars", batch_size=16, member="png")
