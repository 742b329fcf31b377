"""What a cloud's complaint comes to. One that is not known here is kept as it was said."""

import re

from flowos.model import CloudRefusal, RefusalKind, VmOrder

_MAX_CHARACTERS = 240
_SAYS: tuple[tuple[RefusalKind, str], ...] = (
    (
        "busy",
        r"RequestLimitExceeded|Throttl|RateLimit|Rate limit|TooManyRequests|ServiceUnavailable"
        r"|InternalError|\b(?:429|503)\b",
    ),
    (
        "quota",
        r"LimitExceeded|Quota|MaxSpotInstanceCount|exceed\w* (?:[\w-]+ ){0,3}(?:limit|quota)",
    ),
    (
        "capacity",
        r"Insufficient\w*(?:Capacity|Addresses)|ZONE_RESOURCE_POOL_EXHAUSTED|AllocationFailed"
        r"|SkuNotAvailable|No valid host|SpotMaxPriceTooLow|Unsupported:.*Availability Zone",
    ),
    (
        "credentials",
        r"AuthFailure|InvalidCred|InvalidClientTokenId|SignatureDoesNotMatch|Unauthorized"
        r"|AccessDenied|OptInRequired|ExpiredToken|\b(?:401|403)\b",
    ),
    ("request", r"NotFound|Invalid|Malformed|MissingParameter|Unsupported|does not exist"),
    (
        "unreachable",
        r"timed? ?out|no answer|refused|unreachable|resolve|Connection|RemoteDisconnected|EOF",
    ),
)


def read_refusal(text: str) -> CloudRefusal:
    """What it is that a cloud, or the way to it, says: the first line that fits decides."""
    line = " ".join(text.split())
    if len(line) > _MAX_CHARACTERS:
        line = f"{line[: _MAX_CHARACTERS - 3]}..."
    for kind, pattern in _SAYS:
        if re.search(pattern, line, re.IGNORECASE):
            return CloudRefusal(kind, line)
    return CloudRefusal("unknown", line or "no reason given")


def filled(user_data: str, order: VmOrder) -> str:
    """The script of a machine, with what it has to know of itself."""
    values = {"@NODE@": order.node, "@CLUSTER@": order.cluster, "@NONCE@": order.nonce}
    for name, value in values.items():
        user_data = user_data.replace(name, value)
    return user_data
