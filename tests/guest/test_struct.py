#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`ka struct` says the same of the kernel's types and objects as other tools.

Oracles: offsets and sizes of every struct by bpftool and by pahole, from the
guest's own BTF. Values by drgn, with types that are made here from what
bpftool prints, in a dump of the stopped VM, or where QEMU's dump has no
virtual addresses by memsave: tasks, caches, and random blocks of caches whose
objects have a known type. A module that prints the members of its object.

usage: test_struct.py [--short] [--kernel K]...
"""
import itertools
import json
import os
import random
import re
import subprocess
import tempfile
import time
from collections import defaultdict

from lib import ftrace, gmem, oracle, programs
from lib.btf import plain_btf
from lib.tap import Tap
from scripts.lib import mkinitramfs
from scripts.lib.guest import Guest
from scripts.lib.prepared import kernel_arch, kernel_file

try:
    import drgn
except ImportError:
    drgn = None

KERNELS = ('6.12', '5.10', '6.1', '6.18', '7.3', 'arm64-6.12', 'riscv64-6.12')
SMP = 2
# Cache -> type of its objects.
CACHES = {'task_struct': 'task_struct', 'kmem_cache': 'kmem_cache',
          'dentry': 'dentry', 'filp': 'file', 'inode_cache': 'inode',
          'proc_inode_cache': 'proc_inode', 'cred_jar': 'cred',
          'cred': 'cred', 'vm_area_struct': 'vm_area_struct',
          'mm_struct': 'mm_struct', 'signal_cache': 'signal_struct',
          'sighand_cache': 'sighand_struct', 'files_cache': 'files_struct',
          'kernfs_node_cache': 'kernfs_node', 'pid': 'pid',
          'anon_vma': 'anon_vma', 'radix_tree_node': 'xa_node'}
RANDOM_BLOCKS, SHORT_BLOCKS = 1000, 60
NUMBER = re.compile(r'-?(?:0x[0-9a-f]+|\d+)')
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
ATTRIBUTE = re.compile(r'__attribute__\(\(\w+(\(\d+\))?\)\)')
COMMENT = re.compile(r'/\*\s*(\d+)(?::\s*(\d+))?\s+(\d+)\s*\*/')


# --- types, as bpftool prints them -------------------------------------------

class Types:
    """The types of a file, by bpftool."""

    ALIAS = ('TYPEDEF', 'CONST', 'VOLATILE', 'RESTRICT', 'TYPE_TAG')

    def __init__(self, path):
        out = subprocess.run(['bpftool', 'btf', 'dump', 'file', path, '-j'],
                             check=True, capture_output=True)
        self.types = {t['id']: t for t in json.loads(out.stdout)['types']}
        self.named = defaultdict(list)
        for t in self.types.values():
            if t['kind'] in ('STRUCT', 'UNION') and t['name'] != '(anon)':
                self.named[t['name']].append(t['id'])

    def real(self, i):
        t = self.types.get(i)
        while t and t['kind'] in self.ALIAS:
            t = self.types.get(t['type_id'])
        return t

    def size(self, i):
        t, n = self.real(i), 1
        while t and t['kind'] == 'ARRAY':
            n *= t['nr_elems']
            t = self.real(t['type_id'])
        if not t:
            return 0
        return n * (8 if t['kind'] == 'PTR' else t.get('size', 0))

    def bits(self, member):
        """Return first bit and width of a member; 0: no bit field."""
        at, bits = member['bits_offset'], member.get('bitfield_size', 0)
        t = self.real(member['type_id'])
        if not bits and t and t['kind'] == 'INT' and \
                t['nr_bits'] != t['size'] * 8:
            return at + t['bits_offset'], t['nr_bits']
        return at, bits

    def members(self, i, base=0):
        """Yield (bit, bits, size, name) of the members, those of structs
        without a name among them."""
        for m in self.types[i]['members']:
            at, bits = self.bits(m)
            t = self.real(m['type_id'])
            if m['name'] == '(anon)' and t['kind'] in ('STRUCT', 'UNION'):
                yield from self.members(t['id'], base + at)
            else:
                name = '' if m['name'] == '(anon)' else m['name']
                yield base + at, bits, self.size(m['type_id']), name


def our_structs(path):
    """Return {id: (name, size, members)} of all structs of a file, by ka."""
    program = os.path.join(os.environ['KA_BUILD'], 'tests', 'guest',
                           'struct-list')
    out = subprocess.run([program, path], check=True, capture_output=True,
                         text=True, errors='replace').stdout
    found = {}
    for line in out.splitlines():
        kind, *words = line.split(' ')
        if kind == 'T':
            rows = []
            found[int(words[0])] = words[2], int(words[1]), rows
        else:
            rows.append((*map(int, words[:3]), words[3]))
    return found


def check_bpftool(types, ours):
    bad, members = [], 0
    for i, t in types.types.items():
        if t['kind'] in ('STRUCT', 'UNION'):
            want = list(types.members(i))
            members += len(want)
            if i not in ours or ours[i][1:] != (t['size'], want):
                bad.append((t['name'], want, ours.get(i)))
    assert not bad, f'{len(bad)}, for example {bad[:2]}'
    assert len(ours) == sum(t['kind'] in ('STRUCT', 'UNION')
                            for t in types.types.values())
    return len(ours), members


# --- types, as pahole prints them --------------------------------------------

class Pahole:
    """Parses one struct that pahole prints."""

    def __init__(self):
        self.rows, self.open = [], []

    def add(self, line):
        found = COMMENT.search(line)
        if line.startswith('/*'):
            return
        if line.endswith('{'):
            self.open.append(len(self.rows))
            return
        row = found and (int(found[1]) * 8 + int(found[2] or 0),
                         int(found[3]))
        inner = re.match(r'(?:struct|union) (\w+)\s*;',
                         ATTRIBUTE.sub('', line))
        if row and inner:
            row = *row, inner[1]    # a type with a name, a member without
        if not line.startswith('}'):
            self.rows += [row] if row else []
            return
        start = self.open.pop()
        if ATTRIBUTE.sub('', line[1:].split(';')[0]).strip():
            self.rows[start:] = [row]       # it has a name


def pahole_structs(path):
    """Yield (name, size, members) of the structs that pahole prints."""
    out = subprocess.run(['pahole', '-F', 'btf', path], check=True,
                         capture_output=True, text=True).stdout
    name = None
    for line in out.splitlines():
        begin = re.match(r'(?:struct|union) (\w+) \{$', line)
        if begin:
            name, parser, size = begin[1], Pahole(), None
        elif name and line.startswith('}'):
            yield name, size, parser.rows
            name = None
        elif name:
            found = re.search(r'/\* size: (\d+)', line)
            size = int(found[1]) if found else size
            parser.add(line.strip())


def opened(rows, by_name):
    """Open members without a name whose type has one: pahole does not, ka opens
    all members without a name (-fms-extensions, since 6.19)."""
    for bit, size, *inner in rows:
        if not inner:
            yield bit, size
            continue
        for of_inner, its in by_name[inner[0]]:
            if of_inner == size:
                yield from ((bit + b, s) for b, s in its)
                break


def check_pahole(path, ours):
    by_name = defaultdict(list)
    for name, size, rows in ours.values():
        by_name[name].append((size, [(bit, size) for bit, _, size, _ in rows]))
    n, bad = 0, []
    for name, size, rows in pahole_structs(path):
        n += 1
        rows = list(opened(rows, by_name))
        # pahole does not print the size of a union.
        sizes = [size] if size else [size for size, _ in by_name[name]]
        if not any((s, rows) in by_name[name] for s in sizes):
            bad.append((name, size, rows, by_name[name]))
    assert n > 4000, n
    assert not bad, f'{len(bad)}, for example {bad[0]}'
    return n


# --- values, as drgn reads them ----------------------------------------------

class DrgnTypes:
    """Types of drgn that are made of bpftool's."""

    def __init__(self, program, types):
        self.program, self.types, self.made = program, types, {}

    def get(self, i):
        if i not in self.made:
            self.made[i] = self._make(i)
        return self.made[i]

    def _make(self, i):
        p, t = self.program, self.types.real(i)
        if t is None:
            return p.void_type()
        return getattr(self, '_' + t['kind'].lower(),
                       lambda t: p.void_type())(t)

    def _int(self, t):
        if t['encoding'] == 'BOOL':
            return self.program.bool_type(t['name'], t['size'])
        return self.program.int_type(t['name'], t['size'],
                                     t['encoding'] == 'SIGNED')

    def _float(self, t):
        return self.program.float_type(t['name'], t['size'])

    def _ptr(self, t):
        del t
        return self.program.pointer_type(self.program.void_type())

    def _array(self, t):
        return self.program.array_type(self.get(t['type_id']),
                                       t['nr_elems'] or None)

    def _enum(self, t):
        values = t['values']
        signed = any(v['val'] < 0 for v in values)
        base = self.program.int_type('int', t['size'], signed)
        mask = (1 << t['size'] * 8) - 1
        return self.program.enum_type(
            None, base, [drgn.TypeEnumerator(
                v['name'], v['val'] if signed else v['val'] & mask)
                for v in values])

    _enum64 = _enum

    def _composite(self, t, make):
        members = []
        for m in t['members']:
            at, bits = self.types.bits(m)
            members.append(drgn.TypeMember(
                self._later(m['type_id'], bits),
                None if m['name'] == '(anon)' else m['name'], at))
        return make(None, t['size'], members)

    def _later(self, i, bits):
        def make():
            if bits:
                return drgn.Object(self.program, self.get(i),
                                   bit_field_size=bits)
            return self.get(i)
        return make

    def _struct(self, t):
        return self._composite(t, self.program.struct_type)

    def _union(self, t):
        return self._composite(t, self.program.union_type)


