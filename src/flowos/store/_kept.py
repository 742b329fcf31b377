"""What is kept beside runs and samples, as frozen data."""

from dataclasses import dataclass

from flowos.model import Pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptImage:
    """How an image came to be. Identity is the digest.

    at: when it was first made, ISO 8601 in UTC. source: what it was made of, as it was named;
    source_digest: of what was found there. recipe_digest: of the file that it was built by.
    made_with: (program, version).
    """

    digest: str
    at: str
    size_bytes: int
    architecture: str = ""
    source: str = ""
    source_digest: str = ""
    recipe_digest: str = ""
    made_with: Pairs = ()
