"""The beats of a stream as bytes: the elements of each side by side, little-endian."""

from collections.abc import Sequence
from typing import Any

from flowos.model import HdlStream


def pack(stream: HdlStream, values: Sequence[Any], into: Any) -> None:
    """All beats, to writable bytes of their length. A scalar is the same in each."""
    import numpy as np

    beats: Any = np.frombuffer(into, _beat(stream)) if len(into) else np.empty(0, _beat(stream))
    for lane, number in enumerate(stream.lanes):
        beats[f"lane{lane}"] = np.ravel(values[number])


def unpack(stream: HdlStream, data: Any, outputs: Sequence[Any]) -> None:
    import numpy as np

    beats: Any = np.frombuffer(data, _beat(stream))
    for lane, number in enumerate(stream.lanes):
        outputs[number].reshape(-1)[:] = beats[f"lane{lane}"]


def _beat(stream: HdlStream) -> Any:
    import numpy as np

    names = [(f"lane{n}", np.dtype(d).newbyteorder("<")) for n, d in enumerate(stream.dtypes)]
    return np.dtype(names)