def ends_of(path):
    """Yield the paths of the first and the last of equal elements."""
    parts = re.split(r'\[(\d+)\.\.(\d+)\]', path)
    texts, firsts, lasts = parts[::3], parts[1::3], parts[2::3]
    for ends in itertools.product(*zip(firsts, lasts)):
        yield texts[0] + ''.join(f'[{e}]{t}' for e, t in zip(ends, texts[1:]))


def follow(obj, path):
    for word in re.findall(r'\w+|\[\d+\]', path):
        obj = obj[int(word[1:-1])] if word[0] == '[' else obj.member_(word)
    return obj


def plain(obj):
    """Return the value as ka's JSON has it: 64 bits with the sign extended."""
    return int(obj.value_()) & (1 << 64) - 1


def text_of(value):
    """Return the bytes of a string that ka printed."""
    return STRING.fullmatch(value)[1].encode().decode('unicode_escape') \
        .encode('latin-1')


def enumerators(obj):
    return {e.value: e.name for e in reversed(obj.type_.enumerators)} \
        if obj.type_.kind == drgn.TypeKind.ENUM else {}


def same_number(row, obj):
    if row['number'] != plain(obj):
        return False
    name = enumerators(obj).get(obj.value_())
    return not name or row['value'] == f'{name}({obj.value_()})'


