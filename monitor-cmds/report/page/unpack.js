/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The data of the page: JSON, packed with zlib, in base64. */

/* Return a promise of the object. */
async function unpack(base64) {
    const bytes = Uint8Array.from(atob(base64), c => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(
        new DecompressionStream("deflate"));

    return JSON.parse(await new Response(stream).text());
}

/* Say why the page cannot be shown. */
function showBroken(error) {
    byId("broken").textContent = typeof DecompressionStream === "undefined" ?
        "This page needs Chromium 80, Firefox 113, Safari 16.4 or newer." :
        "This page cannot be shown: " + error;
    byId("broken").hidden = false;
    console.error(error);
}
