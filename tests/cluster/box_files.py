"""Files of a `Box`: of Slurm, its database and its cloud."""

CONF = """\
ClusterName=box
SlurmctldHost={host}({address})
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
PluginDir={plugins}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=permit_job_expansion,batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
MpiDefault=none
ReturnToService=2
KillWait=2
SlurmdTimeout=10
InactiveLimit=0
TreeWidth=65533
MailProg=/bin/true
"""
NO_ACCOUNTING = """\
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
"""
ACCOUNTING = """\
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={host}
AccountingStoragePort={slurmdbd}
AccountingStoragePass={folder}/munge.sock
"""
SLURMDBD = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
DbdHost={host}
DbdPort={slurmdbd}
SlurmUser={user}
PluginDir={plugins}
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser={user}
"""
NODE = "NodeName={name} {address} CPUs={cores} RealMemory={memory}\n"
PARTITION = "PartitionName=main Nodes={nodes} Default=YES MaxTime=60 State=UP\n"
CLOUD = """\
PrivateData=cloud
PartitionName=cloud Nodes={nodes} MaxTime=60 State=UP SuspendTime=1
SlurmctldParameters=idle_on_node_suspend,power_save_interval=1,power_save_min_interval=1
SuspendTime=-1
SuspendTimeout=1
ResumeTimeout={patience}
ResumeRate=0
SuspendRate=0
ResumeProgram={folder}/resume
SuspendProgram={folder}/suspend
"""
PROGRAM = """\
#!/bin/sh
export FLOWOS_CONFIG={folder}/flowos.toml PATH={path}
exec {flowos} cloud {what} "$@"
"""
SETTINGS = """\
[cloud.box]
driver = "fake"
nodes = "{nodes}"
folder = "{folder}/cloud"
user_data = "{folder}/boot"
log = "{folder}/cloud.log"
"""
BOOT = """\
export PATH={path} SLURM_CONF={folder}/@NODE@/slurm.conf
second=$(date +%s)
while [ $(date +%s) = $second ]; do sleep 0.05; done
exec slurmd -b -D -N @NODE@ -d {stepd}
"""
"""-b: it counts as a machine that has just started: in a later second than it was asked for, or
Slurm takes it for one that has not."""

BOOT_APART = """\
exec {python} -I -S -c '
import socket
line = socket.socket(socket.AF_UNIX)
line.connect("{folder}/machines")
line.sendall(b"@NODE@\\n")
line.recv(1)
'
"""
"""inside.py starts a machine, which is there as long as this process is."""
KERNELS = """\
{published}
ResumeTimeout={patience}
"""
HELPERS = """\
BootTime=1
ExecTime=5
"""
BMCS = "http://10.77.0.254:8000/{node}"
"""Where bmcs.py answers."""
BMC_SETTINGS = """\
user = "admin:secret word"
"""
