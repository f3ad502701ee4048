/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The timeline without a browser: values of counters, and the sums of an
 * interval. Steps are numbered from 1; step 0 has what was there before.
 */

/* Return the values of a column of differences. */
function undoDifferences(column) {
    const out = new Float64Array(column.length);
    let sum = 0;

    for (let i = 0; i < column.length; i++) {
        sum += column[i];
        out[i] = sum;
    }
    return out;
}

function prepareCells(cells) {
    cells.row = undoDifferences(cells.row);
    cells.step = undoDifferences(cells.step);
}

/* Undo the differences of the timeline of a page. */
function prepareTime(time) {
    for (const c of time.counters) {
        c.us = undoDifferences(c.us);
        c.value = undoDifferences(c.value);
        c.peak = c.value.reduce((a, b) => Math.max(a, b), 0);
    }
    time.instants.us = undoDifferences(time.instants.us);
    time.modules.since = undoDifferences(time.modules.since);
    time.modules.until = undoDifferences(time.modules.until);
    time.begin = time.counters.reduce(
        (a, c) => c.us.length ? Math.min(a, c.us[0]) : a, time.end);
    if (time.steps) {
        prepareCells(time.steps.stacks);
        time.steps.tables.forEach(prepareCells);
        time.begin = Math.min(time.begin, time.steps.origin);
    }
    return time;
}

/* Return how many values of a sorted column are at most @us. */
function countUntil(column, us) {
    let low = 0, high = column.length;

    while (low < high) {
        const middle = (low + high) >> 1;

        if (column[middle] <= us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Return the value of a counter at a time; 0 before its first point. */
function counterAt(counter, us) {
    const n = countUntil(counter.us, us);

    return n ? counter.value[n - 1] : 0;
}

/* Return the greatest value of a counter from one time to another. */
function counterMax(counter, from, until) {
    let most = counterAt(counter, from);

    for (let i = countUntil(counter.us, from); i < counter.us.length &&
         counter.us[i] <= until; i++) {
        most = Math.max(most, counter.value[i]);
    }
    return most;
}

/* ---- steps --------------------------------------------------------------- */

/* Return the step of a time. */
function stepAt(steps, us) {
    const step = 1 + Math.floor((us - steps.origin) / steps.width);

    return Math.max(1, Math.min(steps.n, step));
}

/* Return the first and the last microsecond of steps. */
function stepTimes(steps, first, last, end) {
    return [steps.origin + (first - 1) * steps.width,
            Math.min(end, steps.origin + last * steps.width - 1)];
}

/*
 * Return the sums of each row: allocs, reserved, frees and freed_reserved of
 * the steps from @first to @last, live and blocks at the end of @last.
 */
function intervalRows(cells, rows, first, last) {
    const out = {};

    for (const key of ["allocs", "reserved", "frees", "freed_reserved", "live",
                       "blocks"]) {
        out[key] = new Float64Array(rows);
    }
    for (let i = 0; i < cells.row.length; i++) {
        const row = cells.row[i];

        if (cells.step[i] > last) {
            continue;
        }
        out.live[row] += cells.reserved[i] - cells.freed_reserved[i];
        out.blocks[row] += cells.allocs[i] - cells.frees[i];
        if (cells.step[i] >= first) {
            out.allocs[row] += cells.allocs[i];
            out.reserved[row] += cells.reserved[i];
            out.frees[row] += cells.frees[i];
            out.freed_reserved[row] += cells.freed_reserved[i];
        }
    }
    return out;
}

/* Return columns of a tree: @rows are those of stacks, @nodes says in which
 * node each one ends. */
function intervalTree(tree, nodes, rows) {
    const out = {};

    for (const key of ["live", "blocks", "reserved", "allocs"]) {
        const column = new Float64Array(tree.depth.length);

        for (let i = 0; i < nodes.length; i++) {
            column[nodes[i]] += rows[key][i];
        }
        for (let i = column.length - 1; i > 0; i--) {
            column[tree.parent[i]] += column[i];
        }
        out[key] = column;
    }
    return out;
}

/* Return a table as tables.js shows it; what steps do not have is unknown. */
function intervalTable(table, columns, cells, first, last) {
    const n = table.name.length;
    const rows = intervalRows(cells, n + 1, first, last);
    const out = {by: table.by, name: table.name, more: table.more, rest: {}};

    for (const {key} of columns) {
        out[key] = rows[key] ? [...rows[key].subarray(0, n)] :
                   Array(n).fill(null);
        out.rest[key] = rows[key] ? rows[key][n] : null;
    }
    return out;
}

/* Return the sum of all rows, as intervalRows() has them. */
function intervalTotal(rows, columns) {
    const out = {};

    for (const {key} of columns) {
        out[key] = rows[key] ? rows[key].reduce((a, b) => a + b, 0) : null;
    }
    return out;
}

/* Return about @most round times from @begin to @end. */
function timeTicks(begin, end, most) {
    const least = Math.max(1, (end - begin) / most);
    const power = 10 ** Math.floor(Math.log10(least));
    const size = [1, 2, 5, 10].map(n => n * power).find(n => n >= least);
    const out = [];

    for (let t = Math.ceil(begin / size) * size; t <= end; t += size) {
        out.push(t);
    }
    return out;
}

/* Return 1234567 as "1.234567 s", with as many digits as @size needs. */
function formatTime(us, size) {
    const digits = Math.max(0, 6 - Math.floor(Math.log10(Math.max(1, size))));

    return (us / 1e6).toFixed(Math.min(6, digits)) + " s";
}

if (typeof module !== "undefined") {
    module.exports = {
        undoDifferences, prepareTime, countUntil, counterAt, counterMax,
        stepAt, stepTimes, intervalRows, intervalTree, intervalTable,
        intervalTotal, timeTicks, formatTime,
    };
}
