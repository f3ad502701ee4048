# SPDX-License-Identifier: GPL-2.0-or-later
"""Findings of a run."""


class CouldNotRun(Exception):
    """The sweep has no result; the text says why, in one line."""
