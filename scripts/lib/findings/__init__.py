# SPDX-License-Identifier: GPL-2.0-or-later
"""Findings of a run, and their reports for other programs. docs/ci.md explains
them. One module for each format; each checks its text before it is written."""


class CouldNotRun(Exception):
    """The sweep has no result; the text says why, in one line."""


class Refused(ValueError):
    """A report that breaks a rule of its format, and is not written."""
