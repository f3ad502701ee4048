/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The timeline: live bytes of the largest caches on top of each other, modules
 * below them, and lines for what happened. A drag selects an interval, in whole
 * steps.
 */

const PLOT = 220;           /* pixels of the counters */
const LANE = 14;            /* of a module */
const MOST_LANES = 8;
const LEFT = 76;            /* place for the numbers of bytes */
const AXIS = 18;            /* and of times */
const SERIES = 8;           /* caches with a colour of their own */
const LINES = {             /* colours of lines, light and dark; dashes */
    mark: ["#0050c8", "#7db3ff", []], error: ["#c00020", "#ff7b86", []],
    module: ["#777", "#999", [2, 3]], gap: ["#b06000", "#ffb347", [6, 3]],
    recording: ["#7a1fa2", "#d49cf0", [6, 3]],
};

class Timeline {
    /* @select: called with the first and the last step, or null */
    constructor(canvas, status, data, select) {
        this.canvas = canvas;
        this.status = status;
        this.strings = data.strings;
        this.time = data.time;
        this.select = select;
        this.selected = null;
        this.everything = this.time.counters[0];
        this.series = this.time.counters.slice(1)
            .filter(c => this.strings[c.name] !== "(other)")
            .sort((a, b) => b.peak - a.peak).slice(0, SERIES);
        this.lanes = Math.min(MOST_LANES, this.time.lanes);
        canvas.addEventListener("pointerdown", e => this.onDown(e));
        canvas.addEventListener("pointermove", e => this.onMove(e));
        canvas.addEventListener("pointerup", e => this.onUp(e));
        canvas.addEventListener("pointercancel", () => this.drop());
        canvas.addEventListener("keydown", e => this.onKey(e));
        window.addEventListener("resize", () => this.draw());
        this.draw();
    }

    /* ---- places ---------------------------------------------------------- */

    width() {
        return Math.max(1, this.canvas.clientWidth - LEFT);
    }

    span() {
        return Math.max(1, this.time.end - this.time.begin);
    }

    xOf(us) {
        return LEFT + (us - this.time.begin) / this.span() * this.width();
    }

    usAt(x) {
        const part = Math.max(0, Math.min(1, (x - LEFT) / this.width()));

        return this.time.begin + part * this.span();
    }

    /* ---- what the user does ---------------------------------------------- */

    /* Select steps, which may be in the wrong order; null: everything. */
    choose(first, last) {
        this.selected = first === null ? null :
            [Math.min(first, last), Math.max(first, last)];
        this.select(this.selected);
        this.draw();
    }

    onDown(event) {
        if (event.button === 0 && this.time.steps) {
            this.from = event.offsetX;
            this.to = event.offsetX;
            this.canvas.setPointerCapture(event.pointerId);
        }
    }

    onMove(event) {
        if (this.from === undefined) {
            this.tell(this.usAt(event.offsetX));
            return;
        }
        this.to = event.offsetX;
        this.draw();
    }

    onUp(event) {
        const steps = this.time.steps, from = this.from;

        this.drop();
        if (from === undefined) {
            return;
        }
        if (Math.abs(event.offsetX - from) < 4) {
            this.choose(null);
        } else {
            this.choose(stepAt(steps, this.usAt(from)),
                        stepAt(steps, this.usAt(event.offsetX)));
        }
    }

    drop() {
        this.from = undefined;
        this.draw();
    }

    onKey(event) {
        const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
        const steps = this.time.steps;

        if (event.key === "Escape") {
            this.choose(null);
        } else if (by && steps) {
            const [first, last] = this.selected || [by > 0 ? 0 : steps.n + 1,
                                                    by > 0 ? 0 : steps.n + 1];
            const clamp = n => Math.max(1, Math.min(steps.n, n));

            this.choose(event.shiftKey ? clamp(first) : clamp(first + by),
                        clamp(last + by));
        } else {
            return;
        }
        event.preventDefault();
    }

