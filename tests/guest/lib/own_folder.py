# SPDX-License-Identifier: GPL-2.0-or-later
"""A folder for the files of a test program. It is removed when the program
ends.

    own = OwnFolder('ka-test-farm.')
    own.write('plan.toml', PLAN)
"""
import atexit
import os
import shutil
import tempfile


class OwnFolder:
    def __init__(self, prefix):
        self.top = tempfile.mkdtemp(prefix=prefix)
        atexit.register(shutil.rmtree, self.top, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.top, *names)

    def write(self, name, text, mode='w'):
        """Write a file; return its path."""
        with open(self.path(name), mode, **({} if 'b' in mode else
                                            {'encoding': 'utf-8'})) as f:
            f.write(text)
        return self.path(name)
