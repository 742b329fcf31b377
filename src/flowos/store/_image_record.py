"""Frozen data that the store has in addition to runs and samples."""

from flowos._dataclasses import dataclass
from flowos.model import Pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRecord:
    """The origin of an image. Its identity is the digest.

    at: time of its first creation, ISO 8601 in UTC. source: what it was created from, as the user
    named it; source_digest: digest of that. recipe_digest: digest of the file that it was built
    from. made_with: (program, version).
    """

    digest: str
    at: str
    size_bytes: int
    architecture: str = ""
    source: str = ""
    source_digest: str = ""
    recipe_digest: str = ""
    made_with: Pairs = ()
