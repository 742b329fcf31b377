"""EC2 in Libcloud's words: what it is asked with, and what a machine of its answer is."""

import hashlib
from collections.abc import Mapping
from typing import Any

from flowos.model import Cloud, Vm, VmOrder, tag_values

CLUSTER, NODE, NONCE = "flowos-cluster", "flowos-node", "flowos-nonce"
_GONE = ("terminated", "shutting-down")


def order_tags(order: VmOrder) -> dict[str, str]:
    """By which a machine is found again."""
    return {CLUSTER: order.cluster, NODE: order.node, NONCE: order.nonce}


def filter_of(cluster: str) -> dict[str, str]:
    """Of all machines that were made for a cluster."""
    return {f"tag:{CLUSTER}": cluster}


def creation(cloud: Cloud, order: VmOrder, user_data: str) -> dict[str, Any]:
    """Keyword arguments of `create_node`, but for `size`, `image` and `ex_subnet`.

    The token makes EC2 itself give the same machine to a request that comes twice.
    """
    tags = order_tags(order)
    token = hashlib.sha256("\0".join(tags.values()).encode()).hexdigest()
    found: dict[str, Any] = {
        "name": f"{order.cluster}-{order.node}",
        "ex_metadata": {**tag_values(cloud.tags), **tags},
        "ex_clienttoken": token,
        "ex_terminate_on_shutdown": True,
    }
    optional = {
        "ex_userdata": user_data,
        "ex_keyname": cloud.ssh_key,
        "ex_security_group_ids": list(cloud.security_groups),
        "ex_spot": cloud.spot,
    }
    return found | {name: value for name, value in optional.items() if value}


def address_of(endpoint: str) -> dict[str, Any]:
    """Keyword arguments of the driver for a cloud at a place of its own; none for ""."""
    if not endpoint:
        return {}
    scheme, _, place = endpoint.rstrip("/").partition("://")
    host, _, port = place.partition(":")
    secure = scheme == "https"
    return {"host": host, "port": int(port or (443 if secure else 80)), "secure": secure}


def read_machine(
    id: str, extra: Mapping[str, Any], addresses: list[str], launched: float
) -> Vm | None:
    """A machine of its answer; None for one that is gone, or not of ours."""
    tags = extra.get("tags") or {}
    if extra.get("status") in _GONE or not {NODE, NONCE} <= set(tags):
        return None
    return Vm(
        id=id,
        node=tags[NODE],
        nonce=tags[NONCE],
        created=launched,
        address=addresses[0] if addresses else "",
    )
