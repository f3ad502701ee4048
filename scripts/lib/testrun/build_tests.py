# SPDX-License-Identifier: GPL-2.0-or-later
"""The tests that the build declares, and the same tests in the builds with
sanitizers. The variable KA_BUILD is the build folder."""
import functools
import glob
import json
import os
import re
import subprocess

from . import ROOT


def is_built():
    return os.path.exists(os.path.join(os.environ.get('KA_BUILD', ''),
                                       'build.ninja'))


@functools.cache
def declared():
    """Return all tests that the build declares."""
    if not is_built():
        return []
    return json.loads(subprocess.run(
        ['meson', 'introspect', '--tests', os.environ['KA_BUILD']],
        check=True, capture_output=True, text=True).stdout)


def of_suite(suite, but=None):
    """Yield the tests of a suite that are not in the suite BUT: name, command,
    environment, seconds."""
    for t in declared():
        suites = {s.split(':')[-1] for s in t['suite']}
        if suite in suites and but not in suites:
            yield t['name'], t['cmd'], t['env'], t['timeout'] or 300


def in_build(variable, command):
    """Return the command with the programs of another build, which may not be
    there yet. The builds with sanitizers lack the tests of the suite qemu."""
    ours, other = os.environ['KA_BUILD'], os.environ[variable]
    return [w.replace(ours + '/', other + '/') for w in command]


def under_asan(quick):
    """The unit tests and the corpus of the fuzzers, under ASan and UBSan."""
    more = {'UBSAN_OPTIONS': 'halt_on_error=1:print_stacktrace=1',
            'G_SLICE': 'always-malloc'}
    if quick:       # the first kernel; the suite unit reads all
        kernels = os.environ.get('KA_TEST_KERNELS', '')
        more['KA_TEST_KERNELS'] = kernels.split(':')[0]
    for suite in ('unit', 'corpus'):
        for name, command, env, seconds in of_suite(suite, 'qemu'):
            yield (name, in_build('KA_BUILD_ASAN', command), {**env, **more},
                   seconds * 2)


def starts_threads(name):
    path, = glob.glob(os.path.join(ROOT, 'tests', 'unit', '**',
                                   f'test-{name}.c'), recursive=True)
    with open(path, encoding='utf-8') as f:
        return re.search(r'g_thread_new|pthread_create', f.read())


def under_tsan(_):
    """The unit tests that start threads, under TSan."""
    # Older versions of TSan fail with the memory layout of newer kernels.
    fixed = ['setarch', '-R'] if subprocess.run(
        ['setarch', '-R', 'true'], check=False).returncode == 0 else []
    for name, command, env, seconds in of_suite('unit', 'qemu'):
        # TSan does not see what orders accesses to GLib's slices: no slices.
        if starts_threads(name):
            yield (name, [*fixed, *in_build('KA_BUILD_TSAN', command)],
                   {**env, 'G_SLICE': 'always-malloc'}, seconds * 4)


SANITIZED = {'unit-asan': under_asan, 'unit-tsan': under_tsan}


def tests(suite, quick):
    return SANITIZED[suite](quick) if suite in SANITIZED else of_suite(suite)
