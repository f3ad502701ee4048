// SPDX-License-Identifier: GPL-2.0-or-later
// Functions of the heap map of ka report that need no browser.
'use strict';
const assert = require('node:assert');
const path = require('node:path');
const test = require('node:test');

const PAGE = path.join(__dirname, '..', '..', 'monitor-cmds', 'report', 'page');
Object.assign(global, require(path.join(PAGE, 'model.js')));
const m = require(path.join(PAGE, 'map-model.js'));

// Three cells of the direct map, the last one after a gap; one of vmalloc.
const FIRST = 0xffff888000001;
const STRINGS = ['kmalloc-64', 'alpha', '[vmalloc]'];

function sample() {
    return m.prepareMap({
        cell_bytes: 4096, live: 4416, blocks: 4,
        cells: {
            page: [FIRST, 1, 5, 0xffffc90000001 - FIRST - 6],
            space: [0, 0, 0, 1], live: [192, 64, 64, 4096],
            pages: [0, 0, 0, 0], freed: [64, 0, 0, 0], blocks: [3, 1, 1, 1],
            oldest: [1000, 500000, -1, 1000000], cache: [0, 0, 0, 2],
            caller: [1, 1, 1, 1], listed: [1, 0, 0, 0],
        },
        list: {
            cell: [0, 0, 0], offset: [0, 64, 2048], asked: [60, 64, 64],
            size: [64, 64, 64], state: [0, 2, 0], us: [1000, 1500, 2000],
            cache: [0, 0, 0], caller: [1, 1, 1], pages: [0, 0, 0],
        },
    });
}

test('numbers of pages, and addresses of 64 bits', () => {
    const map = sample();

    assert.deepEqual(map.cells.page, [FIRST, FIRST + 1, FIRST + 6,
                                      0xffffc90000001]);
    assert.equal(m.addressText(FIRST, 0), 'ffff888000001000');
    assert.equal(m.addressText(FIRST, 4096 + 15), 'ffff88800000200f');
    assert.equal(m.addressText(0xfffffffffffff, 4095), 'ffffffffffffffff');
    assert.equal(m.cellOfAddress(map, '0xffff888000002abc'), 1);
    assert.equal(m.cellOfAddress(map, '0xffff888000003000'), -1);
    assert.equal(m.cellOfAddress(map, '<b>'), -1);
});

test('cells are placed in rows, a part of the address space below another',
    () => {
        const map = sample(), layout = m.layoutMap(map, 0, 4, 100, 400);

        assert.equal(layout.size, 48);
        assert.equal(layout.parts.length, 2);
        assert.deepEqual(m.cellPlace(layout, 1), {x: 48, y: 18});
        assert.deepEqual(m.cellPlace(layout, 2), {x: 0, y: 66});
        assert.equal(m.placeInMap(map, layout, 50, 20).cell, 1);
        assert.equal(m.placeInMap(map, layout, 50, 70), null);
        assert.equal(m.placeInMap(map, layout, 10, 5), null);
        assert.equal(m.placeInMap(map, layout, 10, layout.height - 1).cell, 3);
        assert.equal(m.cellPlace(layout, 9), null);
    });

test('many cells are small, and all of them are there', () => {
    const n = 32768;
    const map = {n, cells: {space: new Array(n).fill(0)}};

    for (const width of [448, 1240]) {
        const layout = m.layoutMap(map, 0, n, width, 420);

        assert.ok(layout.height <= 420, String(layout.height));
        assert.ok(m.cellPlace(layout, n - 1).y + layout.size <= layout.height);
    }
});

test('blocks and holes at an offset', () => {
    const map = sample();

    assert.equal(m.blockAt(map, 0, 63), 0);
    assert.equal(m.blockAt(map, 0, 64), 1);
    assert.equal(m.blockAt(map, 0, 128), -1);
    assert.equal(m.blockAt(map, 1, 0), -1);
    assert.match(m.holeText(map, 0, 200),
                 /: 1,920 bytes from ffff888000001080$/);
    assert.equal(m.holeText(map, 1, 200), '');
    assert.match(m.blockText(map, STRINGS, 3000, 0),
                 /^ffff888000001000-ffff88800000103f: live block, 60 bytes/);
    assert.match(m.cellText(map, STRINGS, 3000, 0),
                 /3 live blocks begin here; 192 B in use .*oldest 2.0 ms$/);
});

test('a block is cut into lines of its cell', () => {
    const map = sample();

    assert.deepEqual(m.blockRects(map, 2, 4), [{line: 2, x: 0, width: 0.0625}]);
    map.list.size[2] = 8192;
    assert.deepEqual(m.blockRects(map, 2, 4).map(r => [r.line, r.width]),
                     [[2, 1], [3, 1]]);
});

test('names of the legend, ages, the zoom', () => {
    const map = sample();

    assert.deepEqual(m.largestNames(map, 'cache', 1), [{id: 2, bytes: 4096}]);
    assert.equal(m.agePart(10, 1e6), 0);
    assert.equal(m.agePart(1e6, 1e6), 1);
    assert.equal(m.formatAge(999), '999 us');
    assert.equal(m.formatAge(90e6), '1.5 min');
    assert.deepEqual(m.zoomRange(1000, 0, 1000, 0), [0, 125]);
    assert.deepEqual(m.zoomRange(1000, 0, 125, 999), [984, 1000]);
    assert.deepEqual(m.zoomRange(4, 0, 4, 2), [0, 4]);
    assert.notEqual(m.nameColor(0, false), m.nameColor(1, false));
    assert.notEqual(m.rampColor(0, true), m.rampColor(1, true));
});
