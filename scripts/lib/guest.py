# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests: start one, wait, run commands of ka on each connection, stop.

    with Guest(kernel='6.12', run='work', n=2, end='wait') as g:
        g.wait_marker('KA-DONE')
        print(g.gdb(['mon ka stat']), g.hmp('ka stat'), g.hmp_qmp('ka stat'))

A guest's files (sockets, serial.log, qemu.log, gdb-*.log) are in a private
folder, which stop() removes. If a test failed (an exception left the with
block, or keep() was called), the logs are copied to the results folder.
"""
import atexit
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import threading
import time

from . import signals
from .. import ka
from .arches import ARCHES
from .prepared import ROOT, kernel_arch, results_folder
from .qmp import GuestError, Qmp, connect

RUN = os.path.join(ROOT, 'scripts', 'ka-run')

signals.end_on_signals()


class GuestPanic(GuestError):
    """The guest has panicked, and its VM is paused."""


class Guest:
    """One VM.

    kernel   a prepared one ('6.12', 'arm64-6.12'), or a kernel file
    arch     of a kernel file, a key of ARCHES (default: x86_64)
    plugin   False: do not load the tracer; stock: use the unpatched QEMU
    symbols  kernel file for the tracer, or 'none' (default: the tracer finds
             the kernel in guest memory)
    journal  file of the tracer's event log
    cmdline  more words for the kernel command line
    run, n   workload (NAME.sh of the initramfs or the share) and its size
    end      'wait', 'poweroff' or 'shell' (shell() needs it); None if the
             initramfs is not ours
    share    folder that is copied into the guest as /share when it starts
    out      folder to which collect() unpacks the workload's /share/out,
             after KA-DONE
    console  'socket', or 'file': its reader then cannot make the guest wait,
             and shell() cannot be used
    qemu     more QEMU arguments; options: more ka-run options
    timeout  seconds, for everything that does not have its own timeout
    build    build folder of another tracer (default: that of this tree)
    accel    'tcg', 'kvm' or 'auto'
    ends_with_us  kill QEMU when the thread that started it ends in any way; a
             recording is ended
    argv     function: folder of the guest -> a command line of QEMU with the
             sockets of ka-run there, which replaces ka-run
    """

    def __init__(self, kernel='6.12', smp=1, plugin=True, stock=False,
                 symbols=None, journal=None, cmdline='', run=None, n=1,
                 end='wait', share=None, out=None, kaslr=True, mem='1G',
                 plugin_opts=None, qemu=(), options=(), timeout=120,
                 name='guest', arch=None, build=None, console='socket',
                 ends_with_us=False, argv=None, accel='tcg'):
        self.timeout, self.name, self.out = timeout, name, out
        self._env = {**os.environ, **({'KA_BUILD': build} if build else {})}
        self.arch = ARCHES[arch or kernel_arch(kernel)]
        self.dir = tempfile.mkdtemp(prefix='ka-guest.')
        self.image = self.path('out.img')       # of the disk for /share/out
        self._kept = None
        self._gdb_runs = 0
        self._qmp = self._serial = self._lost = self._drain = None
        self._shells = 0
        self._stop_drain, self._serial_ready = (threading.Event()
                                                for _ in range(2))
        self._boots = not {'-loadvm', '-incoming'} & set(qemu)
        self._args = [RUN, '--dir', self.dir, '--kernel', kernel,
                      '--smp', str(smp), '--mem', mem, '--panic', 'exit',
                      '--accel', accel, *options]
        self._flag('--stock', stock)
        self._flag('--no-plugin', not plugin and not stock)
        self._flag('--no-kaslr', not kaslr)
        self._option('--arch', arch)
        self._option('--symbols', symbols)
        self._option('--journal', journal)
        self._option('--plugin-opts', plugin_opts)
        self._option('--share', share)
        self._option('--out', self.image if out else None)
        words = ['ka.end=' + end if end else '', cmdline]
        if run:
            words += ['ka.run=' + run, f'ka.n={n}']
        self._option('--append', ' '.join(w for w in words if w))
        if console == 'file':
            self._args += ['--serial', 'none', '--', '-serial',
                           'file:' + self.path('serial.log'), *qemu]
        else:
            self._args += ['--serial', 'socket', '--', *qemu]
        if argv:
            self._args = argv(self.dir)
        if ends_with_us:
            # Of a recording, ka-run is the parent of QEMU.
            self._args[:0] = ['setpriv', '--pdeathsig', 'TERM' if '--record'
                              in options else 'KILL']
        self._start()
        if console == 'socket':
            self._start_drain()

    def _flag(self, option, on):
        if on:
            self._args.append(option)

    def _option(self, option, value):
        if value is not None:
            self._args += [option, value]

    def _start(self):
        self.started = time.monotonic()
        self._log = open(os.path.join(self.dir, 'qemu.log'), 'wb')
        self.proc = subprocess.Popen(
            self._args, stdin=subprocess.DEVNULL, stdout=self._log,
            stderr=self._log, start_new_session=True, env=self._env)
        atexit.register(self._end_qemu)

    def _start_drain(self):
        self._drain = threading.Thread(target=self._drain_serial, daemon=True)
        self._drain.start()

    # This thread writes the log of the console. QEMU's own log of a socket
    # repeats characters: chardev/char.c logs all bytes of a write that ended
    # in EAGAIN, and logs them again when the write is repeated.
    def _drain_serial(self):
        try:
            self._serial = connect(self.path('serial.sock'), self.timeout,
                                   self.alive)
        except GuestError:
            return
        self._serial.settimeout(1)
        try:
            with open(self.path('serial.log'), 'wb', buffering=0) as log:
                self._serial_ready.set()
                self._drain_to(log)
        except OSError as e:
            self._lost = e

    def _drain_to(self, log):
        while not self._stop_drain.is_set():
            try:
                data = self._serial.recv(65536)
            except socket.timeout:
                continue
            except OSError:
                return
            if not data:
                return
            while data:
                data = data[log.write(data):]

    # --- files ---------------------------------------------------------------

    def path(self, name):
        return os.path.join(self.dir, name)

    def _read(self, name):
        try:
            with open(self.path(name), 'rb') as f:
                return f.read().decode('utf-8', 'replace').replace('\r', '')
        except FileNotFoundError:
            return ''

    @property
    def console(self):
        """The text that the guest has printed so far."""
        if self._lost:
            raise GuestError(f'serial.log: {self._lost}')
        return self._read('serial.log')

    def settled_console(self):
        """Return all that a stopped VM has printed: wait until the text no
        longer grows, because the last lines may arrive late."""
        text = None
        while text != self.console:
            text = self.console
            time.sleep(0.3)
        return text

    @property
    def qemu_log(self):
        """The text that ka-run, QEMU and the tracer printed."""
        return self._read('qemu.log')

    # --- waiting -------------------------------------------------------------

    def alive(self):
        return self.proc.poll() is None

    def panicked(self):
        """Return true if the guest has panicked, and its VM is paused. Needs
        options=['--panic', 'pause']."""
        return 'the VM is paused' in self.qemu_log

    def cpu_seconds(self):
        """Return user and system time of all threads of QEMU so far. Other
        work on the machine disturbs it less than the wall clock."""
        with open(f'/proc/{self.proc.pid}/stat', encoding='ascii') as f:
            fields = f.read().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def wait_marker(self, text, timeout=None):
        """Wait for a console line that starts with TEXT; return the line.
        Raise GuestPanic if the guest panics before."""
        end = time.monotonic() + (timeout or self.timeout)
        pattern = re.compile('^' + re.escape(text) + r'.*(?=\n)', re.M)
        while True:
            alive, panicked = self.alive(), self.panicked()
            m = pattern.search(self.settled_console() if panicked else
                               self.console)
            if m:
                return m.group(0)
            if not alive:
                raise GuestError(f"QEMU ended before '{text}':\n" +
                                 self._tails())
            if panicked:
                raise GuestPanic(f"the guest panicked before '{text}':\n" +
                                 self._tails())
            if time.monotonic() > end:
                raise GuestError(f"no '{text}' on the console in "
                                 f'{timeout or self.timeout} s:\n' +
                                 self._tails())
            time.sleep(0.05)

    def _wait_file(self, name):
        end = time.monotonic() + self.timeout
        while not os.path.exists(self.path(name)):
            if not self.alive() or time.monotonic() > end:
                raise GuestError(f'no {name}:\n' + self._tails())
            time.sleep(0.05)

    def wait_done(self, timeout=None):
        """Wait for the end of the workload; return its exit status."""
        return int(self.wait_marker('KA-DONE', timeout).split()[1])

    def wait_exit(self, timeout=None):
        """Wait for the end of QEMU; return its exit status."""
        try:
            return self.proc.wait(timeout or self.timeout)
        except subprocess.TimeoutExpired as e:
            raise GuestError('QEMU has not ended:\n' + self._tails()) from e

    def _how_it_ended(self):
        status = self.proc.returncode
        return f'with status {status}' if status >= 0 else \
            f'by {signal.Signals(-status).name}'

    def _tails(self):
        return ''.join(f'  | {line}\n' for line in
                       (self.qemu_log + self.console).splitlines()[-15:])

    # --- connections ---------------------------------------------------------

    @property
    def qmp_connection(self):
        if self._qmp is None:
            self._qmp = Qmp(self.path('qmp.sock'), self.timeout, self.alive)
        return self._qmp

    def disconnect(self):
        """Let another client have the QMP socket: QEMU serves one."""
        if self._qmp:
            self._qmp.close()
            self._qmp = None

    def qmp(self, name, **arguments):
        """Run a QMP command; return its value. Write '_' for '-' in names."""
        args = {k.replace('_', '-'): v for k, v in arguments.items()}
        try:
            return self.qmp_connection.cmd(name.replace('_', '-'), args,
                                           self.timeout)
        except GuestError as e:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.proc.wait(1)
                raise GuestError(f'QEMU ended {self._how_it_ended()}:\n' +
                                 self._tails()) from e
            raise

    def hmp_qmp(self, line):
        """Run a monitor command by QMP's human-monitor-command."""
        text = self.qmp('human-monitor-command', command_line=line)
        return text.replace('\r', '')

    @property
    def ka(self):
        """The commands of ka, whose answers are Python objects: see
        scripts/ka.py."""
        return ka.Monitor(self.hmp_qmp)

    def rows(self, line):
        """Return the JSON objects that a command of ka prints."""
        try:
            return [row.raw for row in ka.parse(self.hmp_qmp(line + ' -j'))]
        except ka.KaError as e:
            raise GuestError(f'{line}: {e}') from e

    def stat(self):
        """Return `ka stat` as {key: number or text}; 'hits' is {hook: its
        calls}."""
        numbers, hits = {}, {}
        for row in self.rows('ka stat -v'):
            if row.get('type') == 'stat':
                numbers = row
            elif row.get('type') == 'hook':
                hits[row['name']] = row.get('hits', 0)
        if not numbers:
            raise GuestError('ka stat has no answer')
        return {**numbers, 'hits': hits}

    def hmp(self, line, timeout=None):
        """Run a monitor command at the prompt of the monitor's socket."""
        s = connect(self.path('monitor.sock'), timeout or self.timeout)
        with s:
            self._until_prompt(s)
            s.sendall(line.encode() + b'\n')
            text = self._until_prompt(s)
        # The prompt's echo redraws the line; the answer begins after it.
        return text.partition('\n')[2]

    @staticmethod
    def _until_prompt(s):
        data = b''
        while not data.endswith(b'(qemu) '):
            try:
                chunk = s.recv(1 << 20)
            except socket.timeout:
                chunk = b''
            if not chunk:
                raise GuestError(f'monitor: no prompt after {data[-200:]!r}')
            data += chunk
        text = data[:-len(b'(qemu) ')].decode('utf-8', 'replace')
        return text.replace('\r', '')

    def gdb(self, commands, timeout=None, before=()):
        """Run the real gdb in batch mode; return what it printed. The guest
        is stopped while gdb is attached, and continues afterwards. gdb runs
        the commands of BEFORE before it attaches."""
        self._gdb_runs += 1
        argv = [self.arch.gdb, '-nx', '-batch',
                '-ex', 'set pagination off', '-ex', 'set confirm off',
                '-ex', 'set architecture ' + self.arch.gdb_name]
        for c in (*before, 'target remote ' + self.path('gdb.sock'),
                  *commands):
            argv += ['-ex', c]
        self._wait_file('gdb.sock')
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=timeout or self.timeout,
                text=True, errors='replace', check=False)
            text = done.stdout.replace('\r', '')
        except subprocess.TimeoutExpired as e:
            raise GuestError(f'gdb did not end: {commands}') from e
        with open(self.path(f'gdb-{self._gdb_runs}.log'), 'w',
                  encoding='utf-8') as f:
            f.write(text)
        return text

    def _wait_prompt(self, timeout=None):
        """Wait for the shell's prompt: the guest may drop earlier input."""
        self.wait_marker('KA-END', timeout)
        end = time.monotonic() + (timeout or self.timeout)
        while ' # ' not in self.console.partition('\nKA-END\n')[2]:
            if not self.alive() or time.monotonic() > end:
                raise GuestError('no shell:\n' + self._tails())
            time.sleep(0.05)

    def shell(self, command, timeout=None):
        """Run COMMAND in the guest's shell (end='shell'); return its output."""
        if not self._serial_ready.wait(self.timeout):
            raise GuestError('no serial console')
        if self._boots and not self._shells:
            self._wait_prompt(timeout)
        self._shells += 1
        tag = f'KA-SHELL-{self._shells}'
        # The quotes make the typed text differ from the marker: the shell
        # echoes what is typed, and wraps it anywhere.
        typed = f'KA-SHELL-"{self._shells}"'
        line = f"stty -echo; echo; echo {typed}; {command}; " \
               f"echo; echo {typed} $?\n"
        self._serial.sendall(line.encode())
        self.wait_marker(tag + ' ', timeout)
        text = self.console
        # The kernel may print a line before the line of the marker ends.
        begin = re.search(rf'\n{tag}(?! )\n?', text).end()
        return text[begin:text.index(f'\n{tag} ', begin)]

    def type(self, text):
        """Send text to the guest's console."""
        if not self._serial_ready.wait(self.timeout):
            raise GuestError('no serial console')
        self._serial.sendall(text.encode())

    def symbol(self, name):
        """Return the address of a symbol, from the guest's /proc/kallsyms."""
        text = self.shell(f'grep " {name}$" /proc/kallsyms')
        return int(re.search(rf'([0-9a-f]{{16}}) \w {name}\b', text)[1], 16)

    def collect(self):
        """Unpack the archive from the guest into the folder out=."""
        os.makedirs(self.out, exist_ok=True)
        with tarfile.open(self.image) as tar:
            for member in tar:
                if member.isfile() and '..' not in member.name:
                    member.name = member.name.lstrip('/')
                    tar.extract(member, self.out)
        return self.out

    # --- end -----------------------------------------------------------------

    def _end_qemu(self):
        if self.alive():
            self.proc.send_signal(signal.SIGTERM)
            try:
                self.proc.wait(20)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()

    def kill(self):
        """As stop(), but QEMU is not asked to end."""
        self.proc.kill()
        self.proc.wait()
        self.stop()

    def stop(self):
        """End QEMU; remove the files unless keep() was called."""
        self._stop_drain.set()
        self.disconnect()
        self._end_qemu()
        atexit.unregister(self._end_qemu)
        if self._drain:
            self._drain.join(5)
        if self._serial:
            self._serial.close()
        self._log.close()
        self._put_away()

    def keep(self):
        """Keep the logs; return the folder where they are after stop()."""
        if not self._kept:
            stamp = time.strftime('%Y%m%d-%H%M%S')
            self._kept = os.path.join(
                results_folder(), f'{stamp}-{self.name}-{os.getpid()}-'
                f'{os.path.basename(self.dir)[-8:]}')
        return self._kept

    def _log_vcpus(self):
        """Write the state of the vCPUs to vcpus.log, to find out why the
        guest went wrong: what they execute, what their timers and interrupts
        wait for. If QEMU does not answer, the file is empty."""
        self.timeout = min(self.timeout, 10)
        with open(self.path('vcpus.log'), 'w', encoding='utf-8') as log, \
                contextlib.suppress(GuestError, OSError, ValueError):
            cpus = len(self.qmp('query-cpus-fast'))
            for command in ('registers -a', 'pic',
                            *(f'lapic {n}' for n in range(cpus))):
                log.write(f'info {command}\n')
                log.write(self.hmp_qmp(f'info {command}'))

    def _put_away(self):
        if self._kept and os.path.isdir(self.dir):
            with contextlib.suppress(OSError):
                os.makedirs(self._kept, exist_ok=True)
                for name in os.listdir(self.dir):
                    if name.endswith('.log'):
                        shutil.copy(self.path(name), self._kept)
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, tb):
        try:
            # A full disk must not hide the exception that failed the test.
            with contextlib.suppress(OSError):
                if kind:
                    print(f'# logs: {self.keep()}', flush=True)
                    if self.alive():
                        self._log_vcpus()
        finally:
            self.stop()
        return False