def numbers_of(value):
    """Return the numbers of {1,RED(2),true}."""
    words = value.strip('{}').split(',')
    return [{'true': 1, 'false': 0}.get(w) if w in ('true', 'false') else
            int(NUMBER.findall(w)[-1], 0) & (1 << 64) - 1 for w in words]


def same_elements(row, obj):
    """Compare {1,2,3} with an array, or a part of one."""
    part = re.search(r'\[(\d+)\.\.(\d+)\]$', row['member'])
    ours = numbers_of(row['value'])
    first = int(part[1]) if part else 0
    return ours == [plain(obj[first + i]) for i in range(len(ours))]


# Type -> the name of an object of it; @at(type, address) is another object.
NAMES = {
    'dentry': lambda o, at: o.d_name.name.string_(),
    'file': lambda o, at: at('dentry', o.f_path.dentry).d_name.name.string_(),
    'kernfs_node': lambda o, at: o.name.string_(),
    'task_struct': lambda o, at: o.comm.string_(),
    'super_block': lambda o, at: o.s_id.string_(),
    'file_system_type': lambda o, at: o.name.string_(),
}
CHARS = 'char', 'const char', 'unsigned char', 'const unsigned char'


def same(row, root):
    value, path = row['value'], row['member']
    if value.startswith('{'):
        array = re.sub(r'\[\d+\.\.\d+\]$', '', path)
        return all(same_elements(row, follow(root, p)) for p in ends_of(array))
    objs = [follow(root, p) for p in ends_of(path)]
    if 'number' in row:
        return all(same_number(row, obj) for obj in objs)
    obj = objs[0]
    if value.startswith('"'):
        return text_of(value) == obj.string_()[:250]
    if row['size'] == 16 and ' ' not in value and value != 'empty':
        data = obj.prog_.read(obj.address_, 16)     # drgn has no such numbers
        return int(value, 0) == int.from_bytes(data, 'little')
    pointers = plain(obj.next), plain(obj.prev)
    if value == 'empty':
        return pointers == (obj.address_, obj.address_)
    return tuple(int(w, 0) for w in value.split()) == pointers


