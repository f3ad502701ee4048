# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a batch as a folder of HTML files: index.html, a page for each
bug and each broken run, and in runs/ what was kept of them (kept.py). There is
no script in them, and nothing is fetched. Each text from a result goes through
esc(); names of files are made of hashes.
"""
import html
import os
import re

from . import kept, texts

HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title><style>
body {{ font: 15px/1.45 sans-serif; margin: 1.5em auto; max-width: 70em;
 padding: 0 1em; color: #222; background: #fff }}
table {{ border-collapse: collapse; margin: .5em 0 1.5em }}
td, th {{ text-align: left; padding: .2em .7em; border-bottom: 1px solid #ddd;
 vertical-align: top; overflow-wrap: anywhere }}
td.n {{ text-align: right; font-variant-numeric: tabular-nums }}
pre {{ background: #f4f4f4; padding: .7em; white-space: pre-wrap;
 overflow-wrap: anywhere }}
.new, .first, .broken {{ background: #fdd }} .flaky {{ background: #fec }}
.gone {{ background: #dfd }} .maybe {{ background: #eee }}
svg {{ vertical-align: middle }}
</style></head><body>
<h1>{title}</h1>
"""
END = '</body></html>\n'
WIDTH, HEIGHT = 140, 28


def esc(value):
    return html.escape(str(value))


def page(title, *parts):
    return HEAD.format(title=esc(title)) + '\n'.join(parts) + '\n' + END


def table(heads, rows):
    """rows: of cells that are HTML already."""
    head = ''.join(f'<th>{esc(h)}</th>' for h in heads)
    body = '\n'.join('<tr>' + ''.join(r) + '</tr>' for r in rows)
    return f'<table><tr>{head}</tr>\n{body}</table>'


def cell(value, kind=''):
    return f'<td class="{kind}">{esc(value)}</td>' if kind else \
        f'<td>{esc(value)}</td>'


def count(value):
    return cell('-' if value is None else f'{value:,}', 'n')


def line_chart(values, label):
    """A line through values, the oldest first; None is a gap."""
    known = [v for v in values if v is not None]
    if len(known) < 2:
        return ''
    low, span = min(known), max(max(known) - min(known), 1)
    step = WIDTH / max(len(values) - 1, 1)
    points = ' '.join(
        f'{i * step:.1f},{HEIGHT - 3 - (v - low) * (HEIGHT - 6) / span:.1f}'
        for i, v in enumerate(values) if v is not None)
    return f'<svg width="{WIDTH}" height="{HEIGHT}" role="img">' \
        f'<title>{esc(label)}: {min(known):,} to {max(known):,}</title>' \
        f'<polyline points="{points}" fill="none" stroke="#36c" ' \
        'stroke-width="1.5"/></svg>'


# --- index -------------------------------------------------------------------

def bug_file(bug):
    return f'bug-{bug.name}.html'


def bug_matrix(view):
    rows = []
    order = [s for s, _ in texts.SECTIONS]
    ranked = [(min((order.index(s) for s in row.states.values() if s),
                   default=None), row) for row in view.rows]
    for rank, row in sorted(((r, x) for r, x in ranked if r is not None),
                            key=lambda pair: pair[0]):
        link = f'<td><a href="{bug_file(row.bug)}">{esc(row.bug.title)}</a>' \
            + (' (weak)' if row.bug.weak else '') + \
            esc(texts.place(view, row.bug)) + '</td>'
        cells = [cell(f'{row.states[k]} {row.rates[k][0]}/{row.rates[k][1]}'
                      if row.states[k] else '', row.states[k])
                 for k in view.kernels]
        rows.append([link, cell(row.bug.name), cell(order[rank]), *cells,
                     cell(row.first), cell(row.last)])
    if not rows:
        return '<p>No bugs.</p>'
    return table(['bug', 'name', 'state', *view.kernels, 'first', 'last'], rows)


def runs_table(view):
    rows = [[cell(k), *(cell(row.get(v, 0), v if row.get(v) else 'n')
                        for v in texts.VERDICTS)]
            for k, row in view.count().items()]
    return table(['kernel', *texts.VERDICTS], rows)


def broken_table(view):
    """The runs that are not complete, each with a page."""
    runs = view.broken()
    rows = [[f'<td><a href="{run_file(r)}">{esc(r.job)}</a></td>',
             cell(r.kernel), count(r.seed), cell(r.reason)]
            for r in runs[:MOST_RUNS]]
    more = len(runs) - len(rows)
    return (table(['broken', 'kernel', 'seed', 'why'], rows) if rows else '') \
        + (f'<p>{more} more broken runs are in report.txt.</p>' if more else
           '') + (f'<p>{view.missing()} VMs have no result.</p>'
                  if view.missing() else '')


def trend_table(view):
    rows = []
    for kernel, points in view.trend().items():
        for number, name in ((4, 'bugs'), (3, 'runs with findings'),
                             (2, 'broken runs'), (5, 'live bytes, median')):
            values = [p[number] if p[1] else None for p in points]
            rows.append([cell(kernel), cell(name),
                         '<td>' + line_chart(values, name) + '</td>',
                         count(values[-1])])
    return table(['kernel', 'what', f'{len(view.before) + 1} batches', 'now'],
                 rows)


