/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flame graph: a canvas as large as what is seen of it, whatever the depth
 * of the stacks. The root is at the top; inverted, the leaves are below it.
 */

const ROW = 18;         /* pixels of a frame */
const CHAR = 6.7;       /* and of a character */
const MOST_ROWS = 30;   /* that are seen at once */

class Flame {
    /* @canvas, @status: elements; @data: of the page */
    constructor(canvas, status, data) {
        this.canvas = canvas;
        this.status = status;
        this.strings = data.strings;
        this.trees = {down: prepareTree(data.down), up: prepareTree(data.up)};
        this.tree = this.trees.down;
        this.key = "live";
        this.found = null;
        this.zoomTo(0);
        canvas.addEventListener("click", e => this.onClick(e));
        canvas.addEventListener("mousemove", e => this.onMove(e));
        canvas.addEventListener("mouseleave", () => this.tell(this.node));
        canvas.addEventListener("wheel", e => this.onWheel(e));
        canvas.addEventListener("keydown", e => this.onKey(e));
        window.addEventListener("resize", () => this.draw());
    }

    /* Show other values, or the other tree; what was searched is searched. */
    choose(key, inverted) {
        const tree = inverted ? this.trees.up : this.trees.down;
        const same = tree === this.tree;

        this.key = key;
        this.tree = tree;
        this.zoomTo(same ? this.zoom : 0);
    }

    /* Show other values of the nodes: {down, up}; null: those of the page. */
    showValues(values) {
        this.interval = Boolean(values);
        for (const name of ["down", "up"]) {
            const tree = this.trees[name];

            tree.whole = tree.whole || Object.assign({}, tree);
            Object.assign(tree, values ? values[name] : tree.whole);
        }
        this.find(this.expression);
        this.tell(this.node);
    }

    zoomTo(node) {
        this.zoom = node;
        this.node = node;
        this.top = 0;
        this.show(node);
        this.draw();
        this.tell(node);
    }

    /* Scroll to a node if it is not seen; a callee or two are seen, too. */
    show(node) {
        const depth = this.tree.depth[node];

        if (depth < this.top || depth + 2 >= this.top + MOST_ROWS) {
            this.top = Math.max(0, Math.min(depth - 2, this.tree.levels -
                                            MOST_ROWS));
        }
    }

    /* Return {nodes, sum}, or null without an expression. */
    find(expression) {
        this.expression = expression;
        this.found = expression &&
            search(this.tree, this.strings, this.key, expression);
        this.draw();
        return this.found;
    }

    /* ---- what the user does --------------------------------------------- */

    rectOf(event) {
        const depth = Math.floor(event.offsetY / ROW) + this.top;

        return rectAt(this.rects, this.tree, event.offsetX, depth);
    }

    onClick(event) {
        const rect = this.rectOf(event);

        if (rect) {
            this.zoomTo(rect.node);
        }
    }

    onMove(event) {
        const rect = this.rectOf(event);

        this.tell(rect ? rect.node : this.node);
    }

    scroll(rows) {
        const most = Math.max(0, this.tree.levels - this.rows());
        const top = Math.min(most, Math.max(0, this.top + rows));
        const moved = top !== this.top;

        this.top = top;
        this.draw();
        return moved;
    }

    onWheel(event) {
        if (this.scroll(Math.sign(event.deltaY) * 2)) {
            event.preventDefault();
        }
    }

    onKey(event) {
        const steps = {ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left",
                       ArrowRight: "right"};

        if (event.key in steps) {
            this.select(step(this.tree, this.key, this.node,
                             steps[event.key]));
        } else if (event.key === "Enter") {
            this.zoomTo(this.node);
        } else if (event.key === "Escape" || event.key === "Home") {
            this.zoomTo(0);
        } else if (event.key === "PageDown" || event.key === "PageUp") {
            this.scroll(event.key === "PageDown" ? 10 : -10);
        } else {
            return;
        }
        event.preventDefault();
    }

    /* Go to a node; zoom out if it is not below the zoomed one. */
    select(node) {
        if (node < this.zoom || node >= this.tree.end[this.zoom]) {
            this.zoom = node;
        }
        this.node = node;
        this.show(node);
        this.draw();
        this.tell(node);
    }

    tell(node) {
        const values = this.tree[this.key], n = values[node];

        this.status.textContent =
            nodeName(this.tree, this.strings, node) + ": " +
            formatValue(this.key, n) + " (" + formatCount(n) + "), " +
            formatPart(n, values[0]) + " of all" + this.changeText(node);
    }

    changeText(node) {
        const key = this.key.replace("base_", "");

        if (!this.compare || this.interval) {
            return "";
        }
        const now = this.tree[key][node], before =
            this.tree["base_" + key][node];
        return "; this run " + formatValue(key, now) + ", base " +
               formatValue(key, before) + " (" + signed(now - before) + ")";
    }

    /* ---- drawing --------------------------------------------------------- */

    rows() {
        return Math.max(1, Math.floor(this.canvas.clientHeight / ROW));
    }

    draw() {
        const canvas = this.canvas, ratio = window.devicePixelRatio || 1;

        canvas.style.height = Math.min(MOST_ROWS, this.tree.levels) * ROW +
                              "px";
        const width = canvas.clientWidth, height = canvas.clientHeight;
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        this.rects = layout(this.tree, this.key, this.zoom, width, 0.4);
        const context = canvas.getContext("2d");
        context.scale(ratio, ratio);
        context.font = "12px monospace";
        context.textBaseline = "middle";
        this.dark = isDark();
        for (const rect of this.rects) {
            const row = this.tree.depth[rect.node] - this.top;

            if (row >= 0 && row * ROW < height) {
                this.drawRect(context, rect, row * ROW);
            }
        }
    }

    /* In the page of a difference, colours are changes; an interval has no
     * values of the base. */
    colorOf(node, name) {
        const key = this.key.replace("base_", "");

        return this.compare && !this.interval ?
            changeColor(this.tree[key][node], this.tree["base_" + key][node],
                        this.dark) : frameColor(name, this.dark);
    }

    drawRect(context, rect, y) {
        const dark = this.dark, node = rect.node;
        const name = nodeName(this.tree, this.strings, node);
        const width = Math.max(0.5, rect.width - (rect.width > 2 ? 1 : 0));
        const found = this.found && this.found.match[node];

        context.fillStyle = found ? (dark ? "#c03bd0" : "#e052f0") :
            this.tree.cut[node] || !node ? (dark ? "#555" : "#bbb") :
            this.colorOf(node, name);
        context.globalAlpha = this.tree.depth[node] <
            this.tree.depth[this.zoom] ? 0.5 : 1;
        context.fillRect(rect.x, y, width, ROW - 1);
        context.globalAlpha = 1;
        context.fillStyle = dark ? "#fff" : "#000";
        context.fillText(shorten(name, Math.floor((rect.width - 6) / CHAR)),
                         rect.x + 3, y + ROW / 2);
        if (node === this.node) {
            context.strokeStyle = dark ? "#fff" : "#000";
            context.strokeRect(rect.x + 0.5, y + 0.5, Math.max(1, width - 1),
                               ROW - 2);
        }
    }
}

/* Paper is light. These listeners are called before those that draw. */
let printing = false;

if (typeof window !== "undefined") {
    window.addEventListener("beforeprint", () => {
        printing = true;
    });
    window.addEventListener("afterprint", () => {
        printing = false;
    });
}

function isDark() {
    return !printing &&
           window.matchMedia("(prefers-color-scheme: dark)").matches;
}
