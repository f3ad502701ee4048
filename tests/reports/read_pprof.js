// SPDX-License-Identifier: GPL-2.0-or-later
// Print a pprof file as JSON, as the package pprof-format reads it. Numbers
// are texts, because they can have 64 bits.
//
// usage: node read_pprof.js FOLDER FILE     FOLDER: has node_modules
'use strict';

const fs = require('fs');
const path = require('path');
const zlib = require('zlib');

const [folder, file] = process.argv.slice(2);
const { Profile } = require(path.resolve(folder, 'node_modules',
                                         'pprof-format'));
const p = Profile.decode(zlib.gunzipSync(fs.readFileSync(file)));
const text = (id) => p.stringTable.strings[Number(id)];
const number = (v) => String(v);

console.log(JSON.stringify({
    strings: p.stringTable.strings.length,
    first: text(0),
    types: p.sampleType.map((t) => [text(t.type), text(t.unit)]),
    mappings: p.mapping.map((m) => ({
        id: number(m.id), start: number(m.memoryStart),
        limit: number(m.memoryLimit), file: text(m.filename),
        build: text(m.buildId), functions: m.hasFunctions,
    })),
    functions: p.function.map((f) => ({
        id: number(f.id), name: text(f.name), file: text(f.filename),
        system: text(f.systemName),
    })),
    locations: p.location.map((l) => ({
        id: number(l.id), mapping: number(l.mappingId),
        address: number(l.address),
        functions: l.line.map((line) => number(line.functionId)),
    })),
    samples: p.sample.map((s) => ({
        locations: s.locationId.map(number),
        values: s.value.map(number),
    })),
    comments: p.comment.map(text),
    period: [text(p.periodType.type), text(p.periodType.unit),
             number(p.period)],
}));
