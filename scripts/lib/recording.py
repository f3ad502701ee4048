#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder of ka-run --record and --replay: all that one run needs, and what
it was made by. QEMU is started in that folder, so the paths in it are names.

    manifest.json  what follows; written first, and again when the run ends
    log            what QEMU recorded: inputs, and when they came
    journal        what the tracer recorded
    kernel, initrd, disk0, firmware/, ...   copies of the files that QEMU reads

usage: recording.py make FOLDER ARCH QEMU PLUGIN OPTIONS WORD... -- WORD...
       recording.py end FOLDER
       recording.py arch FOLDER
       recording.py open FOLDER QEMU PLUGIN

"make" copies files. It and "open" print, each with a 0 byte behind it, the
options of the tracer and the words for QEMU. WORD: those of ka-run, then those
of the user.
"""
import hashlib
import json
import os
import shutil
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))
sys.path.insert(0, ROOT)
# pylint: disable=wrong-import-position
from scripts.lib import qemuline, recordable    # noqa: E402
from scripts.lib.arches import ARCHES   # noqa: E402
from scripts.lib.files import write_whole   # noqa: E402
from scripts.lib.recordable import BadRecording     # noqa: E402

FORMAT, VERSION = 'ka recording', 1
MANIFEST, LOG, JOURNAL = 'manifest.json', 'log', 'journal'
# QEMU's options, and the tracer's, whose value is a file that is read.
READ_BY_QEMU = {'kernel': 'kernel', 'initrd': 'initrd', 'bios': 'bios'}
READ_BY_TRACER = ('kernel', 'types', 'profile', 'script', 'leak-rules',
                  'access-rules')
# Firmware is small; the folders have images for other machines, too.
FIRMWARE_ENDS, FIRMWARE_MOST = ('.bin', '.rom'), 1 << 20
# The first bytes of a log that QEMU ended, and how many the head has. QEMU
# writes them last.
HEAD, HEAD_BYTES = bytes((0x00, 0xe0, 0x20, 0x0c)), 12
# A guest that waits does so in no time, except for a network or a disk: what
# comes from there needs the host's time.
NO_WAITS, WAITS = 'sleep=off', 'sleep=on'
BLOCK = 1 << 20


def checksum(path):
    """Return a checksum of the blocks that are not all 0, and of their places:
    much of a disk is 0."""
    digest, nothing, at = hashlib.sha256(), bytes(BLOCK), 0
    with open(path, 'rb') as f:
        while block := f.read(BLOCK):
            if block != nothing[:len(block)]:
                digest.update(at.to_bytes(8, 'little') + block)
            at += len(block)
    return digest.hexdigest()


# --- record ------------------------------------------------------------------

class Maker:
    """Copies files into a new folder, and collects the manifest."""

    def __init__(self, folder):
        self.folder = folder
        self.disks = self.networks = 0
        os.mkdir(folder, 0o700)

    def copy(self, path, name):
        shutil.copyfile(path, os.path.join(self.folder, name))
        return name

    def copy_image(self, path, name):
        """Copy a disk, without blocks that are all 0."""
        done = subprocess.run(
            ['cp', '--reflink=auto', '--sparse=always', path,
             os.path.join(self.folder, name)], stderr=subprocess.PIPE,
            env={**os.environ, 'LC_ALL': 'C'}, text=True, check=False)
        if done.returncode:
            raise BadRecording(done.stderr.strip())

    def firmware(self, source):
        """Copy the firmware of a folder, except files that are there."""
        folder = os.path.join(self.folder, 'firmware')
        os.makedirs(folder, exist_ok=True)
        for name in sorted(os.listdir(source)):
            path = os.path.join(source, name)
            if name.endswith(FIRMWARE_ENDS) and os.path.isfile(path) and \
                    os.path.getsize(path) <= FIRMWARE_MOST and \
                    not os.path.exists(os.path.join(folder, name)):
                self.copy(path, os.path.join('firmware', name))
        return 'firmware'

    def disk(self, option):
        self.disks += 1
        return recordable.disk(option, self.disks - 1, self.copy_image)

    def network(self, option):
        self.networks += 1
        return recordable.network(option, self.networks - 1)

    def rewrite(self, option):
        """Return the words for the run, and those for its replays."""
        if option.name in ('netdev', 'nic') and option.value != 'none':
            return self.network(option)
        if option.name == 'L':
            words = ['-L', self.firmware(option.value)]
        elif option.name in READ_BY_QEMU:
            words = [option.words[0],
                     self.copy(option.value, READ_BY_QEMU[option.name])]
        elif option.name == 'drive':
            words = self.disk(option)
        else:
            words = option.words
        return words, words

    def words(self, words):
        """The same of all words, with the names of copies in place of
        files."""
        run, again = [], []
        for option in qemuline.options(words):
            one, other = self.rewrite(option)
            run += one
            again += other
        if self.networks or self.disks:
            run, again = ([w.replace(NO_WAITS, WAITS) for w in some]
                          for some in (run, again))
        return run, again

    def options(self, text):
        """The same for the tracer's options: ",KEY=VALUE" each."""
        out = []
        for part in filter(None, qemuline.split(text)):
            key, _, value = part.partition('=')
            if key == 'journal':
                raise BadRecording('journal=: a recording has its own one')
            if key in READ_BY_TRACER and value != 'none':
                value = self.copy(value.replace(',,', ','), 'tracer-' + key)
                part = f'{key}={value}'
            out.append(part)
        return ''.join(',' + part for part in out)

    def files(self):
        """Return {name: [length, checksum]} of all files of the folder."""
        found = {}
        for top, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(top, name)
                found[os.path.relpath(path, self.folder)] = [
                    os.path.getsize(path), checksum(path)]
        return found


