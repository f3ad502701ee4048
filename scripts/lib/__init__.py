# SPDX-License-Identifier: GPL-2.0-or-later
"""What the programs of scripts/ share, and the guest library of the tests."""
