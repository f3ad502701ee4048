# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of scripts/, run to their end: ka-farm, sweeps and fault sweeps.

    done = commands.run('sweep', '--kernel', '6.12', status=1)
    farm = functools.partial(commands.said, 'farm', cwd=top)
"""
import os
import subprocess

from scripts.lib.prepared import ROOT


def program(name):
    return os.path.join(ROOT, 'scripts', name)


def run(name, *words, status=0, timeout=300, **more):
    """Run a program; return what has ended. Raise AssertionError if its exit
    status is not STATUS; None: any is right. MORE: of subprocess.run()."""
    done = subprocess.run([program(name), *words], stdin=subprocess.DEVNULL,
                          text=True, capture_output=True, timeout=timeout,
                          check=False, **more)
    assert status in (None, done.returncode), \
        f'status {done.returncode} of {words}:\n{done.stdout}\n{done.stderr}'
    return done


def said(name, *words, **more):
    """Run a program; return what it printed."""
    done = run(name, *words, **more)
    return done.stdout + done.stderr
