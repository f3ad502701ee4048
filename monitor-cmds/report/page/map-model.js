/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heap map without a browser: places of cells, colours, texts. Tested by
 * node --test.
 */
"use strict";

const SPACES = ["direct map", "vmalloc", "per-CPU memory"];
const LABEL = 18;       /* pixels of the name of a part of the address space */
const LEAST_CELL = 2, MOST_CELL = 48;
const BLOCK_CELL = 24;  /* blocks are drawn in cells of so many pixels */

/* Turn differences into numbers, and add for each cell its listed blocks. */
function prepareMap(map) {
    const cells = map.cells, list = map.list;
    let page = 0, cell = 0;

    map.n = cells.page.length;
    map.pages_of = map.cell_bytes / 4096;
    for (let i = 0; i < map.n; i++) {
        page += cells.page[i];
        cells.page[i] = page;
    }
    map.of = new Map();
    for (let i = 0; i < list.cell.length; i++) {
        cell += list.cell[i];
        list.cell[i] = cell;
        if (!map.of.has(cell)) {
            map.of.set(cell, []);
        }
        map.of.get(cell).push(i);
    }
    return map;
}

/* Return an address, which has more bits than a number, in hex. */
function addressText(page, offset) {
    const whole = page + Math.floor(offset / 4096);

    return whole.toString(16).padStart(13, "0") +
           (offset % 4096).toString(16).padStart(3, "0");
}

/* Return the number of the cell of an address, -1 without one. @text: hex */
function cellOfAddress(map, text) {
    if (!/^(0x)?[0-9a-f]{4,16}$/.test(text)) {
        return -1;
    }
    const page = parseInt(text.slice(0, -3), 16);
    for (let i = 0; i < map.n; i++) {
        const from = map.cells.page[i];

        if (page >= from && page < from + map.pages_of) {
            return i;
        }
    }
    return -1;
}

/*
 * Place the cells from @lo to @hi - 1 in rows. Return {size, height, parts};
 * a part is {space, first, n, y, columns}: its name is above @y.
 */
function layoutMap(map, lo, hi, width, most) {
    const parts = [];

    for (let i = lo; i < hi; i++) {
        const last = parts[parts.length - 1];

        if (last && last.space === map.cells.space[i]) {
            last.n++;
        } else {
            parts.push({space: map.cells.space[i], first: i, n: 1});
        }
    }
    for (let size = MOST_CELL; ; size--) {
        const columns = Math.max(1, Math.floor(width / size));
        let y = 0;

        for (const part of parts) {
            y += LABEL;
            part.y = y;
            part.columns = columns;
            y += Math.ceil(part.n / columns) * size;
        }
        if (y <= most || size === LEAST_CELL) {
            return {size, height: y, parts};
        }
    }
}

/* Return {x, y} of a cell in its layout. */
function cellPlace(layout, cell) {
    for (const part of layout.parts) {
        const i = cell - part.first;

        if (i >= 0 && i < part.n) {
            return {x: i % part.columns * layout.size,
                    y: part.y + Math.floor(i / part.columns) * layout.size};
        }
    }
    return null;
}

/* Return {cell, offset} of a place, or null. @offset: bytes in the cell, by
 * the line and the column in it */
function placeInMap(map, layout, x, y) {
    const size = layout.size;

    for (const part of layout.parts) {
        const row = Math.floor((y - part.y) / size);
        const column = Math.floor(x / size);
        const i = row * part.columns + column;

        if (y < part.y || column >= part.columns || i >= part.n || x < 0) {
            continue;
        }
        const lines = blockLines(size);
        const line = Math.floor((y - part.y - row * size) * lines / size);
        const part_of_line = (x - column * size) / size;
        return {cell: part.first + i, offset: Math.floor(
            (line + part_of_line) * map.cell_bytes / lines)};
    }
    return null;
}

/* Return how many lines of bytes a cell of this size has. */
function blockLines(size) {
    return Math.max(1, Math.floor(size / 4));
}

/* Return the rectangles of a block in its cell, as [{x, y, width}] in parts of
 * the cell and its lines. */
function blockRects(map, block, lines) {
    const per_line = map.cell_bytes / lines, out = [];
    const begin = map.list.offset[block];
    const end = Math.min(map.cell_bytes, begin + map.list.size[block]);

    for (let line = Math.floor(begin / per_line); line < lines; line++) {
        const from = Math.max(begin, line * per_line);
        const to = Math.min(end, (line + 1) * per_line);

        if (from >= to) {
            break;
        }
        out.push({line, x: from / per_line - line, width: (to - from) /
                                                         per_line});
    }
    return out;
}

/* Return the number of the block at an offset of a cell: the smallest one;
 * -1: a hole, or blocks are not listed. */
function blockAt(map, cell, offset) {
    const list = map.list;
    let best = -1;

    for (const i of map.of.get(cell) || []) {
        if (offset >= list.offset[i] &&
            offset < list.offset[i] + list.size[i] &&
            (best < 0 || list.size[i] <= list.size[best])) {
            best = i;
        }
    }
    return best;
}

/* ---- colours ------------------------------------------------------------- */

