/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tables of ka top. Texts get into the page only as textContent. */

/* Return a new element with a text and children. */
function element(name, text, ...children) {
    const e = document.createElement(name);

    if (text !== null && text !== undefined) {
        e.textContent = text;
    }
    e.append(...children);
    return e;
}

function byId(id) {
    return document.getElementById(id);
}

/* Call @fill with the expression of a filter, if it is one. */
function onFilter(id, fill) {
    byId(id).addEventListener("input", e => {
        const found = compileSearch(e.target.value);

        e.target.classList.toggle("bad", !found);
        if (found) {
            fill(found);
        }
    });
}

/* Return a heading that sorts. @of: has a key, an order and fill() */
function sortHeading(of, {key, text, help}, table) {
    const button = element("button", text || key);
    const cell = element("th", null, button);

    button.title = help;
    button.addEventListener("click", () => {
        of.descending = of.key === key ? !of.descending :
                        key !== "name" && key !== "change";
        of.key = key;
        of.fill();
        table.querySelector("[aria-sort] button").focus();
    });
    if (key === of.key) {
        cell.setAttribute("aria-sort", of.descending ? "descending" :
                          "ascending");
    }
    return cell;
}

class Tables {
    constructor(data) {
        this.data = data;
        this.columns = data.columns.filter(c => !c.rare);
        this.tables = data.tables;
        this.total = data.total;
        this.table = data.tables[0];
        this.key = "live";
        this.descending = true;
        this.expression = /(?:)/;
        for (const t of data.tables) {
            byId("by").append(element("option", t.by));
        }
        byId("by").addEventListener("change", e => {
            this.table = this.tables[e.target.selectedIndex];
            this.fill();
        });
        onFilter("filter", found => {
            this.expression = found;
            this.fill();
        });
        byId("copy").addEventListener("click", () => this.copy());
        this.fill();
    }

    /* Show tables with the same names and other values. */
    show(tables, total) {
        this.tables = tables;
        this.total = total;
        this.table = tables[byId("by").selectedIndex];
        this.fill();
    }

    /* The rows that are shown, as numbers in the columns. */
    rows() {
        return pickRows(this.table, this.data.strings, this.key,
                        this.descending, this.expression);
    }

    line(name, value) {
        const row = element("tr", null, element("td", name));

        for (const c of this.columns) {
            const n = value(c.key);

            row.append(element("td", n === null ? "-" : formatCount(n)));
        }
        return row;
    }

    fill() {
        const t = this.table, names = this.data.strings;
        const head = element("tr", null, ...[
            {key: "name", help: "by " + t.by}, ...this.columns].map(
            c => sortHeading(this, c, byId("rows"))));
        const body = element("tbody");

        for (const i of this.rows()) {
            body.append(this.line(names[t.name[i]], key => t[key][i]));
        }
        if (t.more) {
            body.append(this.line("(" + formatCount(t.more) + " more rows)",
                                  key => t.rest[key]));
        }
        const foot = this.line("all", key => this.total[key]);
        byId("rows").replaceChildren(element("thead", null, head), body,
                                     element("tfoot", null, foot));
    }

    tsv() {
        const t = this.table, keys = this.columns.map(c => c.key);
        const rows = this.rows().map(i => [
            this.data.strings[t.name[i]], ...keys.map(k => t[k][i])]);

        return toTsv([["name", ...keys], ...rows]);
    }

    /* A page of a file may not have the clipboard: then the text is selected
     * for the user. */
    copy() {
        const box = byId("tsv");

        box.value = this.tsv();
        box.hidden = false;
        box.select();
        if (navigator.clipboard) {
            navigator.clipboard.writeText(box.value).then(() => {
                box.hidden = true;
            }, () => {});
        }
    }
}