class Oracle:
    def __init__(self, guest, program, types):
        self.guest, self.types = guest, types
        self.program, self.drgn = program, DrgnTypes(program, types)
        self.compared = self.names = 0

    def ask(self, command):
        return [json.loads(line) for line in
                self.guest.hmp_qmp('ka ' + command).splitlines()]

    def check(self, name, va, command=None):
        """Compare all members of an object. Return those that differ."""
        i, = self.types.named[name][:1]
        root = drgn.Object(self.program, self.drgn.get(i), address=va)
        rows = self.ask(command or f'struct {name} {va:x} --zero -j')
        end, = (r for r in rows if r.get('type') == 'struct_end')
        members = [r for r in rows if r.get('type') == 'member']
        self.check_name(name, root, rows[0])
        assert not end['unreadable'] and not end['cut'], end
        assert end['shown'] == len(members) > 0, end
        self.compared += len(members)
        names = {re.match(r'\w*', r['member'])[0] for r in members}
        last = max(r['offset'] for r in members)
        for bit, _, size, member in self.types.members(i):
            assert member in names or not size or bit // 8 > last or \
                end['behind'], f'{name} at {va:x}: no {member}'
        return [(f'{name} at {va:x}', r) for r in members
                if not same(r, root) or not self.same_name(r, root)]

    def at(self, name, pointer):
        i, = self.types.named[name][:1]
        return drgn.Object(self.program, self.drgn.get(i),
                           address=pointer.value_())

    def check_name(self, name, root, head):
        """Compare the name of the object itself."""
        if name in NAMES and NAMES[name](root, self.at):
            assert head['called'].encode() == NAMES[name](root, self.at), head
            self.names += 1

    def same_name(self, row, root):
        """Is the name of what a pointer leads to right? ka knows more types."""
        if 'called' not in row:
            return True
        obj = follow(root, next(ends_of(row['member'])))
        to = obj.type_.type
        tag, name = getattr(to, 'tag', None), None
        if to.type_name() in CHARS:
            name = obj.string_()[:255]
        elif tag in NAMES:
            name = NAMES[tag](self.at(tag, obj), self.at)
        self.names += name is not None
        return name is None or row['called'].encode() == name

    def blocks(self, cache):
        return [r for r in self.ask(f'--cache {cache} --state A -j -n 400')
                if r.get('type') == 'block' and 'requested' in r]


# --- one guest ---------------------------------------------------------------

def make_program(guest, kernel):
    """Make a program of drgn that reads the stopped VM: by a dump, if that has
    virtual addresses."""
    if kernel_arch(kernel) == 'x86_64':
        path = guest.path('core')
        guest.qmp('dump-guest-memory', paging=True, protocol='file:' + path)
        program = drgn.Program()
        program.set_core_dump(path)
        return program
    machine = {'aarch64': drgn.Architecture.AARCH64,
               'riscv64': drgn.Architecture.RISCV64}[kernel_arch(kernel)]
    program = drgn.Program(drgn.Platform(machine))
    memory, pages = gmem.Memory(guest), {}

    def read(address, count, offset, physical):
        del offset, physical
        data = b''
        for page in range(address & -4096, address + count, 4096):
            if page not in pages:
                pages[page] = memory.read(page, 4096)
            data += pages[page]
        return data[address % 4096:][:count]

    program.add_memory_segment(0, (1 << 64) - 1, read)
    return program