def growth_table(view, frames):
    found = view.growth()
    if not found:
        return '<p>No stack grew.</p>'
    rows = [[count(grew), count(was), count(now), cell(kernel), cell(job),
             cell(frames.get(fold, '').replace('\n', ' '))]
            for grew, was, now, kernel, job, fold
            in found[:texts.MOST_GROWTH]]
    more = len(found) - len(rows)
    return table(['grew', 'before', 'now', 'kernel', 'job', 'stack'], rows) + \
        (f'<p>{more} more are left out, together '
         f'{sum(f[0] for f in found[len(rows):]):,} bytes.</p>'
         if more else '')


def index(view):
    before = f'Compared with {len(view.before)} batches before' + \
        (f', the last one {view.before[-1]}.' if view.before else '.')
    return page(f'ka: batch {view.batch}', f'<p>{esc(before)}</p>',
                runs_table(view), broken_table(view), '<h2>Bugs</h2>',
                bug_matrix(view), '<h2>Trend</h2>', trend_table(view),
                '<h2>Live bytes that grew</h2>',
                growth_table(view, texts.frames_of(view)))


# --- a run -------------------------------------------------------------------

MOST_RUNS = 200         # rows of a table
MOST_KEPT = 5           # runs of a bug whose consoles are in the report
JOURNAL = 'To ask the journal: zstd -d FILE.journal.zst, then ' \
    'ka -f FILE.journal error, ka -f FILE.journal show ADDRESS and so on.'


def run_file(run):
    return f'run-{run.key}.{run.attempt}.html'


def links(copies, run, *kinds):
    """Links to what was kept of a run, or why it is missing."""
    found = copies.of(run, *kinds)
    parts = [esc(why) if why else
             f'<a href="{link}">{esc(what)}</a> ({size:,} bytes packed)'
             for what, link, size, why in found]
    return '; '.join(parts) or 'nothing was kept'


def run_parts(view, run, copies):
    """What is known of one run, and how to repeat it."""
    detail, warnings, line = view.about(run)
    kept = links(copies, run)
    return [
        runs_list([run], None),
        f'<p>Not complete: {esc(run.reason)}</p>' if run.reason else '',
        f'<pre>{esc(detail)}</pre>' if detail else '',
        f'<pre>{esc(warnings)}</pre>' if warnings else '',
        f'<p>Kept: {kept}.</p>',
        f'<p>{esc(JOURNAL)}</p>' if '.journal.zst"' in kept else '',
        '<h2>To run it again</h2>',
        f'<pre>{esc(texts.repeat(line))}</pre>']


def runs_list(runs, copies):
    """A table of runs; with links to the consoles of the first ones."""
    heads = ['batch', 'kernel', 'release', 'architecture', 'job', 'seed',
             'verdict', 'result'] + (['kept'] if copies else [])
    rows = []
    for number, r in enumerate(runs[:MOST_RUNS]):
        kept = links(copies, r, ['.log.zst']) if copies and \
            number < MOST_KEPT else ''
        rows.append([cell(r.batch), cell(r.kernel), cell(r.release),
                     cell(r.arch), cell(r.job), count(r.seed),
                     cell(r.verdict), cell(f'{r.key}.{r.attempt}'),
                     *([f'<td>{kept}</td>'] if copies else [])])
    more = len(runs) - len(rows)
    return table(heads, rows) + \
        (f'<p>{more} older runs are left out.</p>' if more > 0 else '')


def run_page(view, run, copies):
    """The page of a run that is broken."""
    return page(f'{run.verdict}: {run.job} {run.kernel} seed {run.seed}',
                '<p><a href="index.html">all bugs</a></p>',
                *run_parts(view, run, copies))


# --- a bug -------------------------------------------------------------------

def bug_page(view, row, copies):
    bug = row.bug
    text, example = view.sample(bug)
    runs = sorted((view.runs[k] for k in bug.runs),
                  key=lambda r: (r.batch, r.kernel, r.job, r.seed),
                  reverse=True)
    return page(bug.title, '<p><a href="index.html">all bugs</a></p>',
                f'<p>Bug {esc(bug.name)}. First seen in {esc(row.first)}, '
                f'last in {esc(row.last)}, in {len(runs)} runs.</p>',
                '<h2>An example</h2>', f'<pre>{esc(text)}</pre>',
                *(['<h2>Its run</h2>', *run_parts(view, example, copies)]
                  if example else []),
                '<h2>Its titles and hashes</h2>',
                '<pre>' + esc('\n'.join(sorted(bug.titles) +
                                        sorted(bug.folds))) + '</pre>',
                '<h2>Its runs</h2>', runs_list(runs, copies))


# --- all ---------------------------------------------------------------------

OURS = re.compile(r'(bug|run)-[0-9a-f.-]+\.html')


def write(view, folder):
    """Write all pages, report.txt, and copies of what was kept. Remove pages
    of older reports that are none of this one."""
    copies = kept.Copies(view.store, folder)
    files = {'index.html': index(view), 'report.txt': texts.render(view)}
    for row in view.rows:
        files[bug_file(row.bug)] = bug_page(view, row, copies)
    for run in view.broken()[:MOST_RUNS]:
        files[run_file(run)] = run_page(view, run, copies)
    for name, text in files.items():
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as f:
            f.write(text)
    copies.remove_others()
    for name in os.listdir(folder):
        if name not in files and OURS.fullmatch(name):
            os.unlink(os.path.join(folder, name))
