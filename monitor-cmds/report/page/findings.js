/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The heading of the page: what was found, with counts, and links to it; what
 * was checked, and what was not.
 */

/* Findings that the heading names; others are counted. */
const NAMED = 6;
/* How reports of the kernel begin whose lines are less urgent than crit. */
const REPORT = /^(?:WARNING|BUG): /;

function plural(n, word) {
    return formatCount(n) + " " + word + (n === 1 ? "" : "s");
}

/* Return the findings of a page without a job, as [{text, to}]. */
function ownFindings(data) {
    const strings = data.strings, out = [];
    const {level, name} = data.log;
    const urgent = level.filter(l => l <= 2).length;
    const reports = level.filter(
        (l, i) => l > 2 && REPORT.test(strings[name[i]])).length;

    if (urgent) {
        out.push({text: plural(urgent, "urgent line") +
                  " of the kernel's log (level crit to emerg)",
                  to: "log-part"});
    }
    if (reports) {
        out.push({text: plural(reports, "report") +
                  " in the kernel's log (WARNING, BUG)", to: "log-part"});
    }
    data.findings.forEach((f, i) => out.push({
        text: strings[f.name] + (f.errors > 1 ? " (" + formatCount(f.errors) +
                                 " times)" : ""), to: "error-" + i}));
    data.leaks.groups.forEach((g, i) => {
        if (strings[g.title]) {
            out.push({text: strings[g.title] + " (" +
                      plural(g.blocks, "block") + ")", to: "leak-" + i});
        }
    });
    return out;
}

/* Return what a page without a job checked, and what it did not. */
function ownChecks(data) {
    const leaks = data.leaks, checked = ["errors of ka error"], not = [];

    (leaks.scanned ? checked : not).push("leaks at the end");
    (leaks.modules.length ? checked : not).push("modules that were unloaded");
    not.push("how the run ended", "other reports in the kernel's log " +
             "(scripts/sweep knows them)");
    return {checked, not};
}

/* Return {state, head, counts, list, more, checked, not}. The state is "bad",
 * "unsure" if something is missing, or "clean". */
function verdict(data) {
    const job = data.job, strings = data.strings;
    const problem = job ? strings[job.problem] : data.missing > 0 ?
        "sums and findings can be too few" : "";
    const list = job ? job.cards.map((c, i) => ({
        text: strings[c.name], to: "job-" + i, hidden: strings[c.hidden],
    })).filter(c => !c.hidden) : ownFindings(data);
    const errors = job ? job.failing : data.errors;
    const leaks = list.filter(f => f.to.startsWith("leak-")).length;
    const logged = list.some(f => f.to === "log-part");
    const counts = job ? [plural(job.failing, "finding")] : [
        ...logged ? ["errors in the kernel's log"] : [],
        ...errors || !logged ? [plural(errors, "error")] : [],
        ...leaks || data.leaks.scanned ?
            [plural(leaks, "leak") + (data.leaks.more ? " or more" : "")] : [],
    ];
    const bad = job ? errors > 0 : list.length > 0;
    const checks = job ? {checked: ["what the job checks"], not: []} :
        ownChecks(data);

    if (job) {
        const kinds = new Map();

        for (const c of job.cards.filter(c => !strings[c.hidden])) {
            kinds.set(c.kind, (kinds.get(c.kind) || 0) + 1);
        }
        for (const [kind, n] of kinds) {
            counts.push(strings[kind] + ": " + formatCount(n));
        }
        if (job.hidden) {
            counts.push(formatCount(job.hidden) + " suppressed or known");
        }
    }
    return {
        state: bad ? "bad" : problem ? "unsure" : "clean",
        head: bad ? counts.join(", ") : problem ?
            "Nothing was found so far" : "Nothing was found",
        problem, list: list.slice(0, NAMED),
        more: list.length - NAMED, ...checks,
    };
}

if (typeof module !== "undefined") {
    module.exports = {verdict};
}

/* ---- the page ------------------------------------------------------------ */

/* Return a link to a part of the page. */
function linkTo(id, text) {
    const e = element("a", text);

    e.href = "#" + id;
    return e;
}

/* Make an element one that a link leads to, and that gets the focus then. */
function makeTarget(e, id) {
    e.id = id;
    e.tabIndex = -1;
    return e;
}

/* Return links from a finding back to the heading, and to its places. */
function placeLinks(...links) {
    const e = element("p", null, linkTo("verdict", "all findings"));

    for (const link of links) {
        e.append(" ", link);
    }
    e.className = "places";
    return e;
}

function fillVerdict(data) {
    const v = verdict(data), box = byId("verdict"), list = element("ul");

    box.className = v.state;
    box.append(element("h2", v.head));
    if (v.problem) {
        box.append(element("p", "The run is not complete: " + v.problem));
    }
    for (const f of v.list) {
        list.append(element("li", null, linkTo(f.to, f.text)));
    }
    if (v.more > 0) {
        list.append(element("li", "and " + formatCount(v.more) + " more"));
    }
    if (v.list.length) {
        box.append(list);
    }
    box.append(element("p", "Checked: " + v.checked.join(", ") + "."));
    if (v.not.length) {
        box.append(element("p", "Not checked: " + v.not.join(", ") + "."));
    }
}

/* Give the focus to what the address names, in folded parts, too. Back at the
 * top, give it to the link that was followed. */
function followAddresses() {
    const targetOf = url => byId(new URL(url).hash.slice(1));

    window.addEventListener("hashchange", e => {
        const target = targetOf(e.newURL) || document.querySelector(
            "a[href='#" + CSS.escape(new URL(e.oldURL).hash.slice(1)) + "']");

        if (!target) {
            return;
        }
        for (let d = target.closest("details"); d;
             d = d.parentNode.closest("details")) {
            d.open = true;
        }
        target.focus({preventScroll: !targetOf(e.newURL)});
    });
}
