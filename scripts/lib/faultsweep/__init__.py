# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of scripts/fault-sweep. docs/fault-sweep.md explains them."""
