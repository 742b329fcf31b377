"""EC2, and clouds that speak like it, through Apache Libcloud; imported when it is first asked."""

import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from flowos.drivers.clouds.ec2 import address_of, creation, filter_of, read_machine
from flowos.drivers.clouds.refusals import filled, read_refusal
from flowos.model import Cloud, CloudError, CloudRefusal, Vm, VmOrder

_T = TypeVar("_T")
_GONE = "InvalidInstanceID.NotFound"
_VARIABLES = {
    "key": "AWS_ACCESS_KEY_ID",
    "secret": "AWS_SECRET_ACCESS_KEY",
    "token": "AWS_SESSION_TOKEN",
}


class Ec2Cloud:
    """See `Machines`. credentials: `key`, `secret`, `token`; those of the environment else.

    Raises CloudError if Libcloud is not installed, or there are no credentials.
    """

    def __init__(self, cloud: Cloud, user_data: str, credentials: dict[str, str]) -> None:
        found = {key: os.environ[name] for key, name in _VARIABLES.items() if name in os.environ}
        self._cloud, self._user_data = cloud, user_data
        self._credentials = credentials or found
        if not {"key", "secret"} <= set(self._credentials):
            raise CloudError(
                f"cloud.{cloud.name}: no credentials: name a file with `credentials`, or set "
                f"{_VARIABLES['key']} and {_VARIABLES['secret']}"
            )
        self._driver_class = _driver_class()
        self._of_thread = threading.local()

    def existing(self, cluster: str) -> tuple[Vm, ...] | CloudRefusal:
        def ask(driver: Any) -> tuple[Vm, ...]:
            found = (_machine(node) for node in driver.list_nodes(ex_filters=filter_of(cluster)))
            return tuple(vm for vm in found if vm is not None)

        return self._answered(ask)

    def create(self, order: VmOrder) -> Vm | CloudRefusal:
        script = filled(self._user_data, order)

        def ask(driver: Any) -> Vm:
            from libcloud.compute.base import NodeImage, NodeSize

            size = NodeSize(self._cloud.size, self._cloud.size, 0, 0, 0, 0, driver)
            image = NodeImage(self._cloud.image, self._cloud.image, driver)
            words = creation(self._cloud, order, script)
            if self._cloud.subnet:
                words["ex_subnet"] = _subnet(self._cloud.subnet)
            vm = _machine(driver.create_node(size=size, image=image, **words))
            if vm is None:
                raise ValueError("it was ended as soon as it was made")
            return vm

        return self._answered(ask)

    def end(self, vm: Vm) -> CloudRefusal | None:
        def ask(driver: Any) -> None:
            from libcloud.compute.base import Node

            driver.destroy_node(Node(vm.id, vm.id, None, [], [], driver))

        refusal = self._answered(ask)
        return None if refusal is None or _GONE in refusal.text else refusal

    def _answered(self, ask: Callable[[Any], _T]) -> _T | CloudRefusal:
        """The one seam over which Libcloud's exceptions come, of any class, and its network's."""
        try:
            return ask(self._driver())
        except Exception as error:
            return read_refusal(str(error) or type(error).__name__)

    def _driver(self) -> Any:
        """A connection serves one thread."""
        if not hasattr(self._of_thread, "driver"):
            self._of_thread.driver = self._driver_class(
                **self._credentials,
                region=self._cloud.region,
                signature_version="4",
                timeout=self._cloud.answer_seconds,
                **address_of(self._cloud.endpoint),
            )
        return self._of_thread.driver


def _driver_class() -> Any:
    try:
        from libcloud.compute.drivers.ec2 import EC2NodeDriver
    except ImportError:
        raise CloudError(
            "no Apache Libcloud here: install it with: pip install 'flowos-hpc[cloud]'"
        ) from None
    return EC2NodeDriver


def _subnet(id: str) -> Any:
    from libcloud.compute.drivers.ec2 import EC2NetworkSubnet

    return EC2NetworkSubnet(id, id, "available")


def _machine(node: Any) -> Vm | None:
    return read_machine(node.id, node.extra, node.private_ips, node.created_at.timestamp())
