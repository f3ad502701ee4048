# SPDX-License-Identifier: GPL-2.0-or-later
"""A command line of QEMU, changed so that it runs under the tracer: with the
plugin, and without KVM unless it is wanted."""
import collections
import os
import re

# Options of QEMU without a value; each other one takes the next word.
PLAIN = frozenset('''
    h help version nodefaults no-user-config nographic snapshot S s enable-kvm
    no-reboot no-shutdown daemonize preconfig full-screen only-migratable
    mem-prealloc usb no-acpi no-hpet no-fd-bootchk win2k-hack singlestep
    enable-fips xen-attach xen-domid-restrict old-param semihosting curses
    portrait no-quit alt-grab ctrl-grab no-frame enable-sync-profile
    async-teardown no-kvm no-kvm-irqchip perfmap jitdump
    '''.split())
# Accelerators that run the guest's code on the host's CPU.
HARDWARE = frozenset('kvm xen hvf whpx nvmm hax mshv'.split())
# Properties of -machine that only KVM has.
KVM_PROPERTIES = frozenset(('kernel_irqchip', 'kernel-irqchip',
                            'kvm_shadow_mem', 'kvm-shadow-mem', 'kvm-type'))
# Objects that need KVM: guests whose memory the host cannot read.
KVM_OBJECTS = re.compile(r'(sev-guest|sev-snp-guest|tdx-guest|s390-pv-guest|'
                         r'pef-guest|rme-guest)(,|$)')
CPU = {'x86_64': 'max', 'aarch64': 'max', 'riscv64': 'max'}
# A file of -readconfig: the beginning of a section, and an accelerator. What is
# behind so many bytes is not read.
SECTION = re.compile(r'\s*\[([\w-]+)')
ACCEL = re.compile(r'\s*accel\s*=\s*"([^"]*)"')
CONFIG_MOST = 1 << 20
# QEMU prints a list, or its version, and ends.
ENDS = frozenset(('h', 'help', 'version'))
LISTS = re.compile(r'(^|,|^type=)(help|\?)$')

# An option without its dashes, its value or None, and the words as they were.
Option = collections.namedtuple('Option', 'name value words')


class CannotRun(Exception):
    """This command line needs KVM; the text says why, in one line."""


def options(words):
    """Yield the options of a command line. A word that is no option is a
    disk, and has the name ''."""
    words = list(words)
    while words:
        word = words.pop(0)
        name = word.lstrip('-') if word.startswith('-') else ''
        if name in PLAIN or not name or not words:
            yield Option(name, None, [word])
        else:
            value = words.pop(0)
            yield Option(name, value, [word, value])


def split(value):
    """Split a value at its commas; a double comma is one that is meant."""
    return [p.replace('\0', ',,') for p in value.replace(',,', '\0').split(',')]


def accel(option):
    return [] if HARDWARE.issuperset(accels(option)) else option.words


def machine(option):
    kept = []
    for part in split(option.value):
        key, _, value = part.partition('=')
        if key == 'accel':
            left = [a for a in value.split(':') if a not in HARDWARE]
            kept += ['accel=' + ':'.join(left)] if left else []
        elif key not in KVM_PROPERTIES:
            kept.append(part)
    return [option.words[0], ','.join(kept)] if kept else []


def cpu(option, arch):
    model, *flags = split(option.value)
    if model != 'host':
        return option.words
    return [option.words[0], ','.join([CPU[arch], *flags])]


def config_accels(path):
    """Yield (section, accelerators) of a file of -readconfig. A pipe is left to
    QEMU, and so is the error of a file that cannot be read."""
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        return
    with open(path, encoding='utf-8', errors='replace') as f:
        lines = f.read(CONFIG_MOST).splitlines()
    section = ''
    for line in lines:
        if m := SECTION.match(line):
            section = m[1]
        elif m := ACCEL.match(line):
            yield section, m[1].split(':')


def readconfig(option):
    """Of -accel the first one that works counts, of -machine accel= the last
    one. The file itself is the user's."""
    words = option.words
    for section, names in config_accels(option.value):
        if 'tcg' in names or HARDWARE.isdisjoint(names):
            continue
        if section == 'accel':
            words = ['-accel', 'tcg', *words]
        elif section == 'machine':
            words = [*words, '-machine', 'accel=tcg']
    return words


