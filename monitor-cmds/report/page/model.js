/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions of the page that need no browser: layout, search, tables, texts.
 * They are tested by node --test.
 */
"use strict";

/* ---- numbers ------------------------------------------------------------- */

/* Return 12288 as "12.0 KiB". */
function formatBytes(n) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let value = Math.abs(n), unit = 0;

    while (value >= 1024 && unit < units.length - 1) {
        value /= 1024;
        unit++;
    }
    const text = unit ? value.toFixed(1) : String(value);
    return (n < 0 ? "-" : "") + text + " " + units[unit];
}

/* Return 1234567 as "1,234,567". */
function formatCount(n) {
    return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

function formatValue(key, n) {
    const bytes = ["live", "reserved", "slack", "peak", "asked", "freed",
                   "live_asked", "freed_reserved"];

    return bytes.includes(key.replace("base_", "")) ? formatBytes(n) : formatCount(n);
}

function formatPart(n, all) {
    return all ? (100 * n / all).toFixed(1) + " %" : "-";
}

/* ---- trees --------------------------------------------------------------- */

/*
 * Add to the columns of a tree, which is in pre-order, for each node: its
 * parent (-1 of the root), and the first node that is not below it.
 */
function prepareTree(tree) {
    const n = tree.depth.length;
    const path = [];

    tree.parent = new Int32Array(n);
    tree.end = new Int32Array(n).fill(n);
    tree.levels = 0;
    for (let i = 0; i < n; i++) {
        const depth = tree.depth[i];

        for (const done of path.splice(depth)) {
            tree.end[done] = i;
        }
        tree.parent[i] = depth ? path[depth - 1] : -1;
        path.push(i);
        tree.levels = Math.max(tree.levels, depth + 1);
    }
    return tree;
}

function nodeName(tree, strings, node) {
    const cut = tree.cut[node];

    if (cut) {
        return "(" + formatCount(cut) + " more stack" + (cut > 1 ? "s" : "") +
               ")";
    }
    return node ? strings[tree.name[node]] : "(all)";
}

/*
 * Return the rectangles of a flame graph, root first, as [{node, x, width}].
 * @zoom: the node that is as wide as the graph; so are those above it
 * @least: narrower nodes, and what is below them, are left out
 */
function layout(tree, key, zoom, width, least) {
    const values = tree[key];
    const out = [];
    const start = new Float64Array(tree.levels + 1);

    for (let at = tree.parent[zoom]; at >= 0; at = tree.parent[at]) {
        out.unshift({node: at, x: 0, width: width});
    }
    if (values[zoom] <= 0) {
        return out;
    }
    const scale = width / values[zoom];
    for (let i = zoom; i < tree.end[zoom];) {
        const depth = tree.depth[i];
        const x = i === zoom ? 0 : start[depth];
        const size = values[i] * scale;

        start[depth] = x + size;
        start[depth + 1] = x;
        if (size < least) {
            i = tree.end[i];
            continue;
        }
        out.push({node: i, x: x, width: size});
        i++;
    }
    return out;
}

/* Return the rectangle at a place, or null. */
function rectAt(rects, tree, x, depth) {
    for (const rect of rects) {
        if (tree.depth[rect.node] === depth && x >= rect.x &&
            x < rect.x + rect.width) {
            return rect;
        }
    }
    return null;
}

/* ---- search -------------------------------------------------------------- */

/* Return the expression of a search, or null if it is none. */
function compileSearch(text) {
    try {
        return new RegExp(text, "i");
    } catch (e) {
        return null;
    }
}

/*
 * Find nodes by name. Return {match, nodes, sum}: one byte for each node; how
 * many match; the value of all stacks that have one, each counted once.
 */
function search(tree, strings, key, expression) {
    const n = tree.depth.length;
    const match = new Uint8Array(n);
    let nodes = 0, sum = 0, counted = 0;

    for (let i = 1; i < n; i++) {
        if (tree.cut[i] || !expression.test(strings[tree.name[i]])) {
            continue;
        }
        match[i] = 1;
        nodes++;
        if (i >= counted) {
            sum += tree[key][i];
            counted = tree.end[i];
        }
    }
    return {match, nodes, sum};
}

/* Return the node that a key of the keyboard leads to. */
function step(tree, key, node, direction) {
    const parent = tree.parent[node];

    if (direction === "up") {
        return parent < 0 ? node : parent;
    }
    if (direction === "down") {
        let best = node;

        for (let i = node + 1; i < tree.end[node]; i = tree.end[i]) {
            if (best === node || tree[key][i] > tree[key][best]) {
                best = i;
            }
        }
        return best;
    }
    let before = node;
    for (let i = parent + 1; parent >= 0 && i < node; i = tree.end[i]) {
        before = i;
    }
    if (direction === "left") {
        return before;
    }
    return parent >= 0 && tree.end[node] < tree.end[parent] ?
           tree.end[node] : node;
}

/* ---- looks --------------------------------------------------------------- */

/* Return "ext4" of "f [ext4]", "" of the kernel proper. */
function moduleOf(name) {
    const found = /^[^ ]+ \[(.*)\]$/.exec(name);

    return found ? found[1] : "";
}

function hashText(text) {
    let hash = 2166136261;

    for (let i = 0; i < text.length; i++) {
        hash = Math.imul(hash ^ text.charCodeAt(i), 16777619) >>> 0;
    }
    return hash;
}

/* Return the colour of a frame: a hue for each module, warm for the kernel. */
function frameColor(name, dark) {
    const module = moduleOf(name);
    const shade = hashText(name) % 12;
    const hue = module ? 90 + hashText(module) % 220 : 25 + shade * 2;
    const light = dark ? 30 + shade : 66 + shade;

    return "hsl(" + hue + "," + (dark ? 45 : 70) + "%," + light + "%)";
}

/* Return as much of a text as fits into so many characters. */
function shorten(text, chars) {
    if (text.length <= chars) {
        return text;
    }
    return chars < 4 ? "" : text.slice(0, chars - 2) + "..";
}

/* Return how many outer frames, the last ones, all of these lists share. */
function commonOuter(lists) {
    let n = 0;

    if (lists.length < 2) {
        return 0;
    }
    while (lists.every(l => n < l.length - 1 &&
                       l[l.length - 1 - n] === lists[0][lists[0].length - 1 -
                                                        n])) {
        n++;
    }
    return n;
}

/* ---- tables -------------------------------------------------------------- */

/* Return the numbers of the rows whose name matches, in the order of @key;
 * null: in that of the table. */
function pickRows(table, strings, key, descending, expression) {
    const rows = [];

    for (let i = 0; i < table.name.length; i++) {
        if (expression.test(strings[table.name[i]])) {
            rows.push(i);
        }
    }
    if (key === null) {
        return rows;
    }
    const sign = descending ? -1 : 1;
    const value = i => key === "name" ? strings[table.name[i]] : table[key][i];
    return rows.sort((a, b) => {
        const x = value(a), y = value(b);

        if (x === null || y === null) {
            return (x === null) - (y === null) || a - b;    /* unknown last */
        }
        return x < y ? -sign : x > y ? sign : a - b;
    });
}

/* Return rows of cells as TSV. A spreadsheet takes a text that begins with "="
 * for a formula, so such a text gets an apostrophe. */
function toTsv(rows) {
    const cell = c => {
        const text = String(c === null ? "" : c).replace(/[\t\r\n]/g, " ");

        return typeof c === "string" && /^[=+\-@]/.test(text) ? "'" + text :
               text;
    };

    return rows.map(r => r.map(cell).join("\t") + "\n").join("");
}

if (typeof module !== "undefined") {
    module.exports = {
        formatBytes, formatCount, formatValue, formatPart, prepareTree,
        nodeName, layout, rectAt, compileSearch, search, step, moduleOf,
        frameColor, shorten, commonOuter, pickRows, toTsv,
    };
}
