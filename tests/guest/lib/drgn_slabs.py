# SPDX-License-Identifier: GPL-2.0-or-later
"""What drgn's slab_object_info() says of addresses, without debug information.

A program, and not a module: it runs under the Python of a drgn that knows the
guest's kernels, which may not be the Python of the tests. Types are those of
the guest's BTF, as bpftool prints them; the few variables that drgn's helpers
ask for are found by /proc/kallsyms. Memory is read by the test, which answers
on standard input:

    drgn_slabs.py JOB <answers >questions      JOB: a JSON file
    question: {"read": address, "page": bytes}   answer: hex bytes, or "-"
    last question: {"done": [row, ...]} or {"failed": text}
    row: [cache, start of the object, allocated], or null: in no slab
"""
import json
import sys

import drgn
from drgn.helpers.linux import mm
from drgn.helpers.linux.slab import slab_object_info

PAGE = 4096


class Types:
    """Types of drgn that are made of bpftool's, with their names."""

    KINDS = {'INT': drgn.TypeKind.INT, 'STRUCT': drgn.TypeKind.STRUCT,
             'UNION': drgn.TypeKind.UNION, 'ENUM': drgn.TypeKind.ENUM,
             'ENUM64': drgn.TypeKind.ENUM, 'TYPEDEF': drgn.TypeKind.TYPEDEF}

    def __init__(self, program, types):
        self.program, self.made = program, {}
        self.types = {t['id']: t for t in types}
        self.named, self.constants = {}, {}
        for t in types:
            kind = self.KINDS.get(t['kind'])
            if kind and t['name'] != '(anon)':
                self.named.setdefault((kind, t['name']), t['id'])
            if t['kind'] in ('ENUM', 'ENUM64'):
                for v in t['values']:
                    self.constants.setdefault(v['name'], v['val'])

    def find(self, program, kinds, name, filename):
        del program, filename
        for kind in kinds:
            if (kind, name) in self.named:
                return self.get(self.named[kind, name])
        return None

    def get(self, i):
        if i not in self.made:
            t = self.types.get(i)
            make = getattr(self, '_' + t['kind'].lower(), None) if t else None
            self.made[i] = make(t) if make else self.program.void_type()
        return self.made[i]

    def _name(self, t):
        return None if t['name'] == '(anon)' else t['name']

    def _int(self, t):
        if t['encoding'] == 'BOOL':
            return self.program.bool_type(t['name'], t['size'])
        return self.program.int_type(t['name'], t['size'],
                                     t['encoding'] == 'SIGNED')

    def _ptr(self, t):
        # A pointer to what has no name needs its type now: to void instead.
        to = self.types.get(t['type_id'])
        while to and to['kind'] in ('CONST', 'VOLATILE', 'RESTRICT',
                                    'TYPE_TAG'):
            to = self.types.get(to['type_id'])
        if not to or to['kind'] not in ('INT', 'STRUCT', 'UNION', 'TYPEDEF'):
            return self.program.pointer_type(self.program.void_type())
        return self.program.pointer_type(self.get(to['id']))

    def _typedef(self, t):
        # 6.18 made a struct of page.flags, with one member. This drgn does
        # arithmetic with the number.
        if t['name'] == 'memdesc_flags_t':
            return self.program.int_type('unsigned long', 8, False)
        return self.program.typedef_type(t['name'], self.get(t['type_id']))

    def _same(self, t):
        return self.get(t['type_id'])

    _const = _volatile = _restrict = _type_tag = _same

    def _array(self, t):
        return self.program.array_type(self.get(t['type_id']), t['nr_elems'])

    def _enum(self, t):
        base = self.program.int_type('int', t['size'], True)
        return self.program.enum_type(self._name(t), base, [])

    _enum64 = _enum

    def _composite(self, t, make):
        return make(self._name(t), t['size'], [
            drgn.TypeMember(self._later(m['type_id'],
                                        m.get('bitfield_size', 0)),
                            self._name(m), m['bits_offset'])
            for m in t['members']])

    def _later(self, i, bits):
        return lambda: drgn.Object(self.program, self.get(i),
                                   bit_field_size=bits) \
            if bits else self.get(i)

    def _struct(self, t):
        return self._composite(t, self.program.struct_type)

    def _union(self, t):
        return self._composite(t, self.program.union_type)


class Memory:
    def __init__(self):
        self.pages = {}

    def _page(self, va):
        if va not in self.pages:
            print(json.dumps({'read': va, 'page': PAGE}), flush=True)
            answer = sys.stdin.readline().strip()
            self.pages[va] = None if answer == '-' else bytes.fromhex(answer)
        if self.pages[va] is None:
            raise drgn.FaultError('not mapped', va)
        return self.pages[va]

    def read(self, address, count, offset, physical):
        del offset, physical
        data = b''.join(self._page(va) for va in
                        range(address & -PAGE, address + count, PAGE))
        return data[address % PAGE:][:count]


def make_program(job):
    platform = drgn.Platform(getattr(drgn.Architecture, job['arch']))
    program = drgn.Program(platform)
    program.add_memory_segment(0, (1 << 64) - 1, Memory().read)
    with open(job['types'], encoding='utf-8') as f:
        types = Types(program, json.load(f)['types'])
    program.register_type_finder('btf', types.find, enable_index=0)

    def find(program, name, flags, filename):
        del flags, filename
        if name in job['variables']:
            type_name, va = job['variables'][name]
            return drgn.Object(program, type_name, address=va)
        if name in job['values']:
            type_name, value = job['values'][name]
            return drgn.Object(program, type_name, value)
        if name == 'VMCOREINFO':
            text = job['vmcoreinfo'].encode()
            return drgn.Object(program, f'char [{len(text)}]', text)
        if name in types.constants:
            return drgn.Object(program, 'int', types.constants[name])
        return None

    program.register_object_finder('kallsyms', find, enable_index=0)
    # Without page tables: where the direct map is, is a fact of the guest.
    mm._linux_helper_direct_mapping_offset = lambda _: job['direct']
    return program


def row_of(program, va):
    info = slab_object_info(program, va)
    if info is None:
        return None
    return [info.slab_cache.name.string_().decode('latin-1'), info.address,
            info.allocated]


def main():
    with open(sys.argv[1], encoding='utf-8') as f:
        job = json.load(f)
    program = make_program(job)
    try:
        rows = [row_of(program, va) for va in job['addresses']]
    except (AttributeError, LookupError, TypeError, drgn.FaultError) as e:
        print(json.dumps({'failed': f'{type(e).__name__}: {e}'}), flush=True)
        return
    print(json.dumps({'done': rows}), flush=True)


if __name__ == '__main__':
    main()