def check_blocks(look, cache, most, rng):
    """Compare up to MOST objects of a cache; return how many."""
    name = CACHES[cache]
    if not look.types.named[name]:
        return 0
    rows = look.blocks(cache)
    rows = rng.sample(rows, min(most, len(rows)))
    bad = [b for r in rows for b in look.check(name, int(r['va'], 16))]
    assert not bad, f'{len(bad)}, for example {bad[:3]}'
    return len(rows)


def check_values(tap, label, look, short):
    rng = random.Random(1)
    for cache in 'task_struct', 'kmem_cache':
        with tap.test(f'{label}: values of {CACHES[cache]}s are those of '
                      'drgn'):
            n = check_blocks(look, cache, 12 if short else 1000, rng)
            assert n, 'there are none'
            tap.note(f'{label}: {n} objects')
    with tap.test(f'{label}: values of random blocks are those of drgn'):
        left, counts = SHORT_BLOCKS if short else RANDOM_BLOCKS, {}
        caches = list(CACHES)[2:]
        for i, cache in enumerate(caches):
            n = check_blocks(look, cache, left // (len(caches) - i), rng)
            left -= n
            counts[cache] = n
        n = sum(counts.values())
        tap.note(f'{label}: {n} blocks, {look.compared} members and '
                 f'{look.names} names in all')
        assert look.names, 'no object has a name'
        assert n >= (SHORT_BLOCKS if short else RANDOM_BLOCKS) // 2, counts


def check_module(tap, label, guest, look, text):
    """Compare with what the module printed, and with drgn's reading of the
    kernel types that it has."""
    name = f'{label}: members of a module\'s object are what it says'
    said = re.findall(r'ka_struct: (\S+)=(\S+)', text)
    if not said:
        tap.skip(name, 'no headers for the module')
        return
    va = int(dict(said)['va'], 16)
    rows = look.ask(f'struct ka_struct:ka_thing {va:x} -j')
    if 'fail' in rows[0]:
        tap.skip(name, rows[0]['fail'])
        return
    with tap.test(name):
        ours = {r['member']: r for r in rows if r.get('type') == 'member'}
        for member, value in said[1:]:
            assert ours[member]['number'] == int(value) & (1 << 64) - 1, \
                (member, value, ours[member])
        assert ours['name']['value'] == '"a \\"thing\\""', ours['name']
        assert ours['empty']['value'] == 'empty'
        assert ours['colour']['value'] == 'KA_GREEN(5)'
        assert ours['other']['value'] == 'KA_MINUS(-7)'
        assert ours['shorts']['value'] == '{-1,0,0,30000}', ours['shorts']
        # BTF has no arrays of arrays.
        assert ours['grid']['value'] == '{0,0,0,0,0,42}', ours['grid']
        assert ours['self']['leads_to'].startswith(f'+0 A {va:016x}-')
        # The module's text is a block, too.
        assert ' A ' in ours['code']['leads_to'], ours['code']
        assert not [m for m in ours if m.startswith('tail[5')], list(ours)
        short = look.ask('struct ka_thing --depth 1 -j')
        assert short[0]['types'] == 'BTF of ka_struct', short[0]


def check_percpu(tap, label, look):
    name = f'{label}: per-CPU variables of all CPUs'
    rows = look.ask('struct rq runqueues --cpu all -j')
    if 'fail' in rows[0]:
        tap.skip(name, rows[0]['fail'])
        return
    with tap.test(name):
        heads = [r for r in rows if r['type'] == 'struct']
        assert [r['cpu'] for r in heads] == list(range(SMP)), heads
        bad = [b for cpu, r in enumerate(heads)
               for b in look.check('rq', int(r['va'], 16), 'struct rq '
                                   f'runqueues --cpu {cpu} --zero -j')]
        assert not bad, bad[:3]


def check_commands(tap, label, look):
    """The command prints what the tests of all structs compared."""
    with tap.test(f'{label}: the command prints the same definitions'):
        names = look.ask("struct '*' -j")
        assert {r['name'] for r in names} >= set(look.types.named)
        for name in random.Random(2).sample(sorted(look.types.named), 60):
            for i, t in enumerate(look.types.named[name], 1):
                rows = look.ask(f'struct {name}:{i} --depth 1 -j')[1:]
                ours = [(r['offset'] * 8 + r.get('bit', 0), r.get('bits', 0),
                         r['size'], r['member']) for r in rows]
                assert ours == list(look.types.members(t)), (name, ours)


def check_time(tap, label, look):
    """Say how long a task takes: the aim is 5 ms with an optimised build."""
    va = look.blocks('task_struct')[0]['va']
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        look.guest.hmp_qmp(f'ka struct task_struct {va}')
        times.append(time.perf_counter() - begin)
    tap.note(f'{label}: ka struct task_struct takes {min(times) * 1000:.1f} ms')


def check_types(tap, label, path):
    ours = our_structs(path)
    types = Types(path)
    with tap.test(f'{label}: every struct is as bpftool says'):
        structs, members = check_bpftool(types, ours)
        tap.note(f'{label}: {structs} structs and unions, {members} members')
    with tap.test(f'{label}: every struct is as pahole says'):
        tap.note(f'{label}: {check_pahole(path, ours)} structs')
    return types


def check_stopped(tap, kernel, guest, types, said, short):
    guest.qmp('stop')
    look = Oracle(guest, make_program(guest, kernel) if drgn else None, types)
    check_commands(tap, kernel, look)
    check_module(tap, kernel, guest, look, said)
    if drgn:
        check_values(tap, kernel, look, short)
        check_percpu(tap, kernel, look)
    else:
        tap.skip(f'{kernel}: values are those of drgn', 'no drgn')
    check_time(tap, kernel, look)


def make_share(folder, kernel):
    """Fill the share. Return the name of the workload, and options of QEMU. A
    dump that drgn knows needs the kernel's vmcoreinfo."""
    oracle.make_share(folder, ['types.sh', 'dump.sh'], kernel,
                      modules=oracle.can_build_modules(kernel))
    if kernel_arch(kernel) != 'x86_64':
        return 'types', []
    found = mkinitramfs.find_modules(kernel_file(kernel, 'modules'))
    with open(os.path.join(folder, 'qemu_fw_cfg.ko'), 'wb') as f:
        f.write(mkinitramfs.read_module(found['qemu_fw_cfg']))
    return 'dump', ['-device', 'vmcoreinfo']


def wait_for_module(guest):
    """Wait for the last line of the module: the console prints lines of the
    kernel's log later than those of the shell."""
    for _ in range(200):
        if re.search(r'ka_struct: code=\S+\n', guest.console):
            return
        time.sleep(0.1)
    raise AssertionError('the module printed nothing')


def check(tap, kernel, short):
    with tempfile.TemporaryDirectory(prefix='ka-struct.') as tmp:
        share = os.path.join(tmp, 'share')
        run, options = make_share(share, kernel)
        with Guest(kernel=kernel, smp=SMP, run=run, share=share,
                   out=os.path.join(tmp, 'out'), end='shell', mem='512M',
                   qemu=options, timeout=300, name='struct-' + kernel) as g:
            assert g.wait_done() == 0
            raw = plain_btf(ftrace.read_out(g.collect())['btf.vmlinux'])
            path = os.path.join(tmp, 'raw')
            with open(path, 'wb') as f:
                f.write(raw)
            types = check_types(tap, kernel, path)
            if os.path.exists(os.path.join(share, 'ka_struct.ko')):
                g.shell('insmod /share/ka_struct.ko')
                wait_for_module(g)
            check_stopped(tap, kernel, g, types, g.console, short)


def main():
    ap = programs.arguments(__doc__, short='6.12 and fewer objects', smp=False)
    args, tap = programs.parse(ap, kernels=KERNELS), Tap()
    for kernel in args.kernel:
        with tap.test(f'{kernel}: runs and is read'):
            check(tap, kernel, args.short)
    tap.done()


if __name__ == '__main__':
    main()
