# SPDX-License-Identifier: GPL-2.0-or-later
"""Run one test program. Any thread may call run_job()."""
import contextlib
import os
import signal
import subprocess
import threading
import time

from . import ROOT
from .results import Result

RUNNING = set()


def has_ended(proc):
    """Return whether the program has ended. Another thread waits for it: do not
    take its status away."""
    try:
        return os.waitid(os.P_PID, proc.pid,
                         os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def kill(proc):
    """End a program by SIGTERM, so that it ends its guests: these have their
    own process groups. After 30 s use SIGKILL."""
    for sig, seconds in (signal.SIGTERM, 30), (signal.SIGKILL, 5):
        end = time.monotonic() + seconds
        with contextlib.suppress(ProcessLookupError):
            os.killpg(proc.pid, sig)
        while not has_ended(proc):
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        else:
            return


def kill_all():
    threads = [threading.Thread(target=kill, args=(proc,))
               for proc in list(RUNNING)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextlib.contextmanager
def start(command, env):
    """Start a program with pipes, in a session of its own, and end it when the
    block ends."""
    with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={**os.environ, **env}, cwd=ROOT,
            start_new_session=True) as proc:
        RUNNING.add(proc)
        try:
            yield proc
        except BaseException:
            kill(proc)
            raise
        finally:
            RUNNING.discard(proc)


def log_file(folder, name, attempt):
    """Return the path of the file that the program's output goes to."""
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, f'{name.replace(":", "-")}.{attempt}.log')


def read_output(proc, result, path):
    """Give each line of the program to RESULT, and write it to a file."""
    with open(path, 'wb') as log:
        for raw in proc.stdout:
            log.write(raw)
            log.flush()
            result.line(raw.decode('utf-8', 'replace').rstrip('\r\n'))
    _, status, used = os.wait4(proc.pid, 0)
    proc.returncode = os.waitstatus_to_exitcode(status)
    result.cpu = used.ru_utime + used.ru_stime


def run_job(job, folder, attempt=1, verbose=False, show=None, keep=False):
    """Run the program; return its Result. Keep its output in FOLDER if KEEP is
    true or a test fails."""
    result, begin = Result(job.label, verbose, show), time.monotonic()
    late = threading.Event()
    path = log_file(folder, job.label, attempt)
    with start(job.command, job.env) as proc:
        def stop():
            late.set()
            kill(proc)

        timer = threading.Timer(job.seconds, stop)
        timer.start()
        try:
            read_output(proc, result, path)
        finally:
            timer.cancel()
    if late.is_set():
        result.fail(f'stopped after {job.seconds} s')
    result.end(proc.returncode)
    result.seconds = time.monotonic() - begin
    if result.failed or keep:
        result.log = path
        result.put(f'    all output: {path}')
    else:
        os.unlink(path)
    result.put(f'{result.label}: {result.sums()} in {result.seconds:.1f} s, '
               f'{result.cpu:.1f} s of CPU')
    return result
