# SPDX-License-Identifier: GPL-2.0-or-later
"""Many VMs: a plan of lines, workers that run them, one small result file for
each, a database of all of them, and reports. docs/farm.md explains it.

    plan.py      a plan file as lines, each with its key
    options.py   which options of sweep a plan may have
    folder.py    the folder that workers share: plan, results, logs
    results.py   a result: made, packed, and read with checks
    work.py      run lines with scripts/sweep
    scratch.py   the private folder of a run
    engines.py   start workers: local, GNU parallel, Slurm
    store.py     the database; one writer
    bugs.py, leaks.py   which findings are one bug
    questions.py what is new, gone, flaky, and how it grew
    pages.py, texts.py, kcidb.py   reports
    kept.py      consoles and journals of a report
    bisect.py    which kernel of a row has a bug first
"""


class FarmError(Exception):
    """The text says in one line what is wrong, and what would be right."""
