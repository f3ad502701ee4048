# SPDX-License-Identifier: GPL-2.0-or-later
"""What the guest tests share. A program imports this package first: it makes
`scripts.lib` importable, and tests/lib/journal.py a module of this package.
"""
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.realpath(os.path.join(_here, '..', '..', '..')))
__path__.append(os.path.realpath(os.path.join(_here, '..', '..', 'lib')))
