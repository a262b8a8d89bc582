# A real Slurm on this host: one munged, one slurmctld and one to four slurmds, without systemd and beside any other Slurm.
# All files lie in one directory, all ports are its own, and every process is ended by its pid.
#
#   with Slurm(user="nobody", burst_buffer=DIRECTORY) as slurm: slurm.must("sbatch", script)
#   with Group([...]) as group, Slurm(group=group, at=["alpha", "beta"]) as slurm: ...
#
# In a Group the slurmctld stands at its first node, and a slurmd at each node of `at`: in that node's network namespace.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile

from .process import Daemon
from .stacked import Stacked
from .system import HarnessError, free_ports, is_root, run, scratch_parent, wait_until

_PROGRAMS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "munged": "munge", "sbatch": "slurm-client"}
_NODES_MAX = 4
_TEXTS = ("Reason=", "AdminComment=", "SystemComment=", "BurstBuffer=")  # of scontrol show job
_READY_S = 60
_CONFIGURATION = """\
ClusterName=sluice
SlurmctldHost={host}({address})
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={base}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool-%n
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/slurmd-%n.pid
SlurmctldLogFile={base}/slurmctld.log
SlurmdLogFile={base}/slurmd-%n.log
DebugFlags=BurstBuffer
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/linear
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0,batch_sched_delay=0,defer_batch
ReturnToService=2
SlurmdTimeout=20
SlurmctldTimeout=20
InactiveLimit=0
KillWait=5
MinJobAge=600
SlurmdParameters=config_overrides
"""


def slurm_missing():
    """Why there can be no Slurm here; None: there can."""
    if not is_root():
        return "a Slurm of several users needs root"
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            return f"no {program} here: apt-get install --no-install-recommends {package}"
    return None


