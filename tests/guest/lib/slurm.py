# SPDX-License-Identifier: GPL-2.0-or-later
"""A Slurm of one node, in a folder: munged, slurmctld and slurmd, with their
own key, ports and files. It needs root, and no systemd: processes are found by
/proc (proctrack/linuxproc), so no control groups are used."""
import contextlib
import os
import platform
import re
import shutil
import socket
import subprocess
import time

PROGRAMS = 'munged', 'slurmctld', 'slurmd', 'sbatch', 'squeue'
# Jobs that are run again wait for cred_expire seconds.
CONFIG = """\
ClusterName=ka
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={port}
SlurmdPort={port2}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1
ReturnToService=2
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory}
PartitionName=ka Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def why_not():
    """Return why Slurm cannot be started here, or None."""
    path = os.environ.get('PATH', '') + ':/usr/sbin:/sbin'
    missing = [p for p in PROGRAMS if not shutil.which(p, path=path)]
    if missing:
        return 'not installed: ' + ' '.join(missing)
    return None if os.geteuid() == 0 else 'it needs root'


def free_ports(n):
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(n)]
        for s in found:
            s.bind(('127.0.0.1', 0))
        return [s.getsockname()[1] for s in found]


class Slurm:
    """A cluster, while the with block runs. self.env: the environment in
    which sbatch and squeue find it."""

    def __init__(self, folder, cpus=2, memory=6000):
        self.folder, self.daemons = folder, {}
        self.env = {**os.environ, 'SLURM_CONF': self.path('slurm.conf'),
                    'PATH': os.environ['PATH'] + ':/usr/sbin:/sbin'}
        for name in 'state', 'spool':
            os.makedirs(self.path(name))
        ports = free_ports(2)
        with open(self.path('slurm.conf'), 'w', encoding='ascii') as f:
            f.write(CONFIG.format(host=platform.node().split('.')[0],
                                  folder=folder, port=ports[0],
                                  port2=ports[1], cpus=cpus, memory=memory))
        with open(self.path('munge.key'), 'wb') as f:
            os.chmod(self.path('munge.key'), 0o400)
            f.write(os.urandom(128))

        if self.version() >= (24, 5):
            with open(self.path('cgroup.conf'), 'w', encoding='ascii') as f:
                f.write('CgroupPlugin=disabled\n')

    def version(self):
        """Return (24, 11) and the like. Before 24.05 no control groups are
        used unless a plugin needs them; from there on a file has to say so."""
        found = re.search(r'(\d+)\.(\d+)', self.ask('slurmd', '-V'))
        return tuple(map(int, found.groups())) if found else (0, 0)

    def path(self, name):
        return os.path.join(self.folder, name)

    def log(self, name):
        with open(self.path(name + '.log'), encoding='utf-8',
                  errors='replace') as f:
            return f.read()[-2000:]

    def start(self, name, *words):
        """Start a daemon, which is a child of this process."""
        with open(self.path(name + '.log'), 'ab') as log:
            self.daemons[name] = subprocess.Popen(
                [name, *words], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env=self.env)

    def start_slurmd(self):
        self.start('slurmd', '-D', '-f', self.path('slurm.conf'))

    def kill_slurmd(self):
        self.daemons['slurmd'].kill()
        self.daemons['slurmd'].wait()

    def ask(self, *words):
        done = subprocess.run(words, env=self.env, capture_output=True,
                              text=True, timeout=60, check=False)
        return done.stdout.strip()

    def wait(self, what, seconds=60):
        """Wait until what() is true."""
        end = time.monotonic() + seconds
        while not what():
            if time.monotonic() > end:
                raise TimeoutError('\n'.join(
                    f'{n}: {self.log(n)}' for n in self.daemons))
            time.sleep(0.2)

    def jobs(self):
        return self.ask('squeue', '-h', '-r', '-o', '%K %T').splitlines()

    def __enter__(self):
        try:
            self.start('munged', '--foreground', '--force',
                       '--key-file=' + self.path('munge.key'),
                       '--socket=' + self.path('munge.sock'),
                       '--pid-file=' + self.path('munged.pid'),
                       '--log-file=' + self.path('munged.own'),
                       '--seed-file=' + self.path('munge.seed'))
            self.wait(lambda: os.path.exists(self.path('munge.sock')))
            self.start('slurmctld', '-D', '-f', self.path('slurm.conf'))
            self.start_slurmd()
            self.wait(lambda: 'idle' in self.ask('sinfo', '-h', '-o', '%T'),
                      120)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self):
        for name in reversed(list(self.daemons)):
            proc = self.daemons[name]
            proc.terminate()
            try:
                proc.wait(10)
            except subprocess.TimeoutExpired:
                proc.kill()
                proc.wait()

    def __exit__(self, *_):
        self.ask('scancel', '--user=root')
        with contextlib.suppress(TimeoutError):
            self.wait(lambda: not self.jobs(), 20)
        self.stop()
        return False
