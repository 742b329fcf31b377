"""What every cloud promises; see flowos.engine.cloud._machines. EC2 is moto's, over real HTTP."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from libcloud.compute.drivers.ec2 import EC2NodeDriver

from flowos.engine import Machines, open_cloud
from flowos.engine.cloud._open_cloud import _CLOUDS
from flowos.model import Cloud, CloudError, CloudRefusal, Vm, VmOrder
from flowos.model._cloud import CloudDriver
from flowos.plan import nonce_at
from tests.waiting import comes

from .ec2_server import IMAGE, Ec2Server

BOOT = "echo @NODE@ of @CLUSTER@, @NONCE@ >@FOLDER@/said-@NODE@; exec sleep 1000\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Ec2Server]:
    found = Ec2Server()
    yield found
    found.stop()


@pytest.fixture
def boot(tmp_path: Path) -> Path:
    (tmp_path / "boot").write_text(BOOT.replace("@FOLDER@", str(tmp_path)))
    return tmp_path / "boot"


@pytest.fixture(params=["fake", "ec2"])
def table(
    request: pytest.FixtureRequest, tmp_path: Path, boot: Path, server: Ec2Server, account: Path
) -> Cloud:
    if request.param == "fake":
        at = str(tmp_path / "machines")
        return Cloud(name="f", driver="fake", folder=at, user_data=str(boot))
    return ec2(server.url, boot, account)


@pytest.fixture
def account(tmp_path: Path) -> Path:
    file = tmp_path / "account.toml"
    file.write_text('key = "a-key"\nsecret = "a-secret"\n')
    file.chmod(0o600)
    return file


def ec2(url: str, boot: Path, account: Path) -> Cloud:
    return Cloud(
        name="e",
        region="us-east-1",
        image=IMAGE,
        size="t3.micro",
        endpoint=url,
        user_data=str(boot),
        credentials=str(account),
        tags=("project=physics",),
    )


@pytest.fixture
def cloud(table: Cloud, cluster: str) -> Iterator[Machines]:
    found = open_cloud(table)
    yield found
    for vm in machines(found, cluster):
        found.end(vm)


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> str:
    """Of each test its own: an account has many."""
    return f"box{abs(hash(request.node.name))}"


def machines(cloud: Machines, cluster: str) -> tuple[Vm, ...]:
    found = cloud.existing(cluster)
    assert isinstance(found, tuple), found
    return found


def made(cloud: Machines, cluster: str, node: str, seconds: float = 5.0) -> Vm:
    order = VmOrder(cluster=cluster, node=node, nonce=nonce_at(seconds, "a"))
    vm = cloud.create(order)
    assert isinstance(vm, Vm), vm
    return vm


def test_a_machine_is_there_with_its_tags_until_it_is_ended(cloud: Machines, cluster: str) -> None:
    assert machines(cloud, cluster) == ()
    vm = made(cloud, cluster, "c1")
    assert (vm.node, vm.nonce) == ("c1", nonce_at(5.0, "a"))
    assert abs(vm.created - time.time()) < 3600
    (found,) = machines(cloud, cluster)
    assert (found.id, found.node, found.nonce) == (vm.id, vm.node, vm.nonce)
    assert cloud.end(vm) is None
    assert machines(cloud, cluster) == ()


def test_to_end_it_twice_is_once(cloud: Machines, cluster: str) -> None:
    vm = made(cloud, cluster, "c1")
    assert (cloud.end(vm), cloud.end(vm)) == (None, None)
    assert cloud.end(replace(vm, id="i-0123456789abcdef0")) is None


def test_clusters_of_an_account_see_their_own_machines_only(cloud: Machines, cluster: str) -> None:
    made(cloud, cluster, "c1")
    assert machines(cloud, f"{cluster}-other") == ()
    assert machines(cloud, cluster[:-1]) == ()
    made(cloud, f"{cluster}-other", "c1")
    assert [vm.node for vm in machines(cloud, cluster)] == ["c1"]
    (other,) = machines(cloud, f"{cluster}-other")
    cloud.end(other)


def test_several_are_made_at_once(cloud: Machines, cluster: str) -> None:
    nodes = [f"c{number}" for number in range(1, 9)]
    threads = [threading.Thread(target=made, args=(cloud, cluster, node)) for node in nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(vm.node for vm in machines(cloud, cluster)) == nodes


def test_a_cloud_of_no_use_is_a_refusal_and_no_exception(table: Cloud) -> None:
    broken = {"fake": {"folder": "/proc/no"}, "ec2": {"image": "ami-x", "endpoint": closed_port()}}
    gone = open_cloud(replace(table, answer_seconds=0.2, **broken[table.driver]))  # type: ignore[arg-type]
    refusal = gone.create(VmOrder(cluster="box", node="c1", nonce="1"))
    assert isinstance(refusal, CloudRefusal)
    assert refusal.kind in ("unknown", "unreachable")
    assert "\n" not in refusal.text


def test_every_driver_that_a_table_may_name_has_a_cloud() -> None:
    assert {*_CLOUDS} == {*get_args(CloudDriver)}


def closed_port() -> str:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}"


# ---- the fake one ----


def test_a_fake_machine_runs_its_script_in_a_session_of_its_own(
    tmp_path: Path, boot: Path, cluster: str
) -> None:
    at = str(tmp_path / "machines")
    cloud = open_cloud(Cloud(name="f", driver="fake", folder=at, user_data=str(boot)))
    vm = made(cloud, cluster, "c1")
    said = tmp_path / "said-c1"
    assert comes(lambda: said.exists() and said.read_text().endswith("\n"))
    assert said.read_text() == f"c1 of {cluster}, {vm.nonce}\n"
    again = cloud.create(VmOrder(cluster=cluster, node="c1", nonce=vm.nonce))
    assert again == vm, "one machine for an order, however often it comes"
    assert cloud.end(vm) is None
    assert not [path for path in (tmp_path / "machines").iterdir() if path.suffix != ".log"]


def test_a_fake_cloud_answers_what_its_table_says(tmp_path: Path, boot: Path) -> None:
    fake = Cloud(
        name="f",
        driver="fake",
        folder=str(tmp_path / "machines"),
        user_data=str(boot),
        answer_seconds=0.3,
        answers=("create: VcpuLimitExceeded: no", "list: hang", "end: InternalError: later"),
    )
    cloud = open_cloud(fake)
    order = VmOrder(cluster="box", node="c1", nonce="1")
    assert cloud.create(order) == CloudRefusal("quota", "VcpuLimitExceeded: no")
    hangs = cloud.existing("box")
    assert hangs == CloudRefusal("unreachable", "no answer within 0 s")
    vm = Vm(id="x", node="c1", nonce="1", created=0.0)
    assert cloud.end(vm) == CloudRefusal("busy", "InternalError: later")


@pytest.mark.parametrize("text", ["{", "[]", '{"pid": 1}', b"\xff"])
def test_a_file_that_is_no_record_of_a_fake_machine_is_named(
    tmp_path: Path, boot: Path, text: str | bytes
) -> None:
    record = tmp_path / "box-c7-x.json"
    record.write_bytes(text if isinstance(text, bytes) else text.encode())
    cloud = open_cloud(Cloud(name="f", driver="fake", folder=str(tmp_path), user_data=str(boot)))
    said = CloudRefusal("unknown", f"{record}: no record of a machine; remove it")
    assert cloud.existing("box") == said
    assert cloud.create(VmOrder(cluster="box", node="c1", nonce="1")) == said


# ---- EC2 ----


def test_a_request_whose_answer_is_lost_makes_no_second_machine(
    server: Ec2Server, boot: Path, account: Path, cluster: str
) -> None:
    cloud = open_cloud(ec2(server.url, boot, account))
    lost = server.lost
    server.lose = b"RunInstances"
    vm = made(cloud, cluster, "c1")
    assert server.lost == lost + 1
    assert [found.id for found in machines(cloud, cluster)] == [vm.id]
    cloud.end(vm)


def test_what_ec2_refuses_is_said_in_its_words(
    server: Ec2Server, boot: Path, account: Path
) -> None:
    order = VmOrder(cluster="box", node="c1", nonce="1")
    plain = ec2(server.url, boot, account)
    refusal = open_cloud(replace(plain, subnet="subnet-0")).create(order)
    assert isinstance(refusal, CloudRefusal)
    assert (refusal.kind, refusal.text.split(":")[0]) == ("request", "InvalidSubnetID.NotFound")


def test_a_machine_of_ec2_has_an_address_and_is_of_the_tables_size(
    server: Ec2Server, boot: Path, account: Path, cluster: str
) -> None:
    cloud = open_cloud(replace(ec2(server.url, boot, account), size="c6i.2xlarge", spot=True))
    vm = made(cloud, cluster, "c1")
    place: dict[str, object] = {"host": "127.0.0.1", "port": server.port}
    place |= {"secure": False, "signature_version": "4"}
    driver = EC2NodeDriver("k", "s", region="us-east-1", **place)
    (node,) = driver.list_nodes(ex_node_ids=[vm.id])
    assert node.extra["instance_type"] == "c6i.2xlarge"
    assert node.extra["tags"]["project"] == "physics"
    assert node.private_ips == [vm.address] != [""]
    cloud.end(vm)


@pytest.mark.parametrize(
    ("text", "mode", "complaint"),
    [
        ('key = "a"\nsecret = "b"\n', 0o644, "is open to others; mend: chmod 600"),
        ('key = "a-secret', 0o600, "is no TOML"),
        ('key = "a-secret"\n', 0o600, "has to have texts `key`, `secret` and maybe `token`"),
        ('key = "a-secret"\nsecret = 3\n', 0o600, "has to have texts"),
        ('key = "a"\nsecret = "a-secret"\nx = "y"\n', 0o600, "has to have texts"),
        (None, 0o600, "cannot be read: No such file or directory"),
    ],
)
def test_credentials_are_read_with_care(
    tmp_path: Path, boot: Path, text: str | None, mode: int, complaint: str
) -> None:
    file = tmp_path / "aws.toml"
    if text is not None:
        file.write_text(text)
        file.chmod(mode)
    with pytest.raises(CloudError) as refused:
        open_cloud(ec2("http://127.0.0.1:1", boot, file))
    assert str(refused.value).startswith(f"cloud.e.credentials: {file} {complaint}")
    assert "a-secret" not in str(refused.value)


def test_credentials_may_come_from_the_environment(
    server: Ec2Server, boot: Path, account: Path, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = replace(ec2(server.url, boot, account), credentials="")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    with pytest.raises(CloudError, match=r"cloud\.e: no credentials: name a file with `credent"):
        open_cloud(plain)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert machines(open_cloud(plain), cluster) == ()


def test_a_script_that_is_not_there_is_said(tmp_path: Path, account: Path) -> None:
    with pytest.raises(CloudError, match=r"cloud\.e\.user_data: .*/no cannot be read: No such"):
        open_cloud(ec2("http://127.0.0.1:1", tmp_path / "no", account))
    (tmp_path / "no").write_bytes(b"\xff")
    with pytest.raises(CloudError, match="is no UTF-8 text"):
        open_cloud(ec2("http://127.0.0.1:1", tmp_path / "no", account))
