# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of ka report, which the program ka writes."""
import subprocess

from . import Refused

MOST_SECONDS = 900


def write(program, source, path):
    """Let the program ka write the page of a journal or VM. SOURCE: its
    options. The program replaces the file."""
    done = subprocess.run([program, *source, 'report', '-o', path], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, errors='replace',
                          timeout=MOST_SECONDS, check=False)
    if done.returncode:
        raise Refused(done.stderr.strip().removeprefix('ka: ') or
                      f'ka report ended with status {done.returncode}')