    /* Say what there was at a time. */
    tell(us) {
        const near = 3 / this.width() * this.span();
        const {kind, name} = this.time.instants, words = [];

        for (const c of [this.everything, ...this.series]) {
            words.push(this.strings[c.name] + " " +
                       formatBytes(counterAt(c, us)));
        }
        this.time.instants.us.forEach((t, i) => {
            if (Math.abs(t - us) <= near && words.length < 30) {
                words.push(this.strings[kind[i]] + ": " +
                           this.strings[name[i]]);
            }
        });
        this.status.textContent = formatCount(Math.round(us)) + " us: " +
                                  words.join(", ");
    }

    /* ---- drawing --------------------------------------------------------- */

    color(i, dark) {
        return i < 0 ? (dark ? "#666" : "#ccc") :
            "hsl(" + (210 + i * 67) % 360 + "," + (dark ? "45%,45%" :
                                                   "60%,68%") + ")";
    }

    draw() {
        const ratio = window.devicePixelRatio || 1, canvas = this.canvas;
        const height = PLOT + this.lanes * LANE + AXIS;

        canvas.style.height = height + "px";
        canvas.width = Math.round(canvas.clientWidth * ratio);
        canvas.height = Math.round(height * ratio);
        const context = canvas.getContext("2d");
        context.scale(ratio, ratio);
        context.font = "11px monospace";
        context.textBaseline = "middle";
        this.dark = isDark();
        this.text = this.dark ? "#ddd" : "#222";
        this.most = Math.max(1, this.everything.peak) * 1.05;
        this.drawCounters(context);
        this.drawBytes(context);
        this.drawModules(context);
        this.drawInstants(context);
        this.drawTimes(context, height);
        this.drawSelection(context, height - AXIS);
    }

    yOf(bytes) {
        return PLOT - bytes / this.most * PLOT;
    }

    /* One column of pixels: caches from below, then all others, and a dot for
     * the greatest sum. */
    drawCounters(context) {
        for (let x = 0; x < this.width(); x++) {
            const from = this.usAt(LEFT + x), until = this.usAt(LEFT + x + 1);
            const total = counterAt(this.everything, until);
            let sum = 0;

            this.series.forEach((c, i) => {
                const next = Math.min(total, sum + counterAt(c, until));

                this.bar(context, x, sum, next, this.color(i, this.dark));
                sum = next;
            });
            this.bar(context, x, sum, total, this.color(-1, this.dark));
            context.fillStyle = this.text;
            context.fillRect(LEFT + x, this.yOf(counterMax(
                this.everything, from, until)) - 1, 1, 1);
        }
    }

    bar(context, x, from, until, color) {
        context.fillStyle = color;
        context.fillRect(LEFT + x, this.yOf(until), 1,
                         this.yOf(from) - this.yOf(until));
    }

    drawBytes(context) {
        context.fillStyle = this.text;
        context.textAlign = "right";
        for (const part of [0, 0.25, 0.5, 0.75, 1]) {
            const bytes = Math.round(this.everything.peak * part);

            context.fillText(formatBytes(bytes), LEFT - 6,
                             Math.max(6, this.yOf(bytes) - (part ? 0 : 6)));
        }
        context.textAlign = "left";
    }

    drawModules(context) {
        const m = this.time.modules;

        for (let i = 0; i < m.name.length; i++) {
            const x = this.xOf(m.since[i]), y = PLOT + m.lane[i] * LANE;
            const width = Math.max(1, this.xOf(m.until[i]) - x);
            const name = this.strings[m.name[i]];

            if (m.lane[i] >= MOST_LANES) {
                continue;
            }
            context.fillStyle = frameColor("x [" + name + "]", this.dark);
            context.fillRect(x, y + 1, width, LANE - 2);
            context.fillStyle = this.text;
            context.fillText(shorten(name, Math.floor(width / CHAR)), x + 2,
                             y + LANE / 2);
        }
    }

    drawInstants(context) {
        const {us, kind} = this.time.instants;

        for (let i = 0; i < us.length; i++) {
            const look = LINES[this.strings[kind[i]]];

            if (!look) {
                continue;
            }
            const x = Math.floor(this.xOf(us[i])) + 0.5;
            context.strokeStyle = look[this.dark ? 1 : 0];
            context.setLineDash(look[2]);
            context.beginPath();
            context.moveTo(x, 0);
            context.lineTo(x, PLOT + this.lanes * LANE);
            context.stroke();
        }
        context.setLineDash([]);
    }

