#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Print apt sources for other suites of the machine's own Debian mirror.

usage: aptsources.py TYPE[@security]:SUITE,... ...

Reads the machine's configuration (one-line and deb822 files) and finds the
entries of its own release and of its security suite. Prints them with their
URIs, keyring and other options, but with other types and suites.
"""
import os
import re
import shlex
import subprocess
import sys

# Option of a one-line entry -> field of a deb822 entry.
OPTION_FIELDS = {
    'signed-by': 'Signed-By',
    'trusted': 'Trusted',
    'check-valid-until': 'Check-Valid-Until',
    'check-date': 'Check-Date',
    'allow-insecure': 'Allow-Insecure',
    'allow-weak': 'Allow-Weak',
    'by-hash': 'By-Hash',
}
DROPPED = {'types', 'uris', 'suites', 'components', 'enabled',
           'architectures', 'x-repolib-name'}


def one_line(text):
    """Yield the entries of a sources.list, which are lines
    deb [opt=val ...] uri suite component..."""
    for line in text.splitlines():
        m = re.match(r'\s*deb(?:-src)?\s+(?:\[(.*?)\]\s+)?(\S+)\s+(\S+)\s+'
                     r'([^#]+)', line)
        if not m:
            continue
        fields = {}
        for opt in shlex.split(m.group(1) or ''):
            name, _, value = opt.partition('=')
            if name.lower() in OPTION_FIELDS:
                fields[OPTION_FIELDS[name.lower()]] = value.replace(',', ' ')
        yield {'uris': [m.group(2)], 'suites': [m.group(3)],
               'components': m.group(4).split(), 'fields': fields}


def deb822(text):
    """Yield the entries of a .sources file. A value may have several lines."""
    for stanza in re.split(r'\n[ \t]*\n', text):
        fields, name = {}, None
        for line in stanza.splitlines():
            if line.startswith('#'):
                continue
            if line[:1] in ' \t' and name:
                fields[name] += '\n' + line
            elif ':' in line:
                name, _, value = line.partition(':')
                fields[name] = value.strip()
        low = {k.lower(): v for k, v in fields.items()}
        if 'uris' not in low or low.get('enabled', 'yes').lower() in (
                'no', 'false', '0'):
            continue
        yield {'uris': low['uris'].split(),
               'suites': low.get('suites', '').split(),
               'components': low.get('components', '').split(),
               'fields': {k: v for k, v in fields.items()
                          if k.lower() not in DROPPED}}


def apt_paths():
    out = subprocess.run(
        ['apt-config', 'shell', 'LIST', 'Dir::Etc::sourcelist/f',
         'PARTS', 'Dir::Etc::sourceparts/d'],
        check=True, capture_output=True, text=True).stdout
    words = dict(w.split('=', 1) for w in shlex.split(out))
    yield words['LIST']
    parts = words['PARTS']
    if os.path.isdir(parts):
        for name in sorted(os.listdir(parts)):
            if name.endswith(('.list', '.sources')):
                yield os.path.join(parts, name)


def entries():
    for path in apt_paths():
        try:
            with open(path, encoding='utf-8', errors='replace') as f:
                text = f.read()
        except OSError:
            continue
        yield from (deb822 if path.endswith('.sources') else one_line)(text)


def release_names():
    names = {'stable', 'oldstable', 'oldoldstable', 'testing'}
    with open('/etc/os-release', encoding='utf-8') as f:
        m = re.search(r'^VERSION_CODENAME="?(\w+)', f.read(), re.M)
    return names | {m.group(1)} if m else names


def pick():
    """Return the mirror's entry for the release, and the one for security."""
    names, main, security = release_names(), None, None
    for e in entries():
        if 'main' not in e['components']:
            continue
        for suite in e['suites']:
            base = re.split(r'[-/]', suite)[0]
            if base not in names:
                continue
            if suite in names:
                main = main or e
            elif suite == base + '-security':
                security = security or e
    return main, security


def print_entry(kind, suites, entry):
    print(f'Types: {kind}')
    print('URIs: ' + ' '.join(entry['uris']))
    print('Suites: ' + ' '.join(suites))
    print('Components: main')
    for name, value in entry['fields'].items():
        print(f'{name}: {value}')
    print()


def main(argv):
    archive, security = pick()
    if not archive:
        sys.exit('aptsources.py: no Debian mirror with component main in '
                 "the machine's apt configuration")
    for arg in argv:
        kind, _, suites = arg.partition(':')
        kind, _, which = kind.partition('@')
        entry = security if which == 'security' else archive
        if entry:
            print_entry(kind, suites.split(','), entry)


if __name__ == '__main__':
    main(sys.argv[1:])
