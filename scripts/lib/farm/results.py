# SPDX-License-Identifier: GPL-2.0-or-later
"""A result: all that is kept of one VM, as JSON packed by zstd. Who reads one
trusts nothing: a file may be torn, or be written by somebody else.

A result has these keys; each has a cap, and what does not fit is counted in
left_out when a result is made.

    schema, key, attempt   key: that of the line; the name of the file has both
    line       the line of the plan
    host, begin, wall_s, cpu_s
    verdict    clean, found, or broken: no findings, but the run is not complete
    reason     why it is not complete, or ''
    detail     more about that, of several lines, such as what the vCPUs did
    facts      {kernel, arch, ka, qemu}, and accel if it was KVM
    stat       {counter: number} of ka stat
    findings   [{kind, title, alt, fold, exact, weak, blocks, hidden, text,
               stacks [{what, frames}]}]
    accounts   [{fold, frames, live, blocks, allocs}]: stacks with most live
               bytes at the end; others: their sum, as one more
    warnings, artefacts [{name, bytes, sha256}], left_out {findings, ...}

Schema 1 had neither detail nor stacks: read() adds empty ones.
"""
import json
import os
import re
import shutil
import stat
import subprocess
import threading

from ..findings import clean
from . import FarmError, plan

try:
    import zstandard
except ImportError:
    zstandard = None

SCHEMA = 2
LEVEL = 9                       # of zstd
PACK = 'zstd', '-q', f'-{LEVEL}', '--check', '-c'
MOST_FILE = 1 << 20
MOST_TEXT = 16 << 20            # unpacked
MOST_WINDOW = 8 << 20           # of zstd
STEP = 256                      # 4 bytes of zstd can be 128 KiB of text
MOST = {'findings': 1000, 'accounts': 500, 'warnings': 100, 'artefacts': 20,
        'stat': 1000, 'facts': 20, 'alt': 16, 'frames': 64, 'left_out': 10,
        'stacks': 8}
MOST_FINDING = 64 << 10         # characters of a finding's text
MOST_DETAIL = 64 << 10
# What a result gets: characters of the texts and stacks of all findings, and
# the part of the lists, 1/N of MOST. A result that is too large gets the next
# row; only a hostile guest needs the last ones.
SIZES = ((4 << 20, 1), (1 << 20, 1), (256 << 10, 1), (64 << 10, 1), (0, 1),
         (0, 8), (0, 64), (0, 1000))
VERDICTS = 'clean', 'found', 'broken'
FOLD = re.compile('[0-9a-f]{8,64}')
BIGGEST = 1 << 62


# Instead of a text for which a result has no room.
NO_ROOM = '(left out: the texts of this run are too long)'


class BadResult(FarmError):
    """A result file that is not taken; the text says why."""


# --- zstd --------------------------------------------------------------------

def need_zstd():
    if not zstandard and not shutil.which('zstd'):
        raise FarmError('results are packed by zstd: install python3-zstandard '
                        'or zstd')


def pack(data):
    if zstandard:
        return compressor().compress(data)
    return subprocess.run(PACK, input=data, check=True,
                          stdout=subprocess.PIPE).stdout


def pack_file(source, into):
    """Pack a file into another one, both open. Not all of it is in memory."""
    if zstandard:
        compressor().copy_stream(source, into)
        return
    try:
        subprocess.run(PACK, stdin=source, stdout=into, check=True)
    except subprocess.CalledProcessError as e:
        raise FarmError(f'a file could not be packed: zstd ended with status '
                        f'{e.returncode}') from e


def compressor():
    return zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)


def unpack(data):
    """Return at most MOST_TEXT bytes of a zstd frame that is whole."""
    return _unpack_here(data) if zstandard else _unpack_by_program(data)


def _unpack_here(data):
    made = zstandard.ZstdDecompressor(
        max_window_size=MOST_WINDOW).decompressobj()
    out = b''
    try:
        for at in range(0, len(data), STEP):
            out += made.decompress(data[at:at + STEP])
            want(len(out) <= MOST_TEXT, 'it is too large')
            if made.unused_data:
                break
    except zstandard.ZstdError as e:
        raise BadResult(f'not a whole zstd frame: {e}') from e
    want(made.eof and not made.unused_data,
         'not a whole zstd frame, and nothing else')
    return out


