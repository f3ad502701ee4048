/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heap map: a canvas with a square for each cell of ka map, gaps of the
 * address space left out. When squares are large, their blocks are drawn.
 */

const MAP_HEIGHT = 420;     /* pixels at most */
const LEGEND = 10;          /* names in the legend */

class HeapMap {
    /* @canvas, @status, @legend: elements; @data: of the page */
    constructor(canvas, status, legend, data) {
        this.canvas = canvas;
        this.status = status;
        this.legend = legend;
        this.data = data;
        this.map = prepareMap(data.map);
        this.mode = "use";
        this.marks = this.findMarks();
        this.most_age = this.map.cells.oldest.reduce(
            (most, us) => us < 0 ? most : Math.max(most, data.us - us), 1);
        canvas.addEventListener("click", e => this.onClick(e));
        canvas.addEventListener("mousemove", e => this.onMove(e));
        canvas.addEventListener("mouseleave", () => this.tell(this.cell));
        canvas.addEventListener("keydown", e => this.onKey(e));
        window.addEventListener("resize", () => this.draw());
        this.zoomAll();
    }

    /* Cells with errors and leaks: number -> "error" or "leak". */
    findMarks() {
        const marks = new Map(), strings = this.data.strings;
        const add = (list, kind) => {
            for (const item of list) {
                const cell = cellOfAddress(this.map, strings[item.address]);

                if (cell >= 0) {
                    marks.set(cell, kind);
                }
            }
        };

        add(this.data.leaks.groups, "leak");
        add(this.data.cards, "error");
        return marks;
    }

    choose(mode) {
        this.mode = mode;
        this.draw();
    }

    zoomAll() {
        this.view(0, this.map.n, 0);
    }

    view(lo, hi, cell) {
        this.lo = lo;
        this.hi = hi;
        this.cell = cell;
        this.draw();
        this.tell(cell);
    }

    zoomTo(cell) {
        const [lo, hi] = zoomRange(this.map.n, this.lo, this.hi, cell);

        this.view(lo, hi, cell);
    }

    /* Go to a cell; move the view if it is not seen. */
    select(cell) {
        const size = this.hi - this.lo;
        let lo = this.lo;

        if (cell < lo || cell >= this.hi) {
            lo = Math.max(0, Math.min(this.map.n - size, cell - (size >> 1)));
        }
        this.view(lo, lo + size, cell);
    }

    /* ---- what the user does --------------------------------------------- */

    placeOf(event) {
        return placeInMap(this.map, this.layout, event.offsetX, event.offsetY);
    }

    onClick(event) {
        const place = this.placeOf(event);

        if (place) {
            this.zoomTo(place.cell);
        }
    }

    onMove(event) {
        const place = this.placeOf(event);

        if (!place) {
            this.tell(this.cell);
            return;
        }
        this.tell(place.cell, this.layout.size >= BLOCK_CELL ? place.offset :
                                                               -1);
    }

    onKey(event) {
        const columns = this.layout.parts.length ?
                        this.layout.parts[0].columns : 1;
        const steps = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns,
                       ArrowDown: columns, PageUp: -(this.hi - this.lo),
                       PageDown: this.hi - this.lo};

