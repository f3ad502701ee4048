/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page of ka report: one file that loads nothing.
 *
 *     head       a policy for the browser, the styles
 *     body       page/page.html, and in noscript the stacks with most bytes
 *     data       the JSON of report-data.h, packed; no script, so it does not
 *                run
 *     script     the scripts of page/, in the order of meson.build
 *
 * The policy (Content-Security-Policy) allows these styles and this script, by
 * their hashes, and no request. So the browser refuses to run markup that a
 * name of the guest would get into the page in spite of all escapes.
 */
#include "monitor-cmds/report/report-data.h"

#include <string.h>
#include <zlib.h>

#include "monitor-cmds/report/page-files.h"

/* ---- escapes ------------------------------------------------------------- */

static void put_html(GString *to, const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c < 0x20 || *c >= 0x7f || strchr("<>&\"'", *c)) {
            g_string_append_printf(to, "&#%u;", (unsigned char)*c);
        } else {
            g_string_append_c(to, *c);
        }
    }
}

static void put_element(GString *to, const char *name, const char *text)
{
    g_string_append_printf(to, "<%s>", name);
    put_html(to, text);
    g_string_append_printf(to, "</%s>", name);
}

static void put_number(GString *to, int64_t n)
{
    g_string_append_printf(to, "<td>%" PRId64 "</td>", n);
}

/* ---- without scripts ----------------------------------------------------- */

/* The frames of a stack, one a line, the leaf first. */
static void put_frames(GString *to, const McHeapProfile *p,
                       const McProfileStack *s)
{
    g_string_append(to, "<td class=\"frames\">");
    for (unsigned i = 0; i < s->n; i++) {
        g_autoptr(GString) name = g_string_new(NULL);
        unsigned id = g_array_index(p->path, unsigned, s->first + i);

        mc_put_frame(name, &g_array_index(p->frame, McProfileFrame, id),
                     MC_FRAMES_OFFSET);
        g_string_append(to, i ? "\n" : "");
        put_html(to, name->str);
    }
    g_string_append(to, "</td></tr>\n");
}

static void put_stacks(GString *to, const McHeapProfile *p)
{
    unsigned n = MIN(p->stack->len, MC_REPORT_PLAIN_ROWS);

    g_string_append_printf(to, "<h2>The first %u of %u stacks, by live bytes"
                           "</h2>\n<table><tr><th>live bytes</th><th>live "
                           "blocks</th><th>allocated bytes</th><th>allocations"
                           "</th><th>stack</th></tr>\n", n, p->stack->len);
    for (unsigned i = 0; i < n; i++) {
        const McProfileStack *s = &g_array_index(p->stack, McProfileStack, i);

        g_string_append(to, "<tr>");
        put_number(to, s->value[MC_TOP_live]);
        put_number(to, s->value[MC_TOP_blocks]);
        put_number(to, s->value[MC_TOP_reserved]);
        put_number(to, s->value[MC_TOP_allocs]);
        put_frames(to, p, s);
    }
    g_string_append(to, "</table>\n");
}

static void put_errors(GString *to, const McReport *r)
{
    unsigned n = MIN(r->card->len, MC_REPORT_PLAIN_ROWS);

    g_string_append_printf(to, "<h2>The first %u of %" PRIu64 " errors</h2>\n"
                           "<ul>", n, r->errors);
    for (unsigned i = 0; i < n; i++) {
        const McReportCard *c = &g_array_index(r->card, McReportCard, i);

        put_element(to, "li", mc_strings_text(r->strings, c->title));
    }
    g_string_append(to, "</ul>\n");
}

static void put_job(GString *to, const McReport *r)
{
    g_autofree char *summary = mc_job_summary(r);
    unsigned n = MIN(r->job->card->len, MC_REPORT_PLAIN_ROWS);

    put_element(to, "h2", summary);
    g_string_append(to, "<ul>");
    for (unsigned i = 0; i < n; i++) {
        const McJobCard *c = &g_array_index(r->job->card, McJobCard, i);

        put_element(to, "li", mc_strings_text(r->strings, c->name));
    }
    g_string_append(to, "</ul>\n");
}

static void put_plain(GString *to, const McReport *r)
{
    const McHeapProfile *p = r->profile;

    g_string_append(to, "<noscript>\n");
    put_element(to, "h1", r->source);
    put_element(to, "p", p->banner ? p->banner : "unknown kernel");
    g_string_append(to, "<ul>");
    for (unsigned i = 0; i < p->note->len; i++) {
        put_element(to, "li", p->note->pdata[i]);
    }
    g_string_append(to, "</ul>\n");
    if (r->job) {
        put_job(to, r);
    }
    put_errors(to, r);
    put_element(to, "p", mc_strings_text(r->strings, r->leaks->scan));
    put_stacks(to, p);
    g_string_append(to, "</noscript>\n");
}

/* ---- the page ------------------------------------------------------------ */

/* Append a source of the policy: the hash of an element's text. */
static void put_hash(GString *to, const char *kind, const char *text)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    guint8 digest[32];
    gsize len = sizeof(digest);
    g_autofree char *base64 = NULL;

    g_checksum_update(sum, (const guchar *)text, -1);
    g_checksum_get_digest(sum, digest, &len);
    base64 = g_base64_encode(digest, len);
    g_string_append_printf(to, "; %s 'sha256-%s'", kind, base64);
}

static void put_head(GString *to, const McReport *r, const char *script)
{
    g_string_append(to, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
                    "<meta charset=\"utf-8\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" "
                    "content=\"default-src 'none'");
    put_hash(to, "style-src", mc_page_style);
    put_hash(to, "script-src", script);
    g_string_append(to, "\">\n<meta name=\"viewport\" "
                    "content=\"width=device-width\">\n<title>ka: ");
    put_html(to, r->source);
    g_string_append_printf(to, "</title>\n<style>%s</style>\n</head>\n<body>\n",
                           mc_page_style);
}

/* Append the data: JSON, packed with zlib, in base64. */
static void put_data(GString *to, McReport *r)
{
    g_autoptr(GString) json = g_string_new(NULL);
    g_autofree guchar *packed = NULL;
    g_autofree char *text = NULL;
    uLongf n;
    int rc;

    mc_put_report_json(json, r);
    n = compressBound(json->len);
    packed = g_malloc(n);
    rc = compress2(packed, &n, (const Bytef *)json->str, json->len, 9);
    g_assert(rc == Z_OK);       /* it fails only without memory */
    text = g_base64_encode(packed, n);
    g_string_append_printf(to, "<script type=\"application/octet-stream\" "
                           "id=\"data\">%s</script>\n", text);
}

void mc_write_report(McReport *r, FILE *to)
{
    g_autofree char *script = g_strjoinv("", (char **)mc_page_scripts);
    g_autoptr(GString) page = g_string_new(NULL);

    put_head(page, r, script);
    g_string_append(page, mc_page_body);
    put_plain(page, r);
    put_data(page, r);
    g_string_append_printf(page, "<script>%s</script>\n</body>\n</html>\n",
                           script);
    fwrite(page->str, 1, page->len, to);
}