def _unpack_by_program(data):
    command = ['zstd', '-dqc', f'--memory={MOST_WINDOW >> 20}MB']
    with subprocess.Popen(command, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as proc:
        # A packed result has at most 1 MiB; its writer must not wait for us.
        feeder = threading.Thread(
            target=_feed, args=(proc.stdin, data), daemon=True)
        feeder.start()
        out = proc.stdout.read(MOST_TEXT + 1)
        if len(out) > MOST_TEXT:
            proc.kill()
        feeder.join()
    want(len(out) <= MOST_TEXT, 'it is too large')
    want(proc.returncode == 0, 'not a whole zstd frame')
    return out


def _feed(pipe, data):
    try:
        with pipe:
            pipe.write(data)
    except OSError:
        pass


# --- make --------------------------------------------------------------------

def cut(result, part=1):
    """Return a result whose lists are at most 1/part of their caps; the rest is
    counted. Hidden findings go first; stacks are added to the others."""
    made = {**result, 'left_out': dict(result['left_out'])}
    for name in 'findings', 'accounts', 'warnings', 'artefacts':
        most = MOST[name] // part
        more = len(result[name]) - most
        if more <= 0:
            continue
        rows = result[name]
        if name == 'findings':
            rows = sorted(rows, key=lambda f: bool(f['hidden']))
        if name == 'accounts':
            made['others'] = added(result['others'], rows[most:])
        made[name] = rows[:most]
        made['left_out'][name] = more
    return made


def added(others, rows):
    return {**others, **{k: others[k] + sum(r[k] for r in rows)
                         for k in ('live', 'blocks', 'allocs')}}


def with_room(result, room):
    """Return a result whose findings' texts and stacks have at most so many
    characters together. The first findings keep theirs."""
    kept, left_out = [], 0
    for f in result['findings']:
        size = len(f['text']) + sum(len(t) for s in f['stacks']
                                    for t in (s['what'], *s['frames']))
        room -= size
        if room < 0:
            left_out += 1
            f = {**f, 'text': NO_ROOM, 'stacks': []}
        kept.append(f)
    more = {'texts': left_out} if left_out else {}
    return {**result, 'findings': kept,
            'left_out': {**result['left_out'], **more}}


def render(result):
    """Return the bytes of a result file, which read() takes."""
    for room, part in SIZES:
        made = with_room(cut(result, part), room)
        data = json.dumps(made, sort_keys=True).encode()
        check(json.loads(data))
        packed = pack(data)
        if len(data) <= MOST_TEXT and len(packed) <= MOST_FILE:
            return packed
    raise BadResult('it is too large')


# --- read --------------------------------------------------------------------

def want(good, what):
    if not good:
        raise BadResult(what)


def read_bytes(path):
    """Return the bytes of a file that is no link, pipe or device."""
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK |
                     os.O_CLOEXEC)
    with os.fdopen(number, 'rb') as f:
        want(stat.S_ISREG(os.fstat(number).st_mode), 'it is no file')
        data = f.read(MOST_FILE + 1)
    want(len(data) <= MOST_FILE, 'it is too large')
    return data


def size(path):
    return os.stat(path, follow_symlinks=False).st_size


def refuse_constant(name):
    raise BadResult(f'{name} is no number')


def read(path, key, attempt):
    """Return the result of a file. Raise BadResult if it is not one, or not
    that of this key and attempt."""
    try:
        text = unpack(read_bytes(path)).decode('utf-8')
        result = upgrade(json.loads(text, parse_constant=refuse_constant))
        check(result)
    except (OSError, ValueError, RecursionError, OverflowError) as e:
        raise BadResult(clean.line(str(e), 200)) from e
    want((result['key'], result['attempt']) == (key, attempt),
         'it has the key of another line')
    return result


def upgrade(result):
    """Return a result of an older schema as one of this schema; another value
    as it is."""
    if not isinstance(result, dict) or result.get('schema') != 1 or \
            not isinstance(result.get('findings'), list):
        return result
    return {**result, 'schema': SCHEMA, 'detail': '', 'findings': [
        {**f, 'stacks': []} if isinstance(f, dict) else f
        for f in result['findings']]}


def number(value, what, least=-BIGGEST, most=BIGGEST):
    want(type(value) is int and least <= value <= most,
         f'{what} is no whole number in its range')


