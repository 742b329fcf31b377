"""A Grid Engine of this user's own, as `Box` is a Slurm: nodes apart, no root.

`with Grid() as grid:` in a test; `python -m tests.cluster.grid` to try things out. Its queue main.q
has four slots on each node, its parallel environment `nodes` gives whole ones, `one` a single one,
and `mixed` gives slots as they come.

Grid Engine finds its nodes by their names on one port, so that they have to be apart. What it has
to know of itself is written as its own files ("classic spooling") before it starts: ten times
faster than asking qconf for it.
"""

import os
import pwd
import shutil
from itertools import product
from pathlib import Path

from .box import CORES, PLACES, Box, BoxError, show

UNPACKED = Path(__file__).parents[2] / ".deps/gridengine/usr"
PROGRAMS = "/usr/lib/gridengine"
COMMANDS = ("qacct", "qconf", "qdel", "qhost", "qmod", "qrsh", "qstat", "qsub")

BOOTSTRAP = """\
admin_user             {user}
default_domain         none
ignore_fqdn            true
spooling_method        classic
spooling_lib           libspoolc
spooling_params        {root}/default/common;{root}/qmaster
binary_path            {root}/bin
qmaster_spool_dir      {root}/qmaster
security_mode          none
listener_threads       2
worker_threads         2
scheduler_threads      1
"""
CONFIGURATION = {
    "execd_spool_dir": "{root}/execd",
    "min_uid": "0",
    "min_gid": "0",
    "gid_range": "20000-20100",
    "mailer": "/bin/true",
    "load_report_time": "00:00:01",
    "max_unheard": "00:00:20",
    "reporting_params": "accounting=true reporting=false flush_time=00:00:01 joblog=false "
    "sharelog=00:00:00",
}
"""What differs from Debian's default."""

SCHEDULER = """\
algorithm                         default
schedule_interval                 0:0:1
maxujobs                          0
queue_sort_method                 0
job_load_adjustments              NONE
load_adjustment_decay_time        0:0:0
load_formula                      slots
schedd_job_info                   true
flush_submit_sec                  1
flush_finish_sec                  1
params                            none
reprioritize_interval             0:0:0
halftime                          168
usage_weight_list                 cpu=1.000000 mem=0.000000 io=0.000000
compensation_factor               5.000000
weight_user                       0.250000
weight_project                    0.250000
weight_department                 0.250000
weight_job                        0.250000
weight_tickets_functional         0
weight_tickets_share              0
share_override_tickets            TRUE
share_functional_shares           TRUE
max_functional_jobs_to_schedule   200
report_pjob_tickets               TRUE
max_pending_tasks_per_job         50
halflife_decay_list               none
policy_hierarchy                  OFS
weight_ticket                     0.500000
weight_waiting_time               0.278000
weight_deadline                   3600000.000000
weight_urgency                    0.500000
weight_priority                   0.000000
max_reservation                   0
default_duration                  INFINITY
"""
INSTANCE = """\
qname                 main.q
hostname              {name}
state                 0
pending_signal        0
pending_signal_del    0
version               1
"""
LIMITS = ("rt", "cpu", "fsize", "data", "stack", "core", "rss", "vmem")
QUEUE = """\
qname                 main.q
hostlist              {hosts}
seq_no                0
load_thresholds       NONE
suspend_thresholds    NONE
nsuspend              1
suspend_interval      00:05:00
priority              0
min_cpu_interval      00:05:00
processors            UNDEFINED
qtype                 BATCH INTERACTIVE
ckpt_list             NONE
pe_list               nodes one mixed
rerun                 FALSE
slots                 {cores}
tmpdir                /tmp
shell                 /bin/sh
prolog                NONE
epilog                NONE
shell_start_mode      posix_compliant
starter_method        NONE
suspend_method        NONE
resume_method         NONE
terminate_method      NONE
notify                00:00:60
owner_list            NONE
user_lists            NONE
xuser_lists           NONE
subordinate_list      NONE
complex_values        NONE
projects              NONE
xprojects             NONE
calendar              NONE
initial_state         default
""" + "".join(f"{kind}_{limit} INFINITY\n" for limit in LIMITS for kind in "sh")
PARALLEL = """\
pe_name            {name}
slots              999
user_lists         NONE
xuser_lists        NONE
start_proc_args    NONE
stop_proc_args     NONE
allocation_rule    {rule}
control_slaves     TRUE
job_is_first_task  TRUE
urgency_slots      min
accounting_summary FALSE
qsort_args         NONE
"""
HOST = """\
hostname              {name}
load_scaling          NONE
complex_values        NONE
load_values           NONE
processors            0
user_lists            NONE
xuser_lists           NONE
projects              NONE
xprojects             NONE
usage_scaling         NONE
report_variables      NONE
"""
ENTER = """\
#!/bin/sh
exec {enter} {programs}/${{0##*/}} "$@"
"""


