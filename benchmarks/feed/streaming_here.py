"""Imports MosaicML Streaming if torchvision's C++ part does not match the build of torch.

It imports torchvision for data sets that are not used here, which then fails when it registers
descriptions of missing operators. During the import such descriptions are ignored.
"""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch

_describe = torch.library.register_fake


def _describe_others(operator: str, *words: Any, **more: Any) -> Callable[..., Any]:
    if operator.startswith("torchvision::"):
        return lambda function: function
    found: Callable[..., Any] = _describe(operator, *words, **more)
    return found


with patch.object(torch.library, "register_fake", _describe_others):
    from streaming import MDSWriter, StreamingDataset
    from streaming.base.util import (
        clean_stale_shared_memory,
    )

__all__ = ["MDSWriter", "StreamingDataset", "clean_stale_shared_memory"]
