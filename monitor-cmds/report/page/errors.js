/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The errors: cards with their stacks side by side. Errors of one fold hash are
 * one finding, as in scripts/sweep.
 */

/* The stacks of a card side by side; outer frames that all have are folded. */
function stackBoxes(card, strings) {
    const stacks = card.stacks.filter(s => s);
    const common = commonOuter(stacks.map(s => s.frames));
    const box = element("div");

    box.className = "stacks";
    for (const s of stacks) {
        const own = s.frames.slice(0, s.frames.length - common);
        const list = element("ol");

        for (const frame of own) {
            list.append(element("li", strings[frame]));
        }
        box.append(element("div", null, element("h4", strings[s.when]), list));
    }
    if (!common) {
        return [box];
    }
    const outer = element("ol");
    for (const frame of stacks[0].frames.slice(-common)) {
        outer.append(element("li", strings[frame]));
    }
    return [box, element("details", null,
                         element("summary", "outer frames of all: " + common),
                         outer)];
}

/* The identity of an error or a leak. */
function hashLine(of, strings) {
    const line = element("p", "fold " + strings[of.fold] + ", exact " +
                         strings[of.exact] +
                         (of.weak ? " (weak: a stack is not whole)" : ""));

    line.className = "hash";
    return line;
}

function errorCard(card, data, title, id) {
    const strings = data.strings, address = strings[card.address];
    const e = element("article", null, element("h3", title));
    const block = makeTarget(element("p", strings[card.block]), id + "-block");
    const stacks = stackBoxes(card, strings);

    makeTarget(e, id);
    makeTarget(stacks[0], id + "-stack");
    for (const alt of card.alt) {
        e.append(element("p", "also: " + strings[alt]));
    }
    if (strings[card.what]) {
        e.append(element("p", strings[card.what]));
    }
    e.append(placeLinks(linkTo(id + "-block", "block"),
                        linkTo(id + "-stack", "stacks"),
                        linkTo("map-part", "heap map"),
                        linkTo("time-part", "timeline")),
             block, ...stacks, hashLine(card, strings));
    if (address) {
        const commands = element("pre", data.command + " error " + address +
                                 " -l\n" + data.command + " show " + address +
                                 " -l\n");
        e.append(commands);
    }
    return e;
}

/* The first error of a finding; the others are folded. */
function findingCards(finding, cards, data, id) {
    const name = data.strings[finding.name];
    const out = [errorCard(cards[0], data, name, id)];

    if (cards.length > 1) {
        const n = cards.length - 1;

        out.push(element("details", null,
                         element("summary", formatCount(n) + " more error" +
                                 (n > 1 ? "s" : "") + " of this finding: " +
                                 name),
                         ...cards.slice(1).map((c, k) => errorCard(
                             c, data, name, id + "-" + (k + 1)))));
    }
    return out;
}

function fillErrors(data) {
    const left = data.errors - data.cards.length;

    byId("error-count").textContent = data.errors ?
        plural(data.errors, "error") + ", " +
        plural(data.findings.length, "finding") +
        (left > 0 ? " of the first " + formatCount(data.cards.length) : "") :
        "ka error lists none.";
    data.findings.forEach((finding, i) => {
        byId("cards").append(...findingCards(
            finding, data.cards.filter((c, k) => data.finding_of[k] === i),
            data, "error-" + i));
    });
    if (left > 0) {
        byId("cards").append(element("p", "(" + formatCount(left) +
                                     " more errors)"));
    }
}