class Grid(Box):
    """A running Grid Engine. nodes: their names. slots: of each; CORES of them are a whole node."""

    name = "sge"

    def __init__(self, nodes: int = 2, *, slots: int = CORES) -> None:
        self._slots = slots
        super().__init__(nodes, apart=True)

    @property
    def variables(self) -> dict[str, str]:
        """Of commands that `enter` starts."""
        return {**self._place, "PATH": os.pathsep.join((PROGRAMS, os.environ["PATH"]))}

    @property
    def outside(self) -> dict[str, str]:
        """Of commands out here: they find Grid Engine's, which enter by themselves."""
        return {
            **self._place,
            "PATH": os.pathsep.join((str(self._root / "out"), os.environ["PATH"])),
        }

    @property
    def _place(self) -> dict[str, str]:
        ports = {"SGE_QMASTER_PORT": "6444", "SGE_EXECD_PORT": "6445"}
        return {"SGE_ROOT": str(self._root), "SGE_CELL": "default", **ports}

    @property
    def _of_daemons(self) -> dict[str, str]:
        path = os.pathsep.join(map(str, (PROGRAMS, *PLACES, os.environ["PATH"])))
        return {"SGE_ND": "1", "FLOWOS_GRID_USR": str(UNPACKED), "PATH": path}

    @property
    def _kind(self) -> str:
        return "grid"

    @property
    def _root(self) -> Path:
        return self.folder / "sge"

    def __enter__(self) -> "Grid":
        super().__enter__()
        script = self._root / "out/enter"
        words = self.enter_as("--net", "--mount", "--uts")  # and not --pid, which would fork
        script.write_text(ENTER.format(enter=" ".join(words), programs=PROGRAMS))
        script.chmod(0o755)
        for command in COMMANDS:
            (script.parent / command).symlink_to(script)
        return self

    def _write(self) -> None:
        super()._write()
        if not (UNPACKED / "lib/gridengine/sge_qmaster").exists():
            raise BoxError("no sge_qmaster: tools/setup test unpacks it")
        user = pwd.getpwuid(os.geteuid()).pw_name
        common, qmaster = self._root / "default/common", self._root / "qmaster"
        hosts = ("ctl", *self.nodes)
        files = {
            common / "bootstrap": BOOTSTRAP.format(user=user, root=self._root),
            common / "act_qmaster": "ctl\n",
            common / "configuration": self._configuration(),
            common / "sched_configuration": SCHEDULER,
            qmaster / "managers": f"{user}\n",
            qmaster / "cqueues/main.q": QUEUE.format(hosts=" ".join(self.nodes), cores=self._slots),
            **{qmaster / f"qinstances/main.q/{n}": INSTANCE.format(name=n) for n in self.nodes},
            **{qmaster / f"admin_hosts/{n}": f"hostname {n}\n" for n in hosts},
            **{qmaster / f"submit_hosts/{n}": f"hostname {n}\n" for n in hosts},
            **{
                qmaster / f"exec_hosts/{n}": HOST.format(name=n)
                for n in ("global", "template", *self.nodes)
            },
            **{
                qmaster / f"pe/{name}": PARALLEL.format(name=name, rule=rule)
                for name, rule in (("nodes", CORES), ("one", "$pe_slots"), ("mixed", "$fill_up"))
            },
        }
        for file, text in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        for folder in ("execd", "bin", "utilbin", "out", "qmaster/job_scripts"):
            (self._root / folder).mkdir(parents=True)
        resources = UNPACKED / "share/gridengine/util/resources"
        for name in ("centry", "usersets"):
            shutil.copytree(resources / name, qmaster / name)
        for name, arch in product(("bin", "utilbin"), ("lx-amd64", "lx-arm64")):
            (self._root / name / arch).symlink_to(PROGRAMS)
        (self._root / "util").symlink_to("/usr/share/gridengine/util")

    def _configuration(self) -> str:
        default = (UNPACKED / "share/gridengine/default-configuration").read_text()
        pairs = [line.split(None, 1) for line in default.splitlines() if line[:1] not in ("#", "")]
        found = {name: value for name, value in pairs}
        found |= {name: value.format(root=self._root) for name, value in CONFIGURATION.items()}
        head = {"conf_name": "global", "conf_version": "0"}
        return "".join(f"{name} {value}\n" for name, value in (head | found).items())


if __name__ == "__main__":
    show(Grid())
