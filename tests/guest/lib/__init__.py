# SPDX-License-Identifier: GPL-2.0-or-later
"""Modules that the guest tests share.

A program imports this package first: it puts the top of the tree into the
module path, for scripts.lib, and makes tests/lib/journal.py a module here.
"""
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.realpath(os.path.join(_here, '..', '..', '..')))
__path__.append(os.path.realpath(os.path.join(_here, '..', '..', 'lib')))
