/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The errors: cards with their stacks side by side. */

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

function errorCard(card, data) {
    const strings = data.strings, address = strings[card.address];
    const e = element("article", null, element("h3", strings[card.title]));
    const hashes = "fold " + strings[card.fold] + ", exact " +
        strings[card.exact] + (card.weak ? " (weak: a stack is not whole)" :
                               "");

    for (const alt of card.alt) {
        e.append(element("p", "also: " + strings[alt]));
    }
    e.append(element("p", strings[card.block]), ...stackBoxes(card, strings));
    e.append(element("p", hashes));
    if (address) {
        const commands = element("pre", data.command + " error " + address +
                                 " -l\n" + data.command + " show " + address +
                                 " -l\n");
        e.append(commands);
    }
    return e;
}

function fillErrors(data) {
    const left = data.errors - data.cards.length;

    byId("error-count").textContent = data.errors ?
        formatCount(data.errors) + " errors" : "No errors were found.";
    for (const card of data.cards) {
        byId("cards").append(errorCard(card, data));
    }
    if (left > 0) {
        byId("cards").append(element("p", "(" + formatCount(left) +
                                     " more errors)"));
    }
}
