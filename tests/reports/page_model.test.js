// SPDX-License-Identifier: GPL-2.0-or-later
// Functions of the page of ka report that need no browser.
'use strict';
const assert = require('node:assert');
const path = require('node:path');
const test = require('node:test');

const m = require(path.join(__dirname, '..', '..', 'monitor-cmds', 'report',
                            'page', 'model.js'));

//  all 100
//    a 60      a1 30 (own 10), a2 [ext4] 20
//    b 30
//    (3 more stacks) 10
function sample() {
    return m.prepareTree({
        depth: [0, 1, 2, 2, 1, 1],
        name: [0, 1, 2, 3, 4, 0],
        cut: [0, 0, 0, 0, 0, 3],
        live: [100, 60, 30, 20, 30, 10],
        blocks: [6, 2, 1, 1, 0, 4],
    });
}
const NAMES = ['all', 'a', 'a1', 'a2 [ext4]', 'b'];

test('parents and ends of a tree in pre-order', () => {
    const t = sample();

    assert.deepEqual([...t.parent], [-1, 0, 1, 1, 0, 0]);
    assert.deepEqual([...t.end], [6, 4, 3, 4, 5, 6]);
    assert.equal(t.levels, 3);
    const one = m.prepareTree({depth: [0], name: [0], cut: [0], live: [0]});
    assert.deepEqual([...one.end], [1]);
});

test('names; what is cut has no name of the guest', () => {
    const t = sample();

    assert.equal(m.nodeName(t, NAMES, 0), '(all)');
    assert.equal(m.nodeName(t, NAMES, 3), 'a2 [ext4]');
    assert.equal(m.nodeName(t, NAMES, 5), '(3 more stacks)');
});

test('widths are parts of the root', () => {
    const rects = m.layout(sample(), 'live', 0, 1000, 0.4);

    assert.deepEqual(rects, [
        {node: 0, x: 0, width: 1000}, {node: 1, x: 0, width: 600},
        {node: 2, x: 0, width: 300}, {node: 3, x: 300, width: 200},
        {node: 4, x: 600, width: 300}, {node: 5, x: 900, width: 100}]);
});

test('a zoomed node is as wide as the graph, and so are its callers', () => {
    const rects = m.layout(sample(), 'live', 3, 1000, 0.4);

    assert.deepEqual(rects, [
        {node: 0, x: 0, width: 1000}, {node: 1, x: 0, width: 1000},
        {node: 3, x: 0, width: 1000}]);
});

test('narrow nodes are left out, and keep their place', () => {
    const rects = m.layout(sample(), 'live', 0, 10, 2.5);

    assert.deepEqual(rects.map(r => r.node), [0, 1, 2, 4]);
    assert.equal(rects[3].x, 6);
    assert.deepEqual(m.layout(sample(), 'blocks', 4, 10, 0.4).map(r => r.node),
                     [0]);
});

test('a place finds its rectangle', () => {
    const t = sample(), rects = m.layout(t, 'live', 0, 1000, 0.4);

    assert.equal(m.rectAt(rects, t, 299, 2).node, 2);
    assert.equal(m.rectAt(rects, t, 300, 2).node, 3);
    assert.equal(m.rectAt(rects, t, 700, 2), null);
    assert.equal(m.rectAt(rects, t, 700, 1).node, 4);
});

test('a search counts each stack once', () => {
    const t = sample();

    assert.deepEqual(m.search(t, NAMES, 'live', /^a/),
                     {match: new Uint8Array([0, 1, 1, 1, 0, 0]), nodes: 3,
                      sum: 60});
    assert.equal(m.search(t, NAMES, 'live', /a2|b/).sum, 50);
    assert.equal(m.search(t, NAMES, 'live', /all|more/).nodes, 0);
    assert.equal(m.compileSearch('('), null);
    assert.ok(m.compileSearch('^EXT4_').test('ext4_put'));
});

test('keys go to callers, the largest callee and the neighbours', () => {
    const t = sample(), go = (n, d) => m.step(t, 'live', n, d);

    assert.equal(go(0, 'up'), 0);
    assert.equal(go(3, 'up'), 1);
    assert.equal(go(0, 'down'), 1);
    assert.equal(go(1, 'down'), 2);
    assert.equal(go(2, 'down'), 2);
    assert.equal(go(1, 'right'), 4);
    assert.equal(go(5, 'right'), 5);
    assert.equal(go(5, 'left'), 4);
    assert.equal(go(1, 'left'), 1);
    assert.equal(go(0, 'left'), 0);
});

test('numbers', () => {
    assert.equal(m.formatBytes(0), '0 B');
    assert.equal(m.formatBytes(1023), '1023 B');
    assert.equal(m.formatBytes(12288), '12.0 KiB');
    assert.equal(m.formatBytes(-1536), '-1.5 KiB');
    assert.equal(m.formatBytes(3 * 2 ** 40), '3.0 TiB');
    assert.equal(m.formatCount(1234567), '1,234,567');
    assert.equal(m.formatCount(-1000), '-1,000');
    assert.equal(m.formatValue('blocks', 2048), '2,048');
    assert.equal(m.formatValue('live', 2048), '2.0 KiB');
    assert.equal(m.formatPart(1, 8), '12.5 %');
    assert.equal(m.formatPart(0, 0), '-');
});

test('modules and colours', () => {
    assert.equal(m.moduleOf('f [ext4]'), 'ext4');
    assert.equal(m.moduleOf('[no backtrace]'), '');
    assert.equal(m.moduleOf('f'), '');
    assert.equal(m.frameColor('f', false), m.frameColor('f', false));
    assert.notEqual(m.frameColor('f', false), m.frameColor('f', true));
    assert.match(m.frameColor('x [y]', true), /^hsl\(\d+,45%,\d+%\)$/);
});

test('texts are cut to their place', () => {
    assert.equal(m.shorten('kmalloc', 7), 'kmalloc');
    assert.equal(m.shorten('kmalloc', 6), 'kmal..');
    assert.equal(m.shorten('kmalloc', 3), '');
});

test('outer frames that all stacks share; each keeps one of its own', () => {
    assert.equal(m.commonOuter([[1, 2, 9], [3, 2, 9], [4, 9]]), 1);
    assert.equal(m.commonOuter([[1, 9], [2, 8]]), 0);
    assert.equal(m.commonOuter([[9], [9]]), 0);
    assert.equal(m.commonOuter([[1, 2]]), 0);
    assert.equal(m.commonOuter([]), 0);
    assert.equal(m.commonOuter([[], [1]]), 0);
});

const TABLE = {name: [1, 3, 4], live: [5, 7, 5], life: [null, 3, 9]};

test('rows are sorted and filtered; the unknown comes last', () => {
    const rows = (key, down, e) => m.pickRows(TABLE, NAMES, key, down, e);

    assert.deepEqual(rows('live', true, /(?:)/), [1, 0, 2]);
    assert.deepEqual(rows('live', false, /(?:)/), [0, 2, 1]);
    assert.deepEqual(rows('life', true, /(?:)/), [2, 1, 0]);
    assert.deepEqual(rows('life', false, /(?:)/), [1, 2, 0]);
    assert.deepEqual(rows('name', true, /a/), [1, 0]);
});

test('TSV has no formulas', () => {
    assert.equal(m.toTsv([['name', 'live'], ['=1+1', -3], ['a\tb', null]]),
                 "name\tlive\n'=1+1\t-3\na b\t\n");
});
