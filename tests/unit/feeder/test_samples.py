"""Samples of different lengths in one buffer, read as a sequence."""

import numpy as np
import pytest

from flowos.feeder import Samples
from flowos.feeder._samples import _Some

WORDS = [b"first", b"", b"the third"]


@pytest.fixture
def samples() -> Samples:
    lengths = np.array([len(word) for word in WORDS])
    offsets = np.array([0, 8, 16])
    data = np.zeros(32, dtype=np.uint8)
    for start, word in zip(offsets, WORDS, strict=True):
        data[start : start + len(word)] = np.frombuffer(word, dtype=np.uint8)
    data.flags.writeable = False
    return Samples(_Some(np.array([40, 41, 42]), offsets, lengths, data))


def test_it_reads_as_a_sequence_of_the_samples(samples: Samples) -> None:
    assert [bytes(data) for data in samples] == WORDS
    assert len(samples) == 3
    assert bytes(samples[-1]) == WORDS[-1]
    assert samples.indices.tolist() == [40, 41, 42]
    with pytest.raises(IndexError):
        samples[3]


def test_no_sample_is_a_copy_and_none_can_be_written(samples: Samples) -> None:
    view = samples[0]
    assert view.readonly
    assert np.shares_memory(np.frombuffer(view, dtype=np.uint8), samples.buffer)


def test_a_part_is_samples_over_the_same_buffer(samples: Samples) -> None:
    part = samples[1:]
    assert isinstance(part, Samples)
    assert [bytes(data) for data in part] == WORDS[1:]
    assert part.indices.tolist() == [41, 42]
    assert part.lengths.tolist() == [0, 9]
    assert part.offsets.tolist() == [8, 16]
    assert part.buffer is samples.buffer
    assert [bytes(data) for data in samples[::-2]] == [WORDS[2], WORDS[0]]


def test_it_says_how_much_it_is(samples: Samples) -> None:
    assert repr(samples) == "<3 samples, 14 bytes>"
