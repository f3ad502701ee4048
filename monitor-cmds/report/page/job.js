/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job: all findings of scripts/sweep, and why the run is not complete. */

/* Return the lines of a text as an element. */
function jobText(lines, more, strings) {
    return element("pre", lines.map(id => strings[id]).join("\n") +
                   (more ? "\n(" + formatCount(more) + " more lines)" : ""));
}

/* Return links to the errors and leaks of the page that have this hash. */
function sameHash(card, data) {
    const same = (list, word, to) => list.flatMap((o, i) => o.fold ===
        card.fold && data.strings[o.fold] ? [linkTo(to + i, word)] : []);

    return [...same(data.findings, "stacks and block", "error-"),
            ...same(data.leaks.groups, "stack and block", "leak-")].slice(0, 4);
}

function jobCard(card, data, id) {
    const strings = data.strings;
    const hidden = strings[card.hidden];
    const e = element("article", null, element("h3", strings[card.name]));

    makeTarget(e, id);
    e.className = hidden ? "left" : "leak";
    e.append(placeLinks(...sameHash(card, data)));
    if (hidden) {
        e.append(element("p", hidden));
    }
    e.append(jobText(card.text, card.text_more, strings),
             element("p", "kind " + strings[card.kind] + ", fold " +
                     strings[card.fold]));
    return e;
}

/* Fill the first part of the page, which only the page of a job has. */
function fillJob(data) {
    const job = data.job, strings = data.strings;

    if (!job) {
        return;
    }
    byId("job-part").hidden = byId("job-link").hidden = false;
    byId("job-summary").textContent = job.summary;
    byId("job-summary").classList.toggle(
        "missing", job.failing > 0 || Boolean(strings[job.problem]));
    if (job.detail.length) {
        byId("job").append(jobText(job.detail, job.detail_more, strings));
    }
    job.cards.forEach((card, i) => byId("job").append(
        jobCard(card, data, "job-" + i)));
    if (job.more) {
        byId("job").append(element("p", "(" + formatCount(job.more) +
                                   " more findings)"));
    }
}