def write_manifest(folder, manifest):
    write_whole(os.path.join(folder, MANIFEST),
                json.dumps(manifest, indent=1, sort_keys=True) + '\n')


def make(folder, arch, qemu, plugin, options, *words):
    ours = words.index('--')
    recordable.refuse_unrecorded(words[ours + 1:])
    words = words[:ours] + words[ours + 1:]
    try:
        maker = Maker(folder)
    except FileExistsError as e:
        raise BadRecording('exists; name a new folder') from e
    try:
        run, again = maker.words(words)
        manifest = {
            'format': FORMAT, 'version': VERSION, 'arch': arch,
            'qemu': checksum(qemu), 'tracer': checksum(plugin),
            'words': again, 'options': maker.options(options)}
        manifest['files'] = maker.files()
        write_manifest(folder, manifest)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return [manifest['options'], *run]


def has_end(folder):
    """Was a recording ended, not cut off?"""
    return 'end' in read_manifest(folder)


def log_is_whole(folder):
    with open(os.path.join(folder, LOG), 'rb') as f:
        return f.read(len(HEAD)) == HEAD


def end(folder):
    """Complete the manifest. QEMU goes on if it cannot write its log."""
    manifest = read_manifest(folder)
    if not log_is_whole(folder):
        raise BadRecording('QEMU did not end its log; the recording has no '
                           'end')
    manifest['end'] = {name: os.path.getsize(os.path.join(folder, name))
                       for name in (LOG, JOURNAL)}
    write_manifest(folder, manifest)
    return []


# --- replay ------------------------------------------------------------------

KINDS = {'arch': str, 'qemu': str, 'tracer': str, 'options': str,
         'words': list, 'files': dict}


def is_manifest(found):
    ends = found.get('end', {LOG: 0})
    return all(isinstance(found.get(k), t) for k, t in KINDS.items()) and \
        all(isinstance(w, str) for w in found['words']) and \
        all(isinstance(f, list) and len(f) == 2
            for f in found['files'].values()) and \
        isinstance(ends, dict) and isinstance(ends.get(LOG), int)


def read_manifest(folder):
    """Return the manifest, which may be of anybody."""
    try:
        with open(os.path.join(folder, MANIFEST), encoding='utf-8') as f:
            found = json.load(f)
    except (FileNotFoundError, NotADirectoryError) as e:
        raise BadRecording('not a recording: there is no '
                           f'{MANIFEST}') from e
    except ValueError as e:
        raise BadRecording(f'{MANIFEST} is damaged') from e
    if not isinstance(found, dict) or found.get('format') != FORMAT:
        raise BadRecording(f'not a recording: its {MANIFEST} is of something '
                           'else')
    if found.get('version') != VERSION:
        raise BadRecording(f'made by another version of ka (version '
                           f"{found.get('version')} of the folder, not "
                           f'{VERSION})')
    if not is_manifest(found):
        raise BadRecording(f'{MANIFEST} is damaged')
    if found['arch'] not in ARCHES:
        raise BadRecording(f"of an unknown architecture, {found['arch']}")
    return found


def check_files(folder, manifest):
    for name, (length, digest) in sorted(manifest['files'].items()):
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            raise BadRecording(f'{name} is missing')
        if os.path.getsize(path) != length or checksum(path) != digest:
            raise BadRecording(f'{name} is not the file that was recorded')
    path = os.path.join(folder, LOG)
    if not os.path.isfile(path):
        raise BadRecording(f'{LOG} is missing')
    size = os.path.getsize(path)
    ends = manifest.get('end')
    if ends and ends[LOG] != size:
        raise BadRecording(f'{LOG} has {size} bytes, not {ends[LOG]}')
    if not ends and size <= HEAD_BYTES:
        raise BadRecording(f'{LOG} is empty: the recording was cut off')
    return bool(ends)


def open_folder(folder, qemu, plugin):
    manifest = read_manifest(folder)
    for name, path in ('qemu', qemu), ('tracer', plugin):
        if checksum(path) != manifest[name]:
            label = 'QEMU' if name == 'qemu' else 'the tracer'
            raise BadRecording(f'made by another build of {label} than {path}')
    if not check_files(folder, manifest):
        print(f'ka-run: {folder}: the recording was cut off: it has no end',
              file=sys.stderr)
        if not log_is_whole(folder):
            with open(os.path.join(folder, LOG), 'r+b') as f:
                f.write(HEAD)
    return [manifest['options'], *manifest['words']]


COMMANDS = {'make': make, 'end': end, 'open': open_folder,
            'arch': lambda folder: [read_manifest(folder)['arch']]}


def main():
    command, folder, *args = sys.argv[1:]
    try:
        for word in COMMANDS[command](folder, *args):
            sys.stdout.write(word + '\0')
        sys.stdout.flush()
        return 0
    except BadRecording as e:
        why = f'{folder}: {e}'
    except OSError as e:
        why = f'{e.filename2 or e.filename or folder}: {e.strerror}'
    print(f'ka-run: {why}', file=sys.stderr)
    return 2


if __name__ == '__main__':
    sys.exit(main())