    drawTimes(context, height) {
        const most = Math.max(2, Math.floor(this.width() / 110));
        const ticks = timeTicks(this.time.begin, this.time.end, most);
        const size = ticks.length > 1 ? ticks[1] - ticks[0] : 1;

        context.fillStyle = this.text;
        for (const us of ticks) {
            const text = formatTime(us, size);
            const room = this.canvas.clientWidth - context.measureText(
                text).width;

            context.fillRect(this.xOf(us), height - AXIS, 1, 4);
            context.fillText(text, Math.min(room, this.xOf(us) + 3),
                             height - AXIS / 2);
        }
    }

    drawSelection(context, height) {
        let from = this.from, to = this.to;

        if (from === undefined && this.selected) {
            const [begin, end] = stepTimes(this.time.steps, ...this.selected,
                                           this.time.end);

            from = this.xOf(begin);
            to = this.xOf(end + 1);
        }
        if (from !== undefined) {
            context.fillStyle = this.dark ? "#fff3" : "#0003";
            context.fillRect(Math.min(from, to), 0, Math.max(
                1, Math.abs(to - from)), height);
        }
    }
}

/* ---- the interval -------------------------------------------------------- */

/* Show the sums of an interval, or of everything, in the other views. */
function showInterval(data, flame, tables, selected) {
    const time = data.time, steps = time.steps;

    if (!selected) {
        flame.showValues(null);
        tables.show(data.tables, data.total);
        byId("interval").textContent = "";
        return;
    }
    const [first, last] = selected;
    const rows = intervalRows(steps.stacks, steps.down.length, first, last);
    const total = intervalTotal(rows, data.columns);
    const [begin, end] = stepTimes(steps, first, last, time.end);
    flame.showValues({down: intervalTree(data.down, steps.down, rows),
                      up: intervalTree(data.up, steps.up, rows)});
    tables.show(data.tables.map((t, i) => intervalTable(
        t, data.columns, steps.tables[i], first, last)), total);
    byId("interval").textContent =
        "Interval " + formatCount(begin) + " to " + formatCount(end) +
        " us: allocated " + formatBytes(total.reserved) + " in " +
        formatCount(total.allocs) + " allocations, freed " +
        formatBytes(total.freed_reserved) + " in " + formatCount(total.frees) +
        " frees; live at its end " + formatBytes(total.live) + " in " +
        formatCount(total.blocks) + " blocks";
}

/* The colours of caches, and what happened, as text. */
function fillTimeTexts(timeline, data) {
    const instants = data.time.instants, names = [...timeline.series, null];

    names.forEach((c, i) => {
        const key = document.createElement("canvas"), item = element("li");

        key.width = key.height = 10;
        const context = key.getContext("2d");
        context.fillStyle = timeline.color(c ? i : -1, isDark());
        context.fillRect(0, 0, 10, 10);
        item.append(key, " " + (c ? data.strings[c.name] : "all others"));
        byId("time-key").append(item);
    });
    for (let i = 0; i < Math.min(500, instants.us.length); i++) {
        byId("instants").append(element(
            "li", formatCount(instants.us[i]) + " us " +
            data.strings[instants.kind[i]] + ": " +
            data.strings[instants.name[i]]));
    }
    byId("instants-head").textContent = "what happened: " +
        formatCount(instants.us.length);
}

/* Return the timeline, or null if there is none. */
function startTimeline(data, flame, tables) {
    if (!data.time) {
        byId("time-note").textContent = "A timeline needs a journal: ka -f " +
            "FILE report.";
        byId("time").hidden = true;
        byId("instants").parentNode.hidden = true;
        return null;
    }
    prepareTime(data.time);
    const timeline = new Timeline(
        byId("time"), byId("time-status"), data,
        selected => showInterval(data, flame, tables, selected));

    fillTimeTexts(timeline, data);
    byId("whole").addEventListener("click", () => timeline.choose(null));
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener(
        "change", () => timeline.draw());
    window.addEventListener("beforeprint", () => timeline.draw());
    window.addEventListener("afterprint", () => timeline.draw());
    return timeline;
}
