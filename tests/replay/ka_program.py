#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The program ka itself: its statuses, and what it says when a file, a
standard output or a QEMU is not as it should be. A thread here speaks QMP as
QEMU does, and as one that is ending does.

usage: ka_program.py KA KA-JOURNAL
"""
import contextlib
import json
import os
import socket
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


def refused_together():
    for words in (('--at', '5', '--cells'), ('--cells', '--at', '5'),
                  ('--cells', 'stat')):
        status, text, err = ka('-f', journal, *words)
        assert (status, text, err.count('\n')) == (1, '', 1), (words, err)
        assert '--cells' in err, err


def full_disk():
    """Short and long answers, from a file and from a VM."""
    wanted = [('-f', journal, 'stat'), ('-f', journal, 'events', '-n', '0'),
              ('-f', journal), ('-f', journal, '--cells'), ('--help',)]
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

TESTS = (an_answer, events_in_between, bad_lines, given_up, refused_by_qmp,
         qemu_ends, no_qmp, garbage, strings, nobody, another_client,
         taken_socket, slow_answer, events_at_a_time, refused_together,
         full_disk)


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
