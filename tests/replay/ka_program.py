#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The program ka itself: its statuses, and what it says when a file, a
standard output or a QEMU is not as it should be. A thread here speaks QMP as
QEMU does, and as one that is ending does.

usage: ka_program.py KA KA-JOURNAL
"""
import base64
import contextlib
import gzip
import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

KA, MAKE_JOURNAL = sys.argv[1:]
EVENTS = 1000           # of the journal, one a microsecond from 1 on
GREETING = {'QMP': {'version': {}, 'capabilities': []}}
EVENT = {'event': 'RESUME', 'data': {}, 'timestamp': {'seconds': 1}}
GREETING_SECONDS = 10

work = tempfile.mkdtemp(prefix='ka-program.')
sock, journal = os.path.join(work, 'q'), os.path.join(work, 'j')


def ka(*words, out=subprocess.PIPE):
    done = subprocess.run([KA, *words], stdin=subprocess.DEVNULL, stdout=out,
                          stderr=subprocess.PIPE, text=True, timeout=60,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def lines(*messages):
    return b''.join(json.dumps(m).encode() + b'\r\n' for m in messages)


class Qemu:
    """One client's QEMU: what it sends first, and then after each line that
    it gets; it closes the connection when it has no more to send."""

    def __init__(self, *sends):
        self.sends, self.got = sends, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(sock)
        self.listener.listen(1)
        self.thread = threading.Thread(target=self.speak)
        self.thread.start()

    def speak(self):
        client, _ = self.listener.accept()
        with client, client.makefile('rb') as lines_in:
            for i, data in enumerate(self.sends):
                line = lines_in.readline() if i else b''
                if i and not line:
                    return
                self.got += [json.loads(line)] if i else []
                client.sendall(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.thread.join()
        self.listener.close()
        os.unlink(sock)


def ask(*sends, command='stat'):
    with Qemu(*sends) as qemu:
        answer = ka('-q', sock, *command.split())
    return answer, qemu.got


def talk(text, *before):
    """QEMU's side of a whole talk; BEFORE comes with qmp_capabilities'
    return, in one piece."""
    return (lines(GREETING), lines({'return': {}}, *before),
            lines({'return': text}))


# --- ka -q -------------------------------------------------------------------

def an_answer():
    got, sent = ask(*talk('a b\r\nc\r\n'))
    assert got == (0, 'a b\nc\n', ''), got
    assert sent[1]['arguments']['command-line'] == 'ka stat', sent


def events_in_between():
    for before in (EVENT,), (EVENT, EVENT, {**EVENT, 'event': 'STOP'}):
        got, _ = ask(*talk('x\r\n', *before))
        assert got == (0, 'x\n', ''), got


def bad_lines():
    for text in 'ka: no\r\n', '{"fail":"no"}\r\n', "unknown command: 'ka'\r\n":
        got, _ = ask(*talk(text))
        assert got == (1, text.replace('\r', ''), ''), got


def given_up():
    """Behind lines that say how far it is."""
    text = '... 5 MiB\r\n... 9 MiB\r\nka: given up after 120 s\r\n'
    got, _ = ask(*talk(text), command='leak scan')
    assert got == (1, text.replace('\r', ''), ''), got
    got, _ = ask(*talk('ka: is a name\r\n0 leaked blocks\r\n'))
    assert got[0] == 0, got


def findings():
    """The last line of ka slab check says whether something was found."""
    row = '{"schema":1,"type":"slab_check","findings":%d,"caches":9}\r\n'
    for text, want in (('! cycle a\r\n! 1 finding in 9 caches\r\n', 1),
                       ('nothing found in 9 caches\r\n', 0),
                       ('! cycle a\r\nnothing\r\n', 0),
                       (row % 0, 0), (row % 1, 1), (row % 20, 1)):
        got, _ = ask(*talk(text), command='slab check')
        assert got == (want, text.replace('\r', ''), ''), (text, got)


STOP = {**EVENT, 'event': 'STOP'}


class Replay(Qemu):
    """A QEMU that replays: ka goto answers with WAYS, one after the other.
    STATES: (name, us of the VM's clock); STATUS: of the VM; ICOUNT: where it
    is."""

    def __init__(self, ways, states=(), status='paused', icount=1000):
        super().__init__()
        self.ways, self.states, self.status = list(ways), states, status
        self.icount = icount

    def speak(self):
        client, _ = self.listener.accept()
        with client, client.makefile('rb') as lines_in:
            client.sendall(lines(GREETING))
            for line in lines_in:
                message = json.loads(line)
                self.got.append(message)
                client.sendall(lines(*self.answer(message)))

    def answer(self, message):
        name, words = message['execute'], message.get('arguments', {})
        if name == 'cont':
            self.icount += 250
            # A state is saved meanwhile: the VM runs again after that.
            self.status = ['running', 'debug']
            return EVENT, {'return': {}}, STOP, EVENT
        if name == 'replay-seek':
            self.icount = words['icount']
            self.status = 'paused'
            return {'return': {}}, STOP
        if name == 'query-status':
            now = self.status
            now = now.pop(0) if isinstance(now, list) else now
            self.status = self.status if now == 'running' else now
            return {'return': {'status': now}}, *[STOP] * (now == 'running')
        return {'return': {
            'qmp_capabilities': dict, 'query-block': self.disks,
            'query-replay': lambda: {'icount': self.icount},
            'human-monitor-command': lambda: self.command(
                words['command-line'])}[name]()},

    def disks(self):
        return [{'device': 'cd'}, {'inserted': {'image': {'snapshots': [
            {'name': name, 'vm-clock-sec': 0, 'vm-clock-nsec': us * 1000,
             'icount': us} for name, us in self.states]}}}]

    def command(self, line):
        if line.startswith('loadvm '):
            self.icount = dict(self.states)[line.split()[1]]
            return '' if line != 'loadvm ka-bad' else 'Error: damaged'
        if ' -j' not in line:
            return f'{line}: here\r\n'
        way = self.ways.pop(0)
        return json.dumps({'fail': way} if isinstance(way, str) else
                          dict(zip(('way', 'us', 'now_us'), way))) + '\r\n'

    def lines(self):
        """What was asked of the monitor, and what moved the VM."""
        return [m['arguments']['command-line'] if 'human' in m['execute'] else
                m['execute'] for m in self.got
                if m['execute'] in ('human-monitor-command', 'cont',
                                    'replay-seek')]


HERE = 'here', 0, 0
STATES = ('ka-begin', 0), ('ka-1', 20), ('ka-2', 40)


def go(*args, command='goto event 5', **more):
    with Replay(*args, **more) as qemu:
        answer = ka('-q', sock, *command.split())
    return answer, qemu.lines()


def going():
    """ka goto continues the VM, and asks where it is when it has stopped. A VM
    state on the way is loaded, but none of this very place."""
    got, sent = go([('ahead', 15, 10), HERE], states=STATES)
    assert got == (0, 'ka goto: here\nwent 250 instructions forward\n', ''), got
    assert sent == ['ka goto event 5 -j', 'cont', 'ka goto -j', 'ka goto'], sent
    for icount, load in (19, ['loadvm ka-1']), (20, []):
        got, sent = go([('ahead', 40, 10), HERE], states=STATES,
                       icount=icount, command='goto error 1 free -s')
        assert sent == ['ka goto error 1 free -s -j', *load, 'cont',
                        'ka goto -j', 'ka goto -s'], sent
    got, sent = go([('ahead', 15, 10), HERE], states=STATES,
                   command='goto event 5 -j -s')
    assert sent == ['ka goto event 5 -j -s', 'cont', 'ka goto -j',
                    'ka goto -j -s'], sent
    got, sent = go([HERE])
    assert got == (0, 'ka goto event 5: here\n', ''), got
    assert sent == ['ka goto event 5 -j', 'ka goto event 5'], sent
    got, sent = go(['why'])
    assert sent == ['ka goto event 5 -j', 'ka goto event 5'], sent


def going_back():
    """The last VM state before the place is loaded first, or the first one;
    from the end of a recording otherwise."""
    got, sent = go([('behind', 40, 90), HERE], states=STATES)
    assert got[1].endswith('went 730 instructions back\n'), got
    assert sent[1:3] == ['loadvm ka-1', 'cont'], sent
    for us, name in (0, 'ka-begin'), (99, 'ka-2'):
        got, sent = go([('behind', us, 90), HERE], states=STATES[::-1])
        assert sent[1] == 'loadvm ' + name, (us, sent)
    got, sent = go([('behind', 41, 90), HERE], states=STATES,
                   status='shutdown')
    assert sent[1:3] == ['replay-seek', 'cont'], sent
    got, _ = go([('behind', 40, 90)], states=[('other', 9), ('ka-bad', 3)])
    assert got == (2, '', f'ka: {sock}: Error: damaged\n'), got
    got, _ = go([('behind', 40, 90)])
    assert got[0] == 2 and 'no VM state' in got[2], got


def going_twice():
    """An access of an error, or to a word. Its end says how far it was."""
    got, sent = go([('behind', 20, 90), ('behind', 50, 91), HERE],
                   states=STATES, command='goto ffff888000001008 write -j')
    assert sent.count('cont') == 2 and sent[4] == 'loadvm ka-2', sent
    row = json.loads(got[1].splitlines()[-1])
    assert row == {'schema': 1, 'type': 'went', 'instructions': -710}, got
    # The VM stops elsewhere again and again: somebody's breakpoint.
    got, sent = go([('behind', 20, 90)] * 9, states=STATES)
    assert sent.count('cont') == 4, sent


def refused_by_qmp():
    got, _ = ask(lines(GREETING), lines({'return': {}}),
                 lines({'error': {'class': 'GenericError', 'desc': 'why'}}))
    assert got == (2, '', f'ka: {sock}: why\n'), got


def qemu_ends():
    """After each thing that it says, and in the middle of the answer."""
    whole = talk('x\r\n')
    for sends in whole[:1], whole[:2], (*whole[:2], whole[2][:-6]):
        for _ in range(20):
            got, _ = ask(*sends)
            assert got[:2] == (2, ''), got
            assert got[2] == f'ka: {sock}: QEMU closed the connection\n', got


def no_qmp():
    got, _ = ask(b'SSH-2.0-nobody\r\n')
    assert got == (2, '', f'ka: {sock}: nobody there speaks QMP\n'), got


def another_client():
    """QEMU listens, and greets nobody while it has a client; and when a third
    one waits, connecting takes for ever."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(sock)
        listener.listen(0)
        begin = time.monotonic()
        asked = [subprocess.Popen([KA, '-q', sock, 'stat'], text=True,
                                  stderr=subprocess.PIPE) for _ in range(3)]
        for proc in asked:
            _, err = proc.communicate(timeout=60)
            assert proc.returncode == 2, err
            assert err.count('\n') == 1 and 'another client' in err, err
        took = time.monotonic() - begin
    os.unlink(sock)
    assert GREETING_SECONDS - 1 < took < 3 * GREETING_SECONDS, took


def serve(listener, text):
    """Accept a client, and be its QEMU."""
    client, _ = listener.accept()
    with client, client.makefile('rb') as lines_in:
        for i, data in enumerate(talk(text)):
            if i:
                lines_in.readline()
            client.sendall(data)


def taken_socket():
    """A client that stays is said at once; for one that goes, ka waits."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener, \
            socket.socket(socket.AF_UNIX) as other:
        listener.bind(sock)
        listener.listen(5)
        other.connect(sock)
        served, _ = listener.accept()
        for path in sock, os.path.relpath(sock):
            begin = time.monotonic()
            status, text, err = ka('-q', path, 'stat')
            took = time.monotonic() - begin
            assert (status, text, err.count('\n')) == (2, '', 1), err
            assert 'another client has this socket' in err, err
            assert took < GREETING_SECONDS / 2, took
            listener.accept()[0].close()
        with subprocess.Popen([KA, '-q', sock, 'stat'], text=True,
                              stdout=subprocess.PIPE) as proc:
            time.sleep(0.2)
            served.close()
            time.sleep(2)
            serve(listener, 'late\r\n')
            text, _ = proc.communicate(timeout=60)
    os.unlink(sock)
    assert (proc.returncode, text) == (0, 'late\n'), text


def slow_answer():
    """Only the greeting has a limit."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(sock)
        listener.listen(1)
        with subprocess.Popen([KA, '-q', sock, 'leak', 'scan'], text=True,
                              stdout=subprocess.PIPE) as proc:
            client, _ = listener.accept()
            greeting, capable, answer = talk('late\r\n')
            with client:
                client.sendall(greeting)
                client.recv(1000)
                client.sendall(capable)
                client.recv(1000)
                time.sleep(GREETING_SECONDS + 1)
                client.sendall(answer)
                text, _ = proc.communicate(timeout=60)
    os.unlink(sock)
    assert (proc.returncode, text) == (0, 'late\n'), text


def garbage():
    """Lines that are no message of QMP are skipped, however they look."""
    lines_of = (b'\r\n', b'null\r\n', b'[1, 2]\r\n', b'{"return"\r\n',
                b'{"a": "\xff\xfe"}\r\n', b'{"a": "\0"}\r\n',
                b'[' * 1000000 + b'\r\n', b'{"QMP":' * 300000 + b'\r\n')
    for bad in lines_of:
        greeting, capable, answer = talk('x\r\n')
        got, _ = ask(bad + greeting, bad + capable, bad + answer)
        assert got == (0, 'x\n', ''), (bad[:20], got)
    for bad in {'return': 5}, {'return': None}, {'return': {'return': 'x'}}:
        got, _ = ask(*talk('')[:2], lines(bad))
        assert got == (2, '', f'ka: {sock}: an answer that is no text\n'), got


def strings():
    """Text of any kind, and long text, in both directions."""
    for text in '"\\/\b\f\n\t\x1f', '\u00e9\u20ac\U0001f600', 'y' * 20000000:
        got, sent = ask(*talk(text), command='show ' + text[:100])
        assert got == (0, text, ''), got[1][:100]
        # ka's arguments become words of one line.
        words = ' '.join(('show ' + text[:100]).split())
        assert sent[1]['arguments']['command-line'] == 'ka ' + words, sent


def nobody():
    """No socket, nobody behind it, and a path that is too long."""
    for path, why in ((sock, 'No such file or directory'),
                      (journal, 'Connection refused'),
                      ('/' + 'x' * 200, 'File name too long')):
        got = ka('-q', path, 'stat')
        assert got == (2, '', f'ka: {path}: {why}\n'), got


# --- ka -q ... --follow ------------------------------------------------------

def end_of(place, more=0, ended=0, overwritten=0):
    return (f'-- next {place} more {more} ended {ended} '
            f'overwritten {overwritten}\r\n')


WATCHED = 'functions stay watched until ka calls del all'


def ended(shown, lost=0, rows='calls', left='the VM has ended'):
    """What ka prints last."""
    return f'ka: follow ended: {shown} {rows} shown, {lost} lost; {left}\n'


class Vm:
    """A VM that answers one question after another, each on a connection of
    its own, and ends then; or with the last answer again and again."""

    def __init__(self, *texts, repeat=False):
        self.texts, self.repeat, self.asked = texts, repeat, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(sock)
        self.listener.listen(5)
        self.listener.settimeout(0.2)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def answer(self, text):
        """Return false if the client only wanted to know if we are there."""
        client, _ = self.listener.accept()
        client.settimeout(60)
        with client, client.makefile('rb') as lines_in, \
                contextlib.suppress(BrokenPipeError, ConnectionResetError):
            greeting, capable, answer = talk(text)
            client.sendall(greeting)
            if lines_in.readline():
                client.sendall(capable)
                line = json.loads(lines_in.readline())
                self.asked.append(line['arguments']['command-line'])
                client.sendall(answer)
                return True
        return False

    def run(self):
        texts = list(self.texts)
        while texts and not self.over.is_set():
            with contextlib.suppress(TimeoutError):
                if self.answer(texts[0]) and (len(texts) > 1 or
                                              not self.repeat):
                    del texts[0]
        self.listener.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(sock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def file_of(name):
    """Return what a file of the work folder has, and remove the file."""
    path = os.path.join(work, name)
    with open(path, encoding='utf-8') as f:
        text = f.read()
    os.unlink(path)
    return text


def in_work(name):
    return os.path.join(work, name)


def wait_for_bytes(path, more_than):
    for _ in range(600):
        if os.path.exists(path) and os.path.getsize(path) > more_than:
            return
        time.sleep(0.1)
    raise AssertionError(f'{path} has no {more_than} bytes after 60 s')


def follows_calls():
    """To a file and into programs, from each place on, until the VM ends."""
    with Vm('a\r\nb\r\n' + end_of('2.0', more=1), end_of('2.0'),
            'c\r\n' + end_of('2.1')) as vm:
        got = ka('-q', sock, 'calls', '--follow', '-s', '-o', in_work('o'),
                 '-p', f'cat >{in_work("p")}', '-p', f'wc -l >{in_work("w")}')
    assert got == (0, '', ended(3)), got
    assert vm.asked == ['ka calls -s --after ' + x
                        for x in ('0', '2.0', '2.0')], vm.asked
    assert file_of('o') == file_of('p') == 'a\nb\nc\n'
    assert file_of('w').strip() == '3'


def follows_json():
    ends = [json.dumps({'type': 'calls_next', 'next': place, 'more': 0,
                        'ended': 0, 'overwritten': 2},
                       separators=(',', ':')) + '\r\n'
            for place in ('4.5', '4.6')]
    with Vm('{"call":1}\r\n' + ends[0], ends[1]) as vm:
        got = ka('-q', sock, 'calls', '--follow', '-j')
    assert got[:2] == (0, '{"call":1}\n'), got
    assert got[2].startswith('ka: 4 calls were replaced '), got
    assert got[2].endswith(ended(1, 4)), got
    assert vm.asked[1] == 'ka calls -j --after 4.5', vm.asked


def follows_log():
    """A whole answer is followed at once by the next question."""
    with Vm('1\r\n-- next 5000\r\n',
            '-- lost 2\r\n 2\r\n-- evicted 5\r\n-- next 5001\r\n') as vm:
        got = ka('-q', sock, 'log', '--follow', '-p', f'cat >{in_work("p")}')
    assert got == (0, '', ended(2, 7, 'lines')), got
    assert file_of('p') == '1\n-- lost 2\n 2\n-- evicted 5\n'
    assert vm.asked == ['ka log --after 0 -n 5000',
                        'ka log --after 5000 -n 5000'], vm.asked


def follows_trace():
    """Entries are counted, not the lines that they have."""
    with Vm('    1us a\r\n        b\r\n    2us c\r\n' +
            end_of('9', overwritten=7), end_of('9'), repeat=True), \
            subprocess.Popen([KA, '-q', sock, 'trace', '--follow'], text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE) as proc:
        lines = [proc.stdout.readline() for _ in range(3)]
        proc.send_signal(signal.SIGINT)
        _, err = proc.communicate(timeout=60)
    assert lines[2] == '    2us c\n', lines
    assert err.endswith(ended(2, 7, 'events', 'a trace goes on until ka trace '
                              'off')), err


def says_what_is_missing():
    with Vm('a\r\n' + end_of('9', overwritten=5),
            end_of('12', overwritten=2)):
        got = ka('-q', sock, 'calls', '--follow')
    assert got == (0, 'a\n', 'ka: 7 calls were replaced by newer ones before '
                   'they were read; a larger calls=SIZE keeps more\n' +
                   ended(1, 7)), got


def ends_with_the_session():
    """All calls of the session are there, whatever comes behind."""
    with Vm('a\r\n' + end_of('9', more=1, ended=1), 'b\r\n' + end_of('10'),
            'c\r\n' + end_of('11'), repeat=True) as vm:
        got = ka('-q', sock, 'calls', '--follow', '--session')
    assert got == (0, 'a\nb\n', ended(2, left=WATCHED)), got
    assert vm.asked == ['ka calls --after 0', 'ka calls --after 9'], vm.asked


def ends_at_a_signal():
    """What was read is in the file and in the program, to the last line."""
    for number in signal.SIGINT, signal.SIGTERM:
        line = 'x' * 100 + '\r\n'
        with Vm(line * 5000 + end_of('9', overwritten=1), line + end_of('9'),
                repeat=True), \
                subprocess.Popen([KA, '-q', sock, 'calls', '--follow', '-o',
                                  in_work('o'), '-p', f'cat >{in_work("p")}'],
                                 stdin=subprocess.DEVNULL, text=True,
                                 stderr=subprocess.PIPE) as proc:
            wait_for_bytes(in_work('o'), 101 * 5000)
            proc.send_signal(number)
            _, err = proc.communicate(timeout=60)
        assert proc.returncode == 0, err
        assert err.startswith('ka: 1 calls were replaced '), err
        copies = file_of('o'), file_of('p')
        assert copies[0] == copies[1], [len(x) for x in copies]
        found = copies[0].splitlines()
        assert len(found) > 5000, len(found)
        assert set(found) == {'x' * 100}


def programs_that_end():
    """One that reads no more ends for itself; a status is said."""
    text = 'y' * 200000 + '\r\n'
    answers = [text + end_of(i) for i in range(1, 6)]
    with Vm(*answers):
        got = ka('-q', sock, 'calls', '--follow', '-o', in_work('o'),
                 '-p', 'exec <&-; exit 0', '-p', f'cat >{in_work("p")}',
                 '-p', 'cat >/dev/null; exit 3', '-p', 'kill -9 $$')
    assert file_of('o') == file_of('p') == text.replace('\r', '') * 5
    assert (got[0], got[1]) == (2, ''), got
    assert sorted(got[2].splitlines()) == [
        ended(5).strip(),
        'ka: program "cat >/dev/null; exit 3" ended with status 3',
        'ka: program "exec <&-; exit 0" reads no more',
        'ka: program "kill -9 $$" ended with signal 9',
        'ka: program "kill -9 $$" reads no more'], got
    with Vm(*answers, repeat=True):     # the only reader has gone
        got = ka('-q', sock, 'calls', '--follow', '-p', 'exec <&-')
    assert got == (0, '', 'ka: program "exec <&-" reads no more\n' +
                   ended(1, left=WATCHED)), got


def full_disk_of_a_copy():
    with Vm('a\r\n' + end_of('1'), repeat=True):
        got = ka('-q', sock, 'calls', '--follow', '-o', '/dev/full')
    assert got == (2, '', 'ka: /dev/full: No space left on device\n'), got
    got = ka('-q', sock, 'calls', '--follow', '-o', work)
    assert got == (2, '', f'ka: {work}: Is a directory\n'), got


def refused_copies():
    for words, why in ((('calls', '-p', 'cat'), 'need --follow'),
                       (('calls', '--session'), 'need --follow'),
                       (('log', '--follow', '--session'), 'for calls')):
        status, text, err = ka('-q', sock, *words)
        assert (status, text, err.count('\n')) == (1, '', 1), err
        assert why in err, err
    with Vm('ka: no\r\n', repeat=True):
        got = ka('-q', sock, 'calls', '--follow')
    assert got == (1, 'ka: no\n', ''), got
    got = ka('-q', sock, 'calls', '--follow')
    assert got == (2, '', f'ka: {sock}: No such file or directory\n'), got


# --- ka symbols -o FILE ------------------------------------------------------

FIRST = '-- symbols 7: 3 symbols, 0 modules, nothing, 5 bytes\r\n'


def packed(data):
    text = base64.b64encode(gzip.compress(data)).decode()
    return '\r\n'.join(text[i:i + 20] for i in range(0, len(text), 20))


def symbols_of(answer, path):
    return ask(*talk(answer), command='symbols -o ' + path + ' --unloaded')


def symbols_to_a_file():
    path = os.path.join(work, 'elf')
    got, sent = symbols_of(FIRST + packed(b'a\0b\r\n') + '\r\n', path)
    assert got == (0, f'{path}: {FIRST[3:-2]}\n', ''), got
    assert sent[1]['arguments']['command-line'] == \
        'ka symbols --unloaded', sent
    with open(path, 'rb') as f:
        assert f.read() == b'a\0b\r\n'


def symbols_are_not_there():
    """A refusal and a damaged answer leave the file as it was."""
    path = os.path.join(work, 'elf')
    for answer, status, said in (
            ('ka: no kernel\r\n', 1, 'ka: no kernel\n'),
            (FIRST + 'AAAA\r\n', 2, ''),
            (FIRST + packed(os.urandom(99))[:60], 2, '')):
        got, _ = symbols_of(answer, path)
        assert got[:2] == (status, said), got
        assert got[2].count('\n') == (status == 2), got
    got, _ = symbols_of(FIRST + packed(b'x'), '/nowhere/elf')
    assert got[0] == 2 and '/nowhere/elf' in got[2], got
    with open(path, 'rb') as f:
        assert f.read() == b'a\0b\r\n'


def symbols_of_a_journal():
    """A journal has symbols, and no unwind tables."""
    path = os.path.join(work, 'elf')
    got = ka('-f', journal, 'symbols', '-o', path)
    assert (got[0], got[2]) == (0, ''), got
    assert re.match(rf'{path}: symbols \d+: 14 symbols, 1 modules, no call '
                    r'frame information, \d+ bytes\n', got[1]), got
    with open(path, 'rb') as f:
        assert f.read(4) == b'\x7fELF'
    os.unlink(path)


# --- ka -f -------------------------------------------------------------------

def listed(*words):
    status, text, err = ka('-f', journal, *words)
    assert (status, err) == (0, ''), err
    return [int(line.split('us')[0]) for line in text.splitlines()
            if 'alloc' in line]


def events_at_a_time():
    assert listed('events', '-n', '0') == list(range(1, EVENTS + 1))
    assert listed('--at', '500', 'events', '-n', '0') == list(range(1, 501))
    got = listed('--at', '500', 'events', '--since', '490', '-n', '0')
    assert got == list(range(490, 501)), got
    got = listed('--at', '500', 'events', '--until', '700', '-n', '0')
    assert got == list(range(1, 501)), got
    got = listed('--at', '500', 'events', '--until', '7', '-n', '0')
    assert got == list(range(1, 8)), got
    assert listed('--at', '500', 'events', '--since', '600') == []


def faults_of_a_journal():
    """The log is in the journal, rules are not."""
    status, text, err = ka('-f', journal, 'fault', 'log', '-s', '-w')
    assert (status, err) == (0, ''), err
    for n, line in enumerate(text.splitlines(), 1):
        want = r"ka fault add kmalloc --if '\(size == 320\) && stackid == " \
            rf"0x[0-9a-f]{{16}} && n == {n}' --times 1  # 123us cpu=1 " \
            r'task=insmod/7 rule=1 fail __kmalloc=0x0 size=320 flags=0xcc0 ' \
            r'rare \[alloc\+0x10\[ka_test\] do_work\+0x10 ' \
            r'entry_SYSCALL_64_after_hwframe\+0x10\]'
        assert re.fullmatch(want, line), line
    assert len(text.splitlines()) == 2, text
    status, text, err = ka('-f', journal, '--at', '122', 'fault', 'log')
    assert (status, err) == (0, '') and 'no call was made' in text, text
    for words in ('list', 'stacks', 'add kmalloc', 'del all', 'seed'):
        status, text, err = ka('-f', journal, 'fault', *words.split())
        assert status == 1 and 'a journal has the log' in text + err, text


def types_of_a_journal():
    """A file gives the types that a journal does not have. Its objects have no
    memory."""
    names = b'\0int\0pair\0a\0b\0'
    words = (1, 1 << 24, 4, 1 << 24 | 32,           # int
             5, 4 << 24 | 2, 8, 10, 1, 0, 12, 1, 32)   # struct pair
    raw = struct.pack('<HBBIIIII', 0xeb9f, 1, 0, 24, 0, 4 * len(words),
                      4 * len(words), len(names)) + \
        struct.pack(f'<{len(words)}I', *words) + names
    path = os.path.join(work, 'types')
    with open(path, 'wb') as f:
        f.write(raw)
    status, text, err = ka('-f', journal, '--types', path, 'struct', 'pair')
    want = 'pair 8 bytes, file\n+0    a int 4\n+4    b int 4\n'
    assert (status, text, err) == (0, want, ''), (text, err)
    status, text, err = ka('-f', journal, '--types', path, 'struct', 'pair',
                           'ffff888000001000')
    assert status == 1 and 'no memory to read in a journal' in text, text
    status, text, err = ka('-f', journal, 'struct', 'pair')
    assert status == 1 and 'a journal has no types' in text, text
    status, text, err = ka('-f', journal, '--types', journal, 'struct', 'pair')
    assert status == 2 and err.startswith(f'ka: --types {journal}: '), err
    os.unlink(path)


def pages_of_help():
    """The same text as with a journal, which also says what is in it."""
    for words in (('help', 'leak', 'scan'), ('help', 'fault'), ('top', '-h'),
                  ('help', 'ka'), ('help',), ('error', '--help')):
        got, want = ka(*words), ka('-f', journal, *words)
        assert got[::2] == want[::2] == (0, ''), (got, want)
        assert got[1] and want[1].startswith(got[1]), (got, want)
        assert (got[1] == want[1]) == (words[-1] not in ('help', 'ka')), got
    status, text, err = ka('help', 'nothing')
    assert (status, err) == (1, '') and 'no such command' in text, text
    status, text, err = ka('show', '1000')
    assert (status, text) == (1, '') and 'either a file' in err, err


def at_a_terminal(words, status=0, **more):
    """What ka prints if its standard output, and its standard error if it
    fails, is a terminal."""
    main_end, end = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k != 'NO_COLOR'}
    with subprocess.Popen([KA, *words], stdin=subprocess.DEVNULL, stdout=end,
                          stderr=end if status else None,
                          env={**env, 'TERM': 'xterm', **more}) as proc:
        os.close(end)
        text = b''
        with contextlib.suppress(OSError):      # EIO: the end
            while part := os.read(main_end, 65536):
                text += part
    os.close(main_end)
    assert proc.returncode == status, (words, proc.returncode)
    return text.decode().replace('\r\n', '\n')


def bytes_at_a_terminal():
    """Commands whose answer is no text say how to write it."""
    for words, how in ((('symbols',), '-o FILE'),
                       (('symbols', '--unloaded'), '-o FILE'),
                       (('--cells',), 'redirect')):
        text = at_a_terminal(('-f', journal, *words), status=1)
        assert text.count('\n') == 1 and how in text, text
    assert 'for debuggers' in at_a_terminal(('-f', journal, 'symbols', '-h'))
    assert ka('-f', journal, 'symbols')[1].startswith('-- symbols ')


def colors():
    """Only on a terminal, unless somebody asks for them; never in JSON."""
    def bare(text):
        return re.sub('\x1b\\[[0-9;]*m', '', text)

    for form in ('-n', '3'), ('-n', '3', '-l'):
        words = '-f', journal, *form
        plain = ka(*words)[1]
        assert '\x1b' not in plain and 'A ffff888000001000' in plain, plain
        text = ka('--color=always', *words)[1]
        assert '\x1b[32mA ffff888000001000' in text, text
        assert bare(text) == plain, text
        for want, got in (
                (plain, ka('--color=auto', *words)[1]),
                (text, at_a_terminal(words)),
                (text, at_a_terminal(words, NO_COLOR='')),
                (plain, at_a_terminal(('--color', 'never', *words))),
                (plain, at_a_terminal(words, NO_COLOR='1')),
                (plain, at_a_terminal(words, TERM='dumb'))):
            assert got == want, (got, want)
    text = at_a_terminal(('-f', journal, '-j', '-n', '3'))
    assert '\x1b' not in text, text
    row = 'double-free    F ffff888000001000-ffff888000001fff (1/1) error[x]\n'
    with Qemu(*talk(row)):
        text = ka('-q', sock, '--color', 'always', 'error')[1]
    assert text.startswith('\x1b[1;31mdouble-free\x1b[0m    \x1b'), text
    assert bare(text) == row, text
    status, text, err = ka('--color=red', '-f', journal, 'stat')
    assert (status, text) == (1, '') and 'auto, always or never' in err, err


def colors_of_hostile_names():
    """The only control bytes are those of the colours."""
    names = r'\x1b[31m', r'\x1b]0;x\x07', r'error[\x1b[2J', r'[\x9b2J]', r'\x0d'
    script = in_work('script')
    with open(script, 'w', encoding='ascii') as f:
        f.write('symbol va=ffffffff81000000 name=_stext\n'
                'symbol va=ffffffff81f00000 name=_etext\n'
                f'module va=ffffffffc0008000 name={names[0]} '
                'base=ffffffffc0000000 size=7000\n')
        for i, name in enumerate(names, 1):
            f.write(f'modsym va=ffffffffc000{i}000 name={name}\n'
                    f'alloc va={i}000 size=10 us={i} pid=1 comm={name} '
                    f'cache={name} stack=ffffffffc000{i}010\n'
                    f'free va={i}000 us=9\nfree va={i}000 us=10\n')
    subprocess.run([MAKE_JOURNAL, in_work('hostile'), script], check=True)
    for words in (('-l',), ('-s', '-v'), ('error', '-l'), ('error', '-s')):
        words = '-f', in_work('hostile'), *words
        text = ka('--color=always', *words)[1]
        bare = re.sub(r'\x1b\[(1;31|3[236]|[012])m', '', text)
        assert bare != text and bare == ka(*words)[1], text
        assert re.fullmatch(r'[ -~\n]*', bare), bare
    os.unlink(in_work('hostile'))
    os.unlink(script)


def refused_together():
    for words in (('--at', '5', '--cells'), ('--cells', '--at', '5'),
                  ('--cells', 'stat')):
        status, text, err = ka('-f', journal, *words)
        assert (status, text, err.count('\n')) == (1, '', 1), (words, err)
        assert '--cells' in err, err


def full_disk():
    """Short and long answers, from a file and from a VM."""
    wanted = [('-f', journal, 'stat'), ('-f', journal, 'events', '-n', '0'),
              ('-f', journal), ('-f', journal, '--cells'), ('--help',),
              ('help',)]
    want = 2, None, 'ka: stdout: No space left on device\n'
    with open('/dev/full', 'w', encoding='ascii') as full:
        for words in wanted:
            got = ka(*words, out=full)
            assert got == want, (words, got)
        for text in 'x\r\n', 'a long line\r\n' * 10000:
            with Qemu(*talk(text)):
                got = ka('-q', sock, 'stat', out=full)
            assert got == want, got


# -----------------------------------------------------------------------------

TESTS = (an_answer, events_in_between, bad_lines, given_up, findings,
         going, going_back, going_twice, refused_by_qmp, qemu_ends, no_qmp,
         garbage, strings, nobody,
         another_client, taken_socket, slow_answer, follows_calls,
         follows_json, follows_log, follows_trace,
         says_what_is_missing, ends_with_the_session, ends_at_a_signal,
         programs_that_end, full_disk_of_a_copy, refused_copies,
         symbols_to_a_file, symbols_are_not_there, symbols_of_a_journal,
         bytes_at_a_terminal,
         events_at_a_time, faults_of_a_journal, types_of_a_journal,
         pages_of_help, colors, colors_of_hostile_names,
         refused_together, full_disk)


def main():
    subprocess.run([MAKE_JOURNAL, journal], check=True)
    failed = 0
    print(f'1..{len(TESTS)}')
    for i, test in enumerate(TESTS, 1):
        try:
            test()
            print(f"ok {i} - {test.__name__.replace('_', ' ')}", flush=True)
        except (AssertionError, OSError, ValueError,
                subprocess.SubprocessError) as e:
            failed += 1
            print(f"not ok {i} - {test.__name__.replace('_', ' ')}")
            print('# ' + repr(e)[:2000], flush=True)
            with contextlib.suppress(OSError):
                os.unlink(sock)
    os.unlink(journal)
    os.rmdir(work)
    sys.exit(1 if failed else 0)


main()
