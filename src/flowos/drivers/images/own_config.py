"""What an image of ours says of itself. Read at each start, so it loads nothing that `oci` does."""

import json
from typing import Any

from flowos.drivers.images import CONFIG
from flowos.model import ImageConfig, from_plain


def read_own_config(text: bytes) -> ImageConfig:
    """The text of CONFIG. Raises ValueError if it is none."""
    return from_plain(ImageConfig, read_json(text, CONFIG), CONFIG)


def read_json(text: bytes, what: str) -> Any:
    """Raises ValueError if it is no JSON. what: the file of the image that has the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its {what} is no JSON") from error