        if (event.key in steps) {
            this.select(Math.max(0, Math.min(this.map.n - 1, this.cell +
                                             steps[event.key])));
        } else if (event.key === "Enter") {
            this.zoomTo(this.cell);
        } else if (event.key === "Escape" || event.key === "Home") {
            this.zoomAll();
        } else {
            return;
        }
        event.preventDefault();
    }

    /* Say what is at a cell, or at an offset of it. */
    tell(cell, offset = -1) {
        const strings = this.data.strings, us = this.data.us;
        const block = offset < 0 ? -1 : blockAt(this.map, cell, offset);
        const mark = this.marks.get(cell);
        let text = "";

        if (block >= 0) {
            text = blockText(this.map, strings, us, block);
        } else if (cell < this.map.n) {
            const hole = offset < 0 ? "" : holeText(this.map, cell, offset);

            text = cellText(this.map, strings, us, cell) +
                   (hole && "; " + hole);
        }
        this.status.textContent = text + (mark ? "; has " +
            (mark === "error" ? "an error" : "a leak") : "");
    }

    /* ---- drawing --------------------------------------------------------- */

    draw() {
        const canvas = this.canvas, ratio = window.devicePixelRatio || 1;
        const width = canvas.clientWidth;

        this.dark = isDark();
        this.layout = layoutMap(this.map, this.lo, this.hi, width, MAP_HEIGHT);
        canvas.style.height = Math.max(1, this.layout.height) + "px";
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(Math.max(1, this.layout.height) * ratio);
        this.chooseColors();
        const context = canvas.getContext("2d");
        context.scale(ratio, ratio);
        context.font = "12px sans-serif";
        context.textBaseline = "middle";
        for (const part of this.layout.parts) {
            context.fillStyle = this.dark ? "#e6e6e6" : "#1a1a1a";
            context.fillText(SPACES[part.space], 0, part.y - LABEL / 2);
            for (let i = part.first; i < part.first + part.n; i++) {
                this.drawCell(context, i);
            }
        }
        this.drawMarks(context);
        this.drawLegend();
    }

    /* Make the table of names, or the oldest age, for colours. */
    chooseColors() {
        const named = this.mode === "cache" || this.mode === "caller";

        this.names = named ? largestNames(this.map, this.mode, LEGEND) : [];
        this.place_of = new Map(this.names.map((e, i) => [e.id, i]));
    }

    nameColor(id) {
        const place = this.place_of.get(id);

        return nameColor(place === undefined ? -1 : place, this.dark);
    }

    /* The colour of live memory: of a cell, or of a block in it. */
    color(name, us, part) {
        if (this.mode === "use") {
            return rampColor(part, this.dark);
        }
        return this.mode === "age" ?
            rampColor(agePart(this.data.us - us, this.most_age), this.dark) :
            this.nameColor(name);
    }

    drawCell(context, i) {
        const {x, y} = cellPlace(this.layout, i), size = this.layout.size;
        const cells = this.map.cells, used = bytesInUse(cells, i);
        const inner = size > 4 ? size - 1 : size;

        context.fillStyle = this.dark ? "#303338" : "#e4e5e7";
        context.fillRect(x, y, inner, inner);
        if (size >= BLOCK_CELL && this.map.of.has(i)) {
            this.drawBlocks(context, i, x, y);
            return;
        }
        if (!used) {
            return;
        }
        const part = Math.min(1, used / this.map.cell_bytes);
        const height = size < 6 ? inner : Math.max(1, inner * part);

        context.fillStyle = this.color(cells[this.mode === "caller" ? "caller" :
                                             "cache"][i],
                                       cells.oldest[i], part);
        context.fillRect(x, y + inner - height, inner, height);
    }

    drawBlocks(context, cell, x, y) {
        const size = this.layout.size - 1, list = this.map.list;
        const lines = blockLines(this.layout.size), high = size / lines;

        for (const i of this.map.of.get(cell)) {
            const key = this.mode === "caller" ? "caller" : "cache";

            context.fillStyle = list.state[i] === 2 ?
                (this.dark ? "#4a4e55" : "#c6c9ce") :
                this.color(list[key][i], list.us[i], 1);
            context.globalAlpha = list.pages[i] ? 0.35 : 1;
            for (const r of blockRects(this.map, i, lines)) {
                context.fillRect(x + r.x * size, y + r.line * high,
                                 Math.max(0.5, r.width * size - 0.5),
                                 Math.max(0.5, high - 0.5));
            }
        }
        context.globalAlpha = 1;
    }

    drawMarks(context) {
        const size = Math.max(4, this.layout.size);
        const frame = (cell, color) => {
            const place = cellPlace(this.layout, cell);

            if (place) {
                context.strokeStyle = color;
                context.strokeRect(place.x + 0.5, place.y + 0.5, size - 1,
                                   size - 1);
            }
        };

        context.lineWidth = 2;
        for (const [cell, kind] of this.marks) {
            frame(cell, kind === "error" ? (this.dark ? "#ff7b86" : "#b00020") :
                  (this.dark ? "#d39bff" : "#7a1fb8"));
        }
        context.lineWidth = 1;
        if (this.map.n) {
            frame(this.cell, this.dark ? "#fff" : "#000");
        }
    }

    /* ---- the legend ------------------------------------------------------ */

    legendEntries() {
        const dark = this.dark, strings = this.data.strings;
        const steps = [0, 0.25, 0.5, 0.75, 1];

        if (this.mode === "use") {
            return steps.map(p => [rampColor(p, dark),
                                   Math.round(100 * p) + " %"]);
        }
        if (this.mode === "age") {
            const span = this.most_age / 1000;

            return steps.map(p => [rampColor(p, dark), formatAge(
                Math.round(1000 * Math.pow(Math.max(1, span), p)))]);
        }
        const entries = this.names.map((e, i) => [
            nameColor(i, dark), strings[e.id] + " " + formatBytes(e.bytes)]);

        return [...entries, [nameColor(-1, dark), "others"]];
    }

    /* Swatches are canvases: browsers do not print backgrounds. */
    drawLegend() {
        this.legend.replaceChildren(...this.legendEntries().map(
            ([color, text]) => {
                const swatch = document.createElement("canvas");
                const context = swatch.getContext("2d");

                swatch.width = swatch.height = 12;
                context.fillStyle = color;
                context.fillRect(0, 0, 12, 12);
                return element("li", null, swatch, element("span", text));
            }));
    }
}

function connectMap(data) {
    const box = byId("map-part");

    if (!data.map.cells.page.length) {
        box.replaceChildren(element("h2", "Heap map"), element("p",
            data.map.cell_bytes ? "No block is known." :
            "ka map was not answered."));
        return null;
    }
    const map = new HeapMap(byId("map"), byId("map-status"),
                            byId("map-legend"), data);

    byId("map-size").textContent =
        formatCount(map.map.n) + " squares of " +
        formatBytes(data.map.cell_bytes) + " have blocks: " +
        formatCount(data.map.blocks) + " live blocks, " +
        formatBytes(data.map.live) + ". Addresses without blocks are left " +
        "out.";
    byId("map-color").addEventListener(
        "change", e => map.choose(e.target.value));
    byId("map-all").addEventListener("click", () => map.zoomAll());
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener(
        "change", () => map.draw());
    window.addEventListener("beforeprint", () => map.draw());
    window.addEventListener("afterprint", () => map.draw());
    return map;
}
