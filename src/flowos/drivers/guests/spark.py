"""Spark's own cluster: a master on the first node, a worker on each."""

import re
from collections.abc import Mapping

from flowos._dataclasses import dataclass
from flowos.drivers._guests import ADDRESS, FOLDER, Connection, GuestPlan, GuestWords
from flowos.model import Argv, Pairs

_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_SPARK_CLASS = (
    "import os, sys; from pyspark.find_spark_home import _find_spark_home as home; "
    "program = home() + '/bin/spark-class'; os.execv(program, [program, *sys.argv[1:]])"
)
_LEFT_BYTES, _MIN_BYTES = 1 << 30, 1 << 29
"""What of a node's memory Spark leaves alone, and takes at least."""


@dataclass(frozen=True)
class Spark:
    """See `GuestDriver`. Clients and its own programs read its settings from `SPARK_CONF_DIR`."""

    name: str = "spark"
    modules: tuple[str, ...] = ("pyspark",)
    remedy: str = "pip install pyspark"
    complaints: Pairs = (
        ("JAVA_HOME is not set", "apt-get install default-jre-headless"),
        ("FileNotFoundError", "apt-get install bash coreutils"),  # its programs are scripts
    )
    hasty: str = ""
    certified: bool = False
    head_is_ours: bool = False

    def files(self, plan: GuestPlan) -> Mapping[str, str]:
        settings = {
            "spark.authenticate": "true",
            "spark.authenticate.secret": plan.secret,
            "spark.network.crypto.enabled": "true",
            "spark.ui.enabled": "false",
            "spark.ui.killEnabled": "false",
            "spark.pyspark.python": plan.python,
            "spark.driver.host": plan.ours,
            "spark.driver.bindAddress": plan.ours,
        }
        lines = (f"{name} {value}" for name, value in settings.items())
        return {"spark-defaults.conf": "\n".join((*lines, ""))}

    def head(self, plan: GuestPlan) -> GuestWords:
        return GuestWords(argv=_daemon(plan, "master.Master"), variables=_variables(plan))

    def worker(self, plan: GuestPlan, address: str) -> GuestWords:
        memory = max(plan.memory_bytes - _LEFT_BYTES, _MIN_BYTES) >> 20
        shares = ("--cores", str(plan.cores), "--memory", f"{memory}m", "--work-dir", FOLDER)
        argv = (*_daemon(plan, "worker.Worker"), *shares, address)
        return GuestWords(argv=argv, variables=_variables(plan))

    def read_address(self, line: str) -> str:
        found = _MASTER.search(line)
        return found[1] if found else ""

    def has_joined(self, line: str) -> bool:
        return "Successfully registered with master" in line

    def connection(self, plan: GuestPlan, address: str) -> Connection:
        variables = (("SPARK_CONF_DIR", str(plan.files)), ("PYSPARK_PYTHON", plan.python))
        return Connection(address=address, options={}, variables=variables)


def _daemon(plan: GuestPlan, name: str) -> Argv:
    ports = ("--host", ADDRESS, "--port", "0", "--webui-port", "0")
    return (plan.python, "-c", _SPARK_CLASS, f"org.apache.spark.deploy.{name}", *ports)


def _variables(plan: GuestPlan) -> Pairs:
    java = f"-Djava.io.tmpdir={FOLDER} -XX:-UsePerfData"
    return (
        ("SPARK_CONF_DIR", str(plan.files)),
        ("SPARK_LOCAL_IP", ADDRESS),
        ("SPARK_LOCAL_DIRS", FOLDER),
        ("SPARK_LOG_DIR", FOLDER),
        ("JAVA_TOOL_OPTIONS", java),
        ("SPARK_DAEMON_JAVA_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
    )
