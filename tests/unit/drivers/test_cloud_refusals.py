"""What clouds say, in their own words, and what it comes to."""

import pytest

from flowos.drivers.clouds.refusals import filled, read_refusal
from flowos.model import VmOrder


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("InstanceLimitExceeded: You have requested more instances (5) than your limit", "quota"),
        ("VcpuLimitExceeded: more vCPU capacity than your current vCPU limit of 8", "quota"),
        ("MaxSpotInstanceCountExceeded: Max spot instance count exceeded", "quota"),
        ("QuotaExceeded: Operation could not be completed as it results in exceeding", "quota"),
        ("Quota 'CPUS' exceeded.  Limit: 24.0 in region us-central1.", "quota"),
        ("403 Forbidden Quota exceeded for cores: Requested 8, but already used 20", "quota"),
        ("InsufficientInstanceCapacity: We currently do not have sufficient", "capacity"),
        ("InsufficientFreeAddressesInSubnet: Not enough free addresses", "capacity"),
        ("ZONE_RESOURCE_POOL_EXHAUSTED", "capacity"),
        ("SkuNotAvailable: The requested VM size is not available", "capacity"),
        ("Unsupported: Your requested type is not supported in your Availability Zone", "capacity"),
        ("RequestLimitExceeded: Request limit exceeded.", "busy"),
        ("429 Rate limit exceeded", "busy"),
        ("InternalError: An internal error has occurred", "busy"),
        ("AuthFailure: AWS was not able to validate the provided access", "credentials"),
        ("UnauthorizedOperation: You are not authorized", "credentials"),
        ("InvalidAMIID.NotFound: The image id '[ami-x]' does not exist", "request"),
        ("InvalidParameterValue: Invalid value 'c9.huge' for InstanceType.", "request"),
        ("HTTPSConnectionPool(host='x', port=443): Max retries exceeded with url", "unreachable"),
        ("[Errno 111] Connection refused", "unreachable"),
        ("no answer within 60 s", "unreachable"),
        ("Throttling: Rate exceeded", "busy"),
        ("TooManyRequests", "busy"),
        ("503 Service Unavailable", "busy"),
        ("ServiceUnavailable: a temporary failure of the server", "busy"),
        ("AllocationFailed: We do not have sufficient capacity for the VM size", "capacity"),
        ("No valid host was found. There are not enough hosts available.", "capacity"),
        ("SpotMaxPriceTooLow: Your Spot request price of 0.001 is too low", "capacity"),
        ("InvalidClientTokenId: The security token included in the request", "credentials"),
        ("SignatureDoesNotMatch: The request signature we calculated", "credentials"),
        ("AccessDenied: User is not allowed to perform ec2:RunInstances", "credentials"),
        ("OptInRequired: You are not subscribed to this service", "credentials"),
        ("ExpiredToken: The security token included in the request", "credentials"),
        ("InvalidCredsError: 'Either an invalid key or secret'", "credentials"),
        ("401: Authentication failed", "credentials"),
        ("Unsupported: The requested configuration is currently not supported", "request"),
        ("MissingParameter: The request must contain the parameter ImageId", "request"),
        ("MalformedQueryString", "request"),
        ("The read operation timed out", "unreachable"),
        ("[Errno 101] Network is unreachable", "unreachable"),
        ("Failed to resolve 'ec2.nowhere.example'", "unreachable"),
        ("RemoteDisconnected", "unreachable"),
        ("EOF occurred in violation of protocol", "unreachable"),
        ("You have exceeded your on-demand limit", "quota"),
        ("throttled by the service", "busy"),
        ("ResourceNotFound: no such image", "request"),
        ("The key pair 'mine' does not exist", "request"),
        ("the proxy refused it", "unreachable"),
        ("ReadTimeout", "unreachable"),
        ("Something that is not known", "unknown"),
    ],
)
def test_what_a_complaint_comes_to(text: str, kind: str) -> None:
    assert (read_refusal(text).kind, read_refusal(text).text) == (kind, text.replace("  ", " "))


def test_a_complaint_is_one_short_line() -> None:
    assert read_refusal("a\n  b\tc").text == "a b c"
    assert read_refusal("").text == "no reason given"
    assert read_refusal("x" * 240).text == "x" * 240
    assert read_refusal("x" * 241).text == "x" * 237 + "..."


def test_a_machines_script_knows_what_it_is_for() -> None:
    order = VmOrder(cluster="box", node="c1", nonce="7")
    assert filled("slurmd -N @NODE@ # @CLUSTER@ @NONCE@ @NODE", order) == (
        "slurmd -N c1 # box 7 @NODE"
    )
