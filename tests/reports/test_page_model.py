#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions of the page that need no browser, by node --test.

usage: test_page_model.py
"""
import glob
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))

FILES = sorted(glob.glob(os.path.join(HERE, '*.test.js')))

if not shutil.which('node'):
    print('1..0 # SKIP no node: scripts/setup --only readers')
    sys.exit(0)
done = subprocess.run(['node', '--test', *FILES],
                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                      text=True, check=False)
if done.returncode:
    print('# ' + done.stdout.replace('\n', '\n# '))
print(f"{'not ok' if done.returncode else 'ok'} 1 - the model of the page")
print('1..1')
sys.exit(1 if done.returncode else 0)
