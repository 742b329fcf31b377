"""What `flowos why` says of a slice whose nodes are booted."""

import re

from flowos.model import Ask, SliceEvent, SliceRecord
from flowos.operations.why import _of_slice


def test_a_slice_whose_nodes_are_booted_waits_no_more() -> None:
    asked = SliceRecord(id="c-1", pool="c", kind="fake", process="p-1", asked=1.0, ask=Ask())
    waits = asked.happened(SliceEvent(at=2.0, what="waiting", reason="Priority"))
    assert _of_slice(waits).lines[0].startswith("it waits since ")
    boots = waits.happened(SliceEvent(at=3.0, what="booting", reason="n1 into B"))
    (line,) = _of_slice(boots).lines
    assert re.fullmatch(r"booting since \d+\.\d s: n1 into B", line)
