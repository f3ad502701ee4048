/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The difference to another run, the base: sums, its timeline, and tables that
 * are joined by names. The flame graph has colours for what grew and shrank.
 */

/* Return a list of the parts of a value of two runs: now, before, change. */
function comparedCells(now, before) {
    return [now, before, now - before];
}

/* Return "new", "gone", "grew", "shrank" or "same". */
function changeOf(bits, now, before) {
    return bits === 1 ? "new" : bits === 2 ? "gone" :
           now > before ? "grew" : now < before ? "shrank" : "same";
}

/* Return the rows of a joined table that match, as [name, change, ...cells];
 * the last one, without a match, has what the page does not list. */
function joinedRows(table, strings, keys, expression) {
    const rows = [];
    const cells = i => keys.flatMap(k => comparedCells(
        table[k][i], table["base_" + k][i]));

    for (let i = 0; i < table.name.length; i++) {
        const name = strings[table.name[i]];

        if (expression.test(name)) {
            rows.push([name, changeOf(table.in[i], table.live[i],
                                      table.base_live[i]), ...cells(i)]);
        }
    }
    if (table.more) {
        rows.push(["(" + formatCount(table.more) + " more rows)", "",
                   ...cells(table.name.length)]);
    }
    return rows;
}

/* Return the colour of a frame: red if it grew, blue if it shrank, the stronger
 * the larger the part of the larger value that changed. */
function changeColor(now, before, dark) {
    const part = (now - before) / Math.max(now, before, 1);
    const strength = Math.round(Math.abs(part) * 70);
    const light = dark ? 30 + strength / 7 : 85 - strength / 2.5;

    return part === 0 ? (dark ? "hsl(0,0%,32%)" : "hsl(0,0%,80%)") :
        "hsl(" + (part > 0 ? 5 : 215) + "," + (20 + strength) + "%," + light +
        "%)";
}

if (typeof module !== "undefined") {
    module.exports = {changeOf, joinedRows, changeColor};
}

/* ---- the page ------------------------------------------------------------ */

const COMPARED = ["live", "blocks", "reserved", "allocs"];

function signed(n) {
    return (n > 0 ? "+" : "") + formatCount(n);
}

class Compare {
    constructor(data) {
        this.data = data;
        this.expression = /(?:)/;
        for (const t of data.base.tables) {
            byId("base-by").append(element("option", t.by));
        }
        byId("base-by").addEventListener("change", () => this.fill());
        byId("base-filter").addEventListener("input", e => {
            const found = compileSearch(e.target.value);

            e.target.classList.toggle("bad", !found);
            this.expression = found || this.expression;
            this.fill();
        });
        this.fill();
    }

    fill() {
        const table = this.data.base.tables[byId("base-by").selectedIndex];
        const head = element("tr", null, element("th", "name"),
                             element("th", "change"));
        const body = element("tbody");

        for (const key of COMPARED) {
            head.append(element("th", key), element("th", "base"),
                        element("th", "+/-"));
        }
        const rows = joinedRows(table, this.data.strings, COMPARED,
                                this.expression);
        for (const [name, change, ...cells] of rows) {
            const row = element("tr", null, element("td", name),
                                element("td", change));

            cells.forEach((n, i) => row.append(element(
                "td", i % 3 === 2 ? signed(n) : formatCount(n))));
            body.append(row);
        }
        byId("base-rows").replaceChildren(element("thead", null, head), body);
    }
}

function fillBaseTotals(data) {
    const base = data.base, list = byId("base-facts");

    byId("base-source").textContent = base.source + ", " +
        (base.kernel || "unknown kernel") + ", " + formatCount(base.us) +
        " us, " + formatCount(base.errors) + " errors";
    for (const key of COMPARED) {
        const now = data.total[key], before = base.total[key];

        list.append(element("dt", key), element(
            "dd", formatValue(key, now) + ", base " +
            formatValue(key, before) + " (" + signed(now - before) + ")"));
    }
    for (const note of base.notes.filter(n => n.startsWith("missing: "))) {
        const item = element("li", "base: " + note);

        item.className = "missing";
        byId("base-notes").append(item);
    }
}

/* Return what compares with another run, or null. */
function startCompare(data, flame) {
    if (!data.base) {
        return null;
    }
    byId("base-part").hidden = false;
    byId("base-link").hidden = false;
    fillBaseTotals(data);
    for (const [key, name] of VIEWS) {
        const option = element("option", name + " of the base");

        option.value = "base_" + key;
        byId("view").append(option);
    }
    flame.compare = true;
    flame.draw();
    if (data.base.time) {
        prepareTime(data.base.time);
        new Timeline(byId("base-time"), byId("base-status"),
                     {strings: data.strings, time: data.base.time}, () => {});
    }
    return new Compare(data);
}
