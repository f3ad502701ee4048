// SPDX-License-Identifier: GPL-2.0-or-later
// Functions of the page's timeline that need no browser.
"use strict";
const assert = require("node:assert");
const path = require("node:path");
const test = require("node:test");
const page = path.join(__dirname, "../../monitor-cmds/report/page");
const t = require(path.join(page, "time-model.js"));

/* Two rows: the first one has 64 bytes at the origin, gets 32 in step 1 and
 * loses all in step 3. The second one gets 8 in step 3. */
function cells() {
    return {row: [0, 0, 0, 1], step: [0, 1, 2, 0], allocs: [1, 1, 0, 1],
            reserved: [64, 32, 0, 8], frees: [0, 0, 2, 0],
            freed_reserved: [0, 0, 96, 0]};
}

function time() {
    return t.prepareTime({
        end: 129, instants: {us: [10, 5]}, modules: {since: [3], until: [9]},
        counters: [{us: [100, 5, 10], value: [10, 20, -25]}],
        steps: {origin: 100, width: 10, n: 3, down: [2, 1], up: [1, 1],
                stacks: cells(), tables: [cells()]}});
}

const values = rows => Object.fromEntries(
    Object.entries(rows).map(([k, v]) => [k, [...v]]));

test("differences are undone", () => {
    const {counters, instants, steps, begin} = time();

    assert.deepStrictEqual([...counters[0].us], [100, 105, 115]);
    assert.deepStrictEqual([...counters[0].value], [10, 30, 5]);
    assert.strictEqual(counters[0].peak, 30);
    assert.deepStrictEqual([...instants.us], [10, 15]);
    assert.deepStrictEqual([...steps.stacks.step], [0, 1, 3, 3]);
    assert.strictEqual(begin, 100);
});

test("a counter has the value of its last point", () => {
    const c = time().counters[0];

    assert.deepStrictEqual([99, 100, 104, 105, 114, 115, 999].map(
        us => t.counterAt(c, us)), [0, 10, 10, 30, 30, 5, 5]);
    assert.strictEqual(t.counterMax(c, 100, 104), 10);
    assert.strictEqual(t.counterMax(c, 104, 120), 30);
    assert.strictEqual(t.counterMax(c, 116, 120), 5);
});

test("a time is in one step", () => {
    const {steps} = time();

    assert.deepStrictEqual([0, 100, 109, 110, 129, 500].map(
        us => t.stepAt(steps, us)), [1, 1, 1, 2, 3, 3]);
    assert.deepStrictEqual(t.stepTimes(steps, 1, 2, 129), [100, 119]);
    assert.deepStrictEqual(t.stepTimes(steps, 3, 3, 125), [120, 125]);
});

test("an interval has what happened in it and is live at its end", () => {
    const {steps} = time();

    assert.deepStrictEqual(values(t.intervalRows(steps.stacks, 2, 1, 2)), {
        allocs: [1, 0], reserved: [32, 0], frees: [0, 0],
        freed_reserved: [0, 0], live: [96, 0], blocks: [2, 0]});
    assert.deepStrictEqual(values(t.intervalRows(steps.stacks, 2, 3, 3)), {
        allocs: [0, 1], reserved: [0, 8], frees: [2, 0],
        freed_reserved: [96, 0], live: [0, 8], blocks: [0, 1]});
});

test("nodes have the sums of what is below them", () => {
    const {steps} = time();
    const tree = {depth: [0, 1, 2], parent: [-1, 0, 1]};
    const rows = t.intervalRows(steps.stacks, 2, 1, 3);

    assert.deepStrictEqual(values(t.intervalTree(tree, steps.down, rows)), {
        live: [8, 8, 0], blocks: [1, 1, 0], reserved: [40, 40, 32],
        allocs: [2, 2, 1]});
});

test("a table of an interval says what is not known", () => {
    const {steps} = time();
    const columns = [{key: "live"}, {key: "peak"}];
    const table = {by: "cache", name: [7], more: 3};
    const got = t.intervalTable(table, columns, steps.tables[0], 1, 3);

    assert.deepStrictEqual(got, {by: "cache", name: [7], more: 3, live: [0],
                                 peak: [null], rest: {live: 8, peak: null}});
    const rows = t.intervalRows(steps.stacks, 2, 1, 3);
    assert.deepStrictEqual(t.intervalTotal(rows, columns),
                           {live: 8, peak: null});
});

test("times are round", () => {
    assert.deepStrictEqual(t.timeTicks(0, 1000, 5), [0, 200, 400, 600, 800,
                                                     1000]);
    assert.deepStrictEqual(t.timeTicks(7, 9, 5), [7, 8, 9]);
    assert.strictEqual(t.formatTime(1234567, 1), "1.234567 s");
    assert.strictEqual(t.formatTime(1200000, 100000), "1.2 s");
    assert.strictEqual(t.formatTime(3e6, 1e6), "3 s");
});