class Slurm(Stacked):
    """user: who submits; root may not use a burst buffer. files: {name: text} beside slurm.conf. settings: {key: value} of
    slurm.conf, where {base} is that folder. environment: of slurmctld, besides."""

    def __init__(self, nodes=1, user="nobody", group=None, at=(), files=None, settings=None, environment=None):
        super().__init__()
        self.user = user
        self._group, self._at = group, list(at)
        count = len(self._at) or nodes
        if not 1 <= count <= _NODES_MAX:
            raise HarnessError(f"{count} slurmds: 1 to {_NODES_MAX} are possible")
        self.nodes = [f"n{place + 1}" for place in range(count)]
        self._files, self._settings = files or {}, settings or {}
        self._environment = environment or {}

    # ---- where things stand -------------------------------------------------------------------

    def _address(self, name):
        return "127.0.0.1" if self._group is None else self._group[name].address.split(":")[0]

    def _enter(self, name):
        return [] if self._group is None else self._group.enter(name)

    @property
    def _hub(self):
        return None if self._group is None else self._group.names[0]

    def _place(self, node):
        return self._at[self.nodes.index(node)] if self._at else self._hub

    def _make(self):
        if (reason := slurm_missing()) is not None:
            raise HarnessError(reason)
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="sluice-slurm-", dir=scratch_parent(0)))
        self.base.chmod(0o755)
        self._stack.callback(shutil.rmtree, self.base, ignore_errors=True)
        (self.base / "state").mkdir(mode=0o755)
        self.work = self.base / "work"
        self.work.mkdir()
        os.chown(self.work, pwd.getpwnam(self.user).pw_uid, -1)
        self._write_configuration()
        self._start_munged()
        self.slurmctld = self._daemon("slurmctld", self._hub, "slurmctld", "-D", **self._environment)
        self.slurmds = {node: self._daemon(f"slurmd-{node}", self._place(node), "slurmd", "-D", "-N", node)
                        for node in self.nodes}  # fmt: skip
        self._stack.callback(self._end)
        self.start()

    def _write_configuration(self):
        ports = free_ports(1 + len(self.nodes))
        text = _CONFIGURATION.format(host=socket.gethostname().split(".")[0], address=self._address(self._hub),
                                     port=ports[0], base=self.base)  # fmt: skip
        text += "".join(f"{key}={value.format(base=self.base)}\n" for key, value in self._settings.items())
        for node, port in zip(self.nodes, ports[1:]):
            text += (f"NodeName={node} NodeHostname={socket.gethostname().split('.')[0]} NodeAddr={self._address(self._place(node))} "
                     f"Port={port} CPUs=1 RealMemory=500\n")  # fmt: skip
        text += f"PartitionName=all Nodes={','.join(self.nodes)} Default=YES MaxTime=INFINITE State=UP\n"
        files = {"slurm.conf": text, "cgroup.conf": "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nConstrainCores=no\n"}
        for name, content in {**files, **self._files}.items():
            (self.base / name).write_text(content)
            (self.base / name).chmod(0o755)

    def _daemon(self, name, place, *command, **environment):
        words = ["env", f"SLURM_CONF={self.base}/slurm.conf", *(f"{key}={value}" for key, value in environment.items())]
        return Daemon(name, [*self._enter(place), *words, *command], self.base / f"{name}.out")

    def _start_munged(self):
        key = self.base / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self.munged = self._daemon("munged", None if self._group is None else self._hub, "munged", "--foreground", "--force", "--num-threads=2",
                                   f"--key-file={key}", f"--socket={self.base}/munge.socket",
                                   f"--pid-file={self.base}/munge.pid", f"--log-file={self.base}/munge.log",
                                   f"--seed-file={self.base}/munge.seed")  # fmt: skip
        self._stack.callback(self.munged.stop)
        self.munged.start()
        wait_until((self.base / "munge.socket").exists, 20, "munged answers")

    # ---- life ---------------------------------------------------------------------------------

    def start(self):
        self.slurmctld.start()
        for daemon in self.slurmds.values():
            daemon.start()
        self.wait_ready()

    def wait_ready(self):
        try:
            wait_until(self.idle, _READY_S, "Slurm is ready")
        except HarnessError as error:
            raise HarnessError(f"{error}; the logs end:\n{self.tails()}") from None

    def idle(self):
        for daemon in (self.slurmctld, *self.slurmds.values()):
            if not daemon.running():
                raise HarnessError(f"{daemon.name} ended: {self.tails()}")
        result = self.call("sinfo", "-h", "-N", "-o", "%N %t")
        return result.returncode == 0 and sorted(result.stdout.split("\n")[:-1]) == [f"{node} idle" for node in self.nodes]

    def tails(self):
        return "\n".join(f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-15:])
                         for path in sorted(self.base.glob("slurm*.log")) + sorted(self.base.glob("*.out")))  # fmt: skip

    def restart_slurmctld(self, crash=False):
        """crash: it is killed, and knows what its files say: jobs after some seconds, burst buffers after 30 (`saved`)."""
        self.slurmctld.kill() if crash else self.slurmctld.stop()
        self.slurmctld.start()
        wait_until(lambda: self.call("scontrol", "ping").stdout.count(" is UP"), _READY_S, "slurmctld is back")

    def saved(self, number, directive):
        """Its files know that files of this job, whose last directive this is, are staged in."""
        name = f"{number}\0".encode()
        # A job's directives, and behind them its state: texts with their lengths. Other jobs have been staged in before.
        state = re.compile(re.escape(directive.encode()) + rb"[^\0]{0,8}\0.{4}staging-in\0", re.DOTALL)
        jobs, buffers = self.base / "state/job_state", self.base / "state/burst_buffer_lua_state"
        return (jobs.exists() and state.search(jobs.read_bytes())
                and buffers.exists() and struct.pack("!I", len(name)) + name in buffers.read_bytes())  # fmt: skip

    def _end(self):
        for daemon in (self.slurmctld, *self.slurmds.values()):
            daemon.stop()
        # Jobs outlive their slurmd, and helpers their slurmctld: each has our configuration in its environment.
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: set(self.processes()) <= {self.munged.pid}, 20, "no process of Slurm is left")

    def processes(self):
        """Pids of all that this Slurm started, but munged."""
        word = f"SLURM_CONF={self.base}/slurm.conf".encode()
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if word in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
        return [pid for pid in found if pid != self.munged.pid]

    # ---- the commands -------------------------------------------------------------------------

    def call(self, *words, user=None, timeout_s=120):
        """Runs a command of Slurm as root, or as this user: a CompletedProcess with text output."""
        entry = pwd.getpwnam(user or "root")
        become = [] if user is None else ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups", "--"]
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "SLURM_CONF": str(self.base / "slurm.conf"),
                       "USER": entry.pw_name, "LOGNAME": entry.pw_name, "HOME": str(self.work)}  # fmt: skip
        return subprocess.run([*self._enter(self._hub), *become, *map(str, words)], capture_output=True, text=True, check=False,
                              timeout=timeout_s, env=environment, cwd=self.work)  # fmt: skip

    def must(self, *words, **options):
        result = self.call(*words, **options)
        if result.returncode != 0:
            raise HarnessError(f"{' '.join(map(str, words))}: exit {result.returncode}: {result.stderr.strip()}")
        return result.stdout

    def submit(self, text, *options):
        """sbatch by the user: a CompletedProcess; stdout is the job's number."""
        script = self.work / "job.sh"
        script.write_text(text)
        return self.call("sbatch", "--parsable", *options, script, user=self.user)

    def job(self, number):
        """scontrol show job, as {key: value}; empty where Slurm knows it no more, or is away."""
        result = self.call("scontrol", "show", "job", number)
        found = {}
        for line in result.stdout.splitlines():
            # Texts with blanks have a line of their own.
            words = [line.strip()] if line.strip().startswith(_TEXTS) else line.split()
            found.update(word.partition("=")[::2] for word in words if "=" in word)
        return found
