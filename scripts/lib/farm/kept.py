# SPDX-License-Identifier: GPL-2.0-or-later
"""What was kept of a run, for readers of a report: consoles are unpacked, so a
browser shows them, and journals are there to be downloaded. The report has
copies, in runs/: the folder of the workers may be on another machine later.

A folder of results is not trusted: only regular files with the names of the
run are read, never by a link, and what is unpacked has a cap.
"""
import contextlib
import os
import re
import shutil
import stat

from . import results

FOLDER = 'runs'
# The end of a kept file's name -> what it is, and the end of the copy's name.
KINDS = {'.log.zst': ('console and report', '.txt'),
         '.journal.zst': ('journal', '.journal.zst')}


class Missing(Exception):
    """The text says why a file is not in the report."""


def open_file(path):
    """Open a file that is no link, pipe or device."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK |
                         os.O_CLOEXEC)
    except OSError as e:
        raise Missing(e.strerror) from e
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise Missing('it is no file')
    return os.fdopen(number, 'rb')


def unpack(source, into):
    """Write a packed text as UTF-8, whatever the guest printed."""
    data = source.read(results.MOST_FILE + 1)
    if len(data) > results.MOST_FILE:
        raise Missing('it is too large')
    try:
        text = results.unpack(data).decode('utf-8', 'replace')
    except results.BadResult as e:
        raise Missing(str(e)) from e
    with open(into, 'w', encoding='utf-8') as f:
        f.write(text)


def copy(source, into):
    """Copy a file; a link to it is enough if it is on the same disk."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(into)
    try:
        # With src_dir_fd Python calls linkat(), which follows the link.
        os.link(f'/proc/self/fd/{source.fileno()}', into,
                src_dir_fd=source.fileno())
    except OSError:
        with open(into, 'wb') as f:
            shutil.copyfileobj(source, f)


class Copies:
    """The folder runs/ of a report. It has what pages ask for; the rest, of
    older reports, is removed at the end."""

    def __init__(self, store, out):
        self.store, self.out = store, os.path.join(out, FOLDER)
        self.there = {}         # name -> why it is missing, or None
        os.makedirs(self.out, exist_ok=True)

    def _folder(self, run):
        rows = self.store.rows('SELECT folder, host FROM timing WHERE key = ? '
                               'AND attempt = ?', run.key, run.attempt)
        return rows[0] if rows else ('', '')

    def _copy(self, source, name, packed):
        """Copy a file once. Return why it is missing, or None."""
        if name not in self.there:
            try:
                with open_file(source) as f:
                    (unpack if packed else copy)(f, os.path.join(self.out,
                                                                 name))
                self.there[name] = None
            except Missing as e:
                self.there[name] = str(e)
        return self.there[name]

    def of(self, run, kinds=tuple(KINDS)):
        """Return [(what, link, bytes, why it is missing)] of what was kept of
        a run."""
        found, (folder, host) = [], self._folder(run)
        begin = f'{run.key}.{run.attempt}'
        for name, size in self.store.rows(
                'SELECT name, bytes FROM artefact WHERE key = ? AND '
                'attempt = ? ORDER BY name', run.key, run.attempt):
            end = name.removeprefix(begin)
            if name == end or end not in kinds:
                continue
            what, new = KINDS[end]
            source = os.path.join(folder, 'kept', name)
            why = self._copy(source, begin + new, new == '.txt')
            found.append((what, f'{FOLDER}/{begin}{new}', size,
                          f'{source} of {host}: {why}' if why else None))
        return found

    def remove_others(self):
        """Remove the files of runs that no page is about any more."""
        for name in os.listdir(self.out):
            if self.there.get(name, '') is not None and \
                    re.fullmatch(r'[0-9a-f]{32}\.\d{1,3}\.[a-z.]+', name):
                os.unlink(os.path.join(self.out, name))
