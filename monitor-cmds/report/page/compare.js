/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The difference to another run, the base: sums, its timeline, and tables that
 * are joined by names. The flame graph has colours for what grew and shrank.
 */

/* Return "new", "gone", "grew", "shrank" or "same". */
function changeOf(bits, now, before) {
    return bits === 1 ? "new" : bits === 2 ? "gone" :
           now > before ? "grew" : now < before ? "shrank" : "same";
}

/* Add to a joined table the columns that its heading sorts: +live and so on,
 * and the change in words. */
function prepareJoined(table, keys) {
    for (const k of keys) {
        table["+" + k] = table[k].map((n, i) => n - table["base_" + k][i]);
    }
    table.change = table.live.map((n, i) => i === table.name.length ? "" :
        changeOf(table.in[i], n, table.base_live[i]));
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
    module.exports = {changeOf, prepareJoined, changeColor};
}

/* ---- the page ------------------------------------------------------------ */

const COMPARED = ["live", "blocks", "reserved", "allocs"];

function signed(n) {
    return (n > 0 ? "+" : "") + formatCount(n);
}

/* A column: its key, its heading, and the explanation of that. */
const JOINED = [
    {key: "name", text: "name", help: "by what the rows are"},
    {key: "change", text: "change", help: "of live bytes"},
    ...COMPARED.flatMap(key => [
        {key, text: key, help: key + " of this run"},
        {key: "base_" + key, text: "base", help: key + " of the base"},
        {key: "+" + key, text: "+/-", help: key + ", this run minus the base"},
    ]),
];

class Compare {
    constructor(data) {
        this.data = data;
        this.expression = /(?:)/;
        this.key = null;        /* the order of ka: the largest change first */
        this.descending = true;
        for (const t of data.base.tables) {
            prepareJoined(t, COMPARED);
            byId("base-by").append(element("option", t.by));
        }
        byId("base-by").addEventListener("change", () => this.fill());
        onFilter("base-filter", found => {
            this.expression = found;
            this.fill();
        });
        this.fill();
    }

    cell(table, key, i) {
        const n = table[key][i];

        return typeof n === "string" ? n : key[0] === "+" ? signed(n) :
               formatCount(n);
    }

    line(table, name, i) {
        const row = element("tr", null, element("td", name));

        for (const {key} of JOINED.slice(1)) {
            row.append(element("td", this.cell(table, key, i)));
        }
        row.className = table.change[i];
        return row;
    }

    fill() {
        const table = this.data.base.tables[byId("base-by").selectedIndex];
        const body = element("tbody"), names = this.data.strings;
        const head = element("tr", null, ...JOINED.map(c => sortHeading(
            this, c, byId("base-rows"))));
        const rows = pickRows(table, names, this.key, this.descending,
                              this.expression);

        for (const i of rows) {
            body.append(this.line(table, names[table.name[i]], i));
        }
        if (table.more) {
            body.append(this.line(table, "(" + formatCount(table.more) +
                                  " more rows)", table.name.length));
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
    byId("base-link").hidden = byId("compared").hidden = false;
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