/* Return the bytes that a cell has in use. */
function bytesInUse(cells, i) {
    return cells.live[i] || cells.pages[i];
}

/* Return the names with most bytes, as [{id, bytes}], at most @most. */
function largestNames(map, key, most) {
    const sums = new Map();

    for (let i = 0; i < map.n; i++) {
        const id = map.cells[key][i];

        sums.set(id, (sums.get(id) || 0) + bytesInUse(map.cells, i));
    }
    return [...sums].map(([id, bytes]) => ({id, bytes}))
        .filter(e => e.bytes > 0)
        .sort((a, b) => b.bytes - a.bytes || a.id - b.id).slice(0, most);
}

/* Return the colour of the name at a place of the legend; -1: any other. */
function nameColor(place, dark) {
    if (place < 0) {
        return dark ? "#777b80" : "#9a9da1";
    }
    const hue = (place * 137 + 210) % 360;
    return "hsl(" + hue + "," + (dark ? 55 : 65) + "%," +
           ((dark ? 48 : 50) + place % 3 * 7) + "%)";
}

/* Return a colour between little (0) and much (1). */
function rampColor(part, dark) {
    const p = Math.max(0, Math.min(1, part));

    return "hsl(" + Math.round(205 - 185 * p) + ",70%," +
           Math.round(dark ? 28 + 30 * p : 80 - 38 * p) + "%)";
}

/* Return 0 for an age of a millisecond or less, 1 for @most; by logarithm. */
function agePart(us, most) {
    const low = Math.log10(1000);

    return (Math.log10(Math.max(us, 1000)) - low) /
           Math.max(1e-9, Math.log10(Math.max(most, 1001)) - low);
}

/* Return 1234567 as "1.2 s". */
function formatAge(us) {
    const units = [["us", 1000], ["ms", 1000], ["s", 60], ["min", 60],
                   ["h", 24], ["days", Infinity]];
    let value = us;

    for (const [name, next] of units) {
        if (value < next) {
            return (name === "us" ? value : value.toFixed(1)) + " " + name;
        }
        value /= next;
    }
    return "";
}

/* ---- texts --------------------------------------------------------------- */

function cellText(map, strings, us, i) {
    const cells = map.cells, used = bytesInUse(cells, i);
    const end = addressText(cells.page[i], map.cell_bytes - 1);
    const parts = [
        addressText(cells.page[i], 0) + "-" + end,
        formatCount(cells.blocks[i]) + (cells.blocks[i] === 1 ?
            " live block begins here" : " live blocks begin here"),
        formatBytes(used) + " in use (" + formatPart(used, map.cell_bytes) +
        ")"];

    if (cells.freed[i]) {
        parts.push(formatBytes(cells.freed[i]) + " freed");
    }
    parts.push("mostly " + strings[cells.cache[i]] + ", by " +
               strings[cells.caller[i]]);
    if (cells.oldest[i] >= 0) {
        parts.push("oldest " + formatAge(Math.max(0, us - cells.oldest[i])));
    }
    return parts.join("; ");
}

function blockText(map, strings, us, block) {
    const list = map.list, cell = list.cell[block];
    const page = map.cells.page[cell], offset = list.offset[block];
    const words = ["live", "queued by kfree_rcu", "freed"];

    return addressText(page, offset) + "-" +
        addressText(page, offset + Math.max(1, list.size[block]) - 1) + ": " +
        words[list.state[block]] + (list.pages[block] ? " pages" : " block") +
        ", " + formatCount(list.asked[block]) + " bytes requested, " +
        formatCount(list.size[block]) + " reserved; " +
        strings[list.cache[block]] + ", by " + strings[list.caller[block]] +
        "; allocated " + formatAge(Math.max(0, us - list.us[block])) + " ago";
}

/* Return the text of a hole between listed blocks, "" if it is not one. */
function holeText(map, cell, offset) {
    const list = map.list;
    let from = 0, to = map.cell_bytes;

    if (!map.cells.listed[cell] ||
        bytesInUse(map.cells, cell) >= map.cell_bytes) {
        return "";
    }
    for (const i of map.of.get(cell) || []) {
        const end = list.offset[i] + list.size[i];

        if (end <= offset) {
            from = Math.max(from, end);
        } else if (list.offset[i] > offset) {
            to = Math.min(to, list.offset[i]);
        }
    }
    return "no block that begins here: " + formatCount(to - from) +
           " bytes from " + addressText(map.cells.page[cell], from);
}

/* Return the cells that a view has after a zoom to a cell: an eighth. */
function zoomRange(n, lo, hi, cell) {
    const size = Math.min(hi - lo, Math.max(16, Math.ceil((hi - lo) / 8)));
    const from = Math.max(0, Math.min(n - size, cell - (size >> 1)));

    return [from, from + size];
}

if (typeof module !== "undefined") {
    module.exports = Object.assign(module.exports || {}, {
        prepareMap, addressText, cellOfAddress, layoutMap, cellPlace,
        placeInMap, blockLines, blockRects, blockAt, largestNames, nameColor,
        rampColor, agePart, formatAge, cellText, blockText, holeText,
        zoomRange,
    });
}