def seconds(value, what):
    want(type(value) in (int, float) and 0 <= value <= 1e9,
         f'{what} is no number of seconds')


def text(value, what, most=clean.MOST_LINE):
    """A text of one line. What cannot be printed is replaced by who makes a
    result, so it is not there."""
    want(isinstance(value, str) and len(value) <= most + 40 and
         value.isprintable(), f'{what} is no text of one line')


def lines(value, what, most):
    want(isinstance(value, str) and len(value) <= most + 40 and
         all(part.isprintable() for part in value.split('\n')),
         f'{what} is no text')


def many(value, what, kind=list):
    want(isinstance(value, kind) and len(value) <= MOST[what],
         f'{what} is no {kind.__name__} of at most {MOST[what]}')
    return value


def keys(value, wanted, what):
    want(isinstance(value, dict) and set(value) == set(wanted),
         f'{what} has not the keys that it should have')


KEYS = ('schema key attempt line host begin wall_s cpu_s verdict reason '
        'detail facts stat findings accounts others warnings artefacts '
        'left_out').split()
FINDING = 'kind title alt fold exact weak blocks hidden text stacks'.split()
ACCOUNT = 'fold frames live blocks allocs'.split()


def check_finding(f):
    keys(f, FINDING, 'a finding')
    text(f['kind'], 'a kind')
    text(f['title'], 'a title')
    for title in many(f['alt'], 'alt'):
        text(title, 'a title')
    for name in 'fold', 'exact':
        want(isinstance(f[name], str) and
             (FOLD.fullmatch(f[name]) or name == 'exact' and not f[name]),
             f'{name} is no hash')
    want(f['weak'] in (True, False), 'weak is not true or false')
    number(f['blocks'], 'blocks', 0)
    text(f['hidden'], 'hidden')
    lines(f['text'], 'the text of a finding', MOST_FINDING)
    for s in many(f['stacks'], 'stacks'):
        keys(s, ('what', 'frames'), 'a stack')
        text(s['what'], 'a stack')
        check_frames(s['frames'])


def check_frames(frames):
    for frame in many(frames, 'frames'):
        text(frame, 'a frame')


def check_account(a):
    keys(a, ACCOUNT, 'an account')
    want(isinstance(a['fold'], str) and FOLD.fullmatch(a['fold']),
         'fold is no hash')
    check_frames(a['frames'])
    for name in 'live', 'blocks', 'allocs':
        number(a[name], name)


def check_rest(r):
    for name, value in many(r['facts'], 'facts', dict).items():
        text(name, 'a fact')
        text(value, 'a fact')
    for name, value in many(r['stat'], 'stat', dict).items():
        text(name, 'a counter')
        number(value, 'a counter')
    for line in many(r['warnings'], 'warnings'):
        text(line, 'a warning')
    for name, value in many(r['left_out'], 'left_out', dict).items():
        text(name, 'left_out')
        number(value, 'left_out', 0)
    for a in many(r['artefacts'], 'artefacts'):
        keys(a, ('name', 'bytes', 'sha256'), 'an artefact')
        text(a['name'], 'an artefact')
        text(a['sha256'], 'an artefact')
        number(a['bytes'], 'an artefact', 0)


def check(r):
    """Raise BadResult if a value is not as the top of this file says."""
    keys(r, KEYS, 'the result')
    want(r['schema'] == SCHEMA, f"schema {r['schema']!r:.20} is not known")
    try:
        line = plan.from_dict(r['line'], 'line')
    except FarmError as e:
        raise BadResult(str(e)) from e
    want(line.key == r['key'], 'the key is not that of the line')
    number(r['attempt'], 'attempt', 1, 999)
    text(r['host'], 'host')
    number(r['begin'], 'begin', 0)
    seconds(r['wall_s'], 'wall_s')
    seconds(r['cpu_s'], 'cpu_s')
    want(r['verdict'] in VERDICTS, 'the verdict is none')
    text(r['reason'], 'reason')
    lines(r['detail'], 'detail', MOST_DETAIL)
    for f in many(r['findings'], 'findings'):
        check_finding(f)
    for a in many(r['accounts'], 'accounts'):
        check_account(a)
    check_account(r['others'])
    check_rest(r)
