/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leaks: groups of blocks of one stack, of the last scan and of modules. */

/* Return a text such as "3 blocks, 1.5 KiB; 2 more that only these hold". */
function groupSize(group) {
    return formatCount(group.blocks) +
        (group.blocks === 1 ? " block" : " blocks") +
        (group.bytes === undefined ? "" :
         ", " + formatBytes(group.bytes) + " requested") +
        (group.held ? "; " + formatCount(group.held) +
         " more that only " + (group.blocks === 1 ? "it holds" : "these hold") :
         "");
}

function leakGroup(group, data, id) {
    const strings = data.strings, address = strings[group.address];
    const title = strings[group.title] || "blocks of one stack";
    const e = element("article", null, element("h4", title));

    e.className = group.title && strings[group.title] ? "leak" : "left";
    makeTarget(e, id);
    e.append(placeLinks(linkTo(id + "-block", "block"),
                        ...(group.frames ? [linkTo(id + "-stack", "stack")] :
                            []), linkTo("map-part", "heap map")),
             element("p", groupSize(group)),
             element("p", strings[group.state]),
             makeTarget(element("p", "newest: " + strings[group.block]),
                        id + "-block"));
    if (group.frames) {
        const list = element("ol");

        for (const frame of group.frames) {
            list.append(element("li", strings[frame]));
        }
        e.append(element("p", strings[group.when]),
                 makeTarget(list, id + "-stack"));
    }
    if (strings[group.fold]) {
        e.append(hashLine(group, strings));
    }
    e.append(element("pre", data.command + " show " + address + " -l\n" +
                     (data.command.startsWith("ka -q") ?
                      data.command + " refs " + address + "\n" : "")));
    return e;
}

/* Return the sums of a module's report as a text. */
function moduleSums(m) {
    const parts = [formatCount(m.blocks) + " blocks, " + formatBytes(m.bytes) +
                   " not freed"];

    if (m.leaked !== undefined) {
        parts.push(formatCount(m.leaked) + " of them leaked (" +
                   formatBytes(m.leaked_bytes) + ")",
                   formatCount(m.kept) + " still in use (" +
                   formatBytes(m.kept_bytes) + ")");
    }
    for (const [key, text] of [["withdrawn", "freed since the unload"],
                               ["bad_frees", "frees of addresses that were " +
                                "not allocated"],
                               ["unsure", "may have been freed unseen"],
                               ["not_listed", "only counted"]]) {
        if (m[key]) {
            parts.push(formatCount(m[key]) + " " + text);
        }
    }
    return "unloaded at " + formatCount(m.unloaded_us) + " us: " +
        parts.join("; ");
}

function fillLeaks(data) {
    const box = byId("leaks"), leaks = data.leaks;
    const add = module => {
        leaks.groups.forEach((g, i) => {
            if (g.module === module) {
                box.append(leakGroup(g, data, "leak-" + i));
            }
        });
    };

    byId("leak-scan").textContent = data.strings[leaks.scan];
    add(0);
    leaks.modules.forEach((m, i) => {
        box.append(element("h3", "module " + data.strings[m.name]),
                   element("p", moduleSums(m)));
        add(i + 1);
    });
    if (!leaks.modules.length) {
        box.append(element("p", "No module was unloaded."));
    }
    if (leaks.more) {
        box.append(element("p", "(" + formatCount(leaks.more) +
                           " more groups)"));
    }
}