def without_kvm(option, arch):
    """Return the words of an option as they are without KVM."""
    if option.name in ('enable-kvm', 'no-kvm', 'no-kvm-irqchip'):
        return []
    if option.value is None or LISTS.search(option.value):
        return option.words
    if option.name == 'accel':
        return accel(option)
    if option.name in ('machine', 'M'):
        return machine(option)
    if option.name == 'cpu':
        return cpu(option, arch)
    if option.name == 'readconfig':
        return readconfig(option)
    return option.words


def check(option):
    """Refuse what cannot be traced with any accelerator."""
    if option.name.startswith('xen-'):
        raise CannotRun(f'{option.words[0]} needs Xen')
    if option.name == 'object' and KVM_OBJECTS.match(option.value or ''):
        raise CannotRun(f'-object {split(option.value)[0]} needs KVM: the '
                        'memory of such a guest cannot be read')


def accels(option):
    """Return the accelerators that an option asks for."""
    if option.name == 'enable-kvm':
        return ['kvm']
    if option.value is None:
        return []
    if option.name == 'accel':
        return split(option.value)[0].removeprefix('accel=').split(':')
    if option.name in ('machine', 'M'):
        return [a for part in split(option.value) if part.startswith('accel=')
                for a in part.removeprefix('accel=').split(':')]
    if option.name == 'readconfig':
        return [a for _, names in config_accels(option.value) for a in names]
    return []


def asks_for_kvm(words):
    return any('kvm' in accels(o) for o in options(words))


def has_machine(found):
    """Is there a machine with a guest? Tools ask -machine none for lists."""
    return not any(o.name in ('machine', 'M') and o.value and
                   split(o.value)[0].removeprefix('type=') == 'none'
                   for o in found)


def only_asks(found):
    """Does QEMU only print something?"""
    return any(o.name in ENDS or (o.value is not None and
                                  o.name not in ('append', 'name') and
                                  LISTS.search(o.value)) for o in found)


def has_guest(words):
    found = list(options(words))
    return not only_asks(found) and has_machine(found)


def has_tracer(found, plugin):
    file = os.path.basename(plugin)
    return any(o.name == 'plugin' and o.value and os.path.basename(
        split(o.value)[0].removeprefix('file=')) == file for o in found)


def rewrite(words, arch, plugin=None, plugin_options=(), kvm=False):
    """Return the words for a QEMU that has the tracer. PLUGIN: its file, or
    None to leave it out. KVM: leave it in."""
    found = list(options(words))
    for option in found:
        check(option)
    out = [w for o in found
           for w in (o.words if kvm else without_kvm(o, arch))]
    if plugin and has_guest(words) and not has_tracer(found, plugin):
        spec = ','.join([plugin.replace(',', ',,'), *plugin_options])
        out += ['-plugin', spec]
    return out


# --- options of the plugin ---------------------------------------------------

def expand(text, pid):
    """Replace %i by the number of the process, and %% by %."""
    return re.sub('%[i%]', lambda m: str(pid) if m[0] == '%i' else '%', text)


def read_options(path):
    """Read a file with one option on a line; # begins a comment."""
    with open(path, encoding='utf-8') as f:
        lines = [line.strip() for line in f]
    return [line.replace(',', ',,') for line in lines
            if line and not line.startswith('#')]


def files(env):
    """Yield the files that may have the options."""
    base = env.get('XDG_CONFIG_HOME') or (
        os.path.join(env['HOME'], '.config') if env.get('HOME') else None)
    if base:
        yield os.path.join(base, 'ka', 'plugin-opts')
    yield '/etc/ka/plugin-opts'


def plugin_options(env, pid):
    """Return the options of the plugin as a list, or None: no plugin."""
    text = env.get('KA_PLUGIN_OPTS')
    if text == 'off':
        return None
    if text is None:
        path = next(filter(os.path.exists, files(env)), None)
        found = read_options(path) if path else []
    elif text.startswith('@'):
        found = read_options(text[1:])
    else:
        found = [text] if text else []
    return [expand(option, pid) for option in found]
