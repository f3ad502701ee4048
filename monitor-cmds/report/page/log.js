/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's log as a table. Few rows at a time, so that long logs are quick;
 * lines of level err and more urgent ones are marked. */

const LOG_ROWS = 500;
const LOG_COLUMNS = [
    {key: "number", text: "time", help: "the kernel's time, as dmesg has it"},
    {key: "level", help: "0 to 3, err and more urgent, are red"},
    {key: "name", text: "text", help: "what the kernel printed"},
];

class Log {
    constructor(data) {
        this.data = data;
        this.log = data.log;
        this.key = "number";
        this.descending = false;
        this.expression = /(?:)/;
        this.from = 0;
        for (const key of ["us", "ns", "number"]) {
            this.log[key] = undoDifferences(this.log[key]);
        }
        onFilter("log-filter", found => {
            this.expression = found;
            this.from = 0;
            this.fill();
        });
        for (const [id, by] of [["log-back", -1], ["log-on", 1]]) {
            byId(id).addEventListener("click", () => {
                this.from += by * LOG_ROWS;
                this.fill();
            });
        }
        this.fill();
    }

    line(i) {
        const {ns, us, level, name} = this.log;
        const row = element("tr", null,
                            element("td", (ns[i] / 1e9).toFixed(6)),
                            element("td", level[i]),
                            element("td", this.data.strings[name[i]]));

        row.title = formatCount(us[i]) + " us of the VM's clock";
        row.className = level[i] <= 3 ? "marked" : "";
        return row;
    }

    fill() {
        const rows = pickRows(this.log, this.data.strings, this.key,
                              this.descending, this.expression);
        const until = Math.min(rows.length, this.from + LOG_ROWS);
        const head = element("tr", null, ...LOG_COLUMNS.map(
            c => sortHeading(this, c, byId("log"))));

        byId("log").replaceChildren(
            element("thead", null, head),
            element("tbody", null, ...rows.slice(this.from, until).map(
                i => this.line(i))));
        byId("log-count").textContent = !this.log.name.length ?
            "No line of the kernel's log is known." :
            formatCount(Math.min(until, this.from + 1)) + " to " +
            formatCount(until) + " of " + formatCount(rows.length) + " lines";
        byId("log-back").disabled = this.from === 0;
        byId("log-on").disabled = until === rows.length;
    }
}
