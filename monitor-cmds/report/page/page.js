/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page: summary, and what the controls do. */

const VIEWS = [
    ["live", "live bytes"], ["blocks", "live blocks"],
    ["reserved", "allocated bytes"], ["allocs", "allocations"],
];

function fillSummary(data) {
    const facts = [
        ["live", formatBytes(data.total.live)],
        ["live blocks", formatCount(data.total.blocks)],
        ["allocations", formatCount(data.total.allocs)],
        ["allocated", formatBytes(data.total.reserved)],
        ["stacks", formatCount(data.stacks_seen)],
        ["errors", formatCount(data.errors)],
        ["as of", formatCount(data.us) + " us"],
    ];

    byId("source").textContent = data.source;
    byId("kernel").textContent = data.kernel || "unknown kernel";
    for (const [name, value] of facts) {
        byId("facts").append(element("div", null, element("dt", name),
                                     element("dd", value)));
    }
    byId("facts").lastChild.title = "microseconds of the guest";
    for (const note of data.notes) {
        const item = element("li", note);

        item.className = note.startsWith("missing: ") ? "missing" : "note";
        byId("notes").append(item);
    }
}

/* ---- controls ------------------------------------------------------------ */

function searchFlame(flame) {
    const text = byId("search").value;
    const expression = text ? compileSearch(text) : null;
    const found = flame.find(expression);

    byId("search").classList.toggle("bad", Boolean(text) && !expression);
    byId("found").textContent = !text ? "" : !found ? "no expression" :
        formatCount(found.nodes) + " frames, " +
        formatValue(flame.key, found.sum) + " in their stacks (" +
        formatPart(found.sum, flame.tree[flame.key][0]) + ")";
}

function connect(flame) {
    const change = () => {
        flame.choose(byId("view").value, byId("invert").checked);
        searchFlame(flame);
    };

    for (const [key, name] of VIEWS) {
        const option = element("option", name);

        option.value = key;
        byId("view").append(option);
    }
    byId("view").addEventListener("change", change);
    byId("invert").addEventListener("change", change);
    byId("search").addEventListener("input", () => searchFlame(flame));
    byId("reset").addEventListener("click", () => flame.zoomTo(0));
    document.addEventListener("keydown", e => {
        const typing = /INPUT|SELECT|TEXTAREA/.test(e.target.tagName);

        if (e.key === "/" && !typing) {
            byId("search").focus();
            e.preventDefault();
        } else if (e.key === "i" && !typing && !e.ctrlKey && !e.metaKey) {
            byId("invert").click();
        }
    });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener(
        "change", () => flame.draw());
    window.addEventListener("beforeprint", () => flame.draw());
    window.addEventListener("afterprint", () => flame.draw());
}

function start(data) {
    document.body.classList.add("scripts");
    byId("page").hidden = false;
    fillSummary(data);
    fillVerdict(data);
    followAddresses();
    const flame = new Flame(byId("flame"), byId("status"), data);
    connect(flame);
    const tables = new Tables(data);
    const timeline = startTimeline(data, flame, tables);
    const log = new Log(data);
    fillJob(data);
    fillErrors(data);
    fillLeaks(data);
    const map = connectMap(data);
    const compare = startCompare(data, flame);
    return {data, flame, tables, timeline, log, map, compare};
}

if (typeof document !== "undefined") {
    window.kaReady = unpack(byId("data").textContent).then(data => {
        window.kaPage = start(data);
    }).catch(showBroken);
}
