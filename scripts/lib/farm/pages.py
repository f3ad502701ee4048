# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a batch as a folder of HTML files: index.html, and a page for
each bug. There is no script in them, and nothing is fetched. Each text from a
result goes through esc(); names of files are made of hashes.
"""
import html
import os

from . import texts

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
pre {{ background: #f4f4f4; padding: .7em; overflow-x: auto }}
.new, .first {{ background: #fdd }} .flaky {{ background: #fec }}
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
            + (' (weak)' if row.bug.weak else '') + '</td>'
        cells = [cell(f'{row.states[k]} {row.rates[k][0]}/{row.rates[k][1]}'
                      if row.states[k] else '', row.states[k])
                 for k in view.kernels]
        rows.append([link, cell(order[rank]), *cells, cell(row.first),
                     cell(row.last)])
    if not rows:
        return '<p>No bugs.</p>'
    return table(['bug', 'state', *view.kernels, 'first', 'last'], rows)


def runs_table(view):
    rows = [[cell(k), *(count(row.get(v, 0)) for v in texts.VERDICTS)]
            for k, row in view.count().items()]
    return table(['kernel', *texts.VERDICTS], rows)


def notes(view):
    lines = [line for line in texts.run_lines(view)
             if 'no result' in line or line.startswith('broken: ')]
    return '<pre>' + esc('\n'.join(lines)) + '</pre>' if lines else ''


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
                runs_table(view), notes(view), '<h2>Bugs</h2>',
                bug_matrix(view), '<h2>Trend</h2>', trend_table(view),
                '<h2>Live bytes that grew</h2>',
                growth_table(view, texts.frames_of(view)))


# --- a bug -------------------------------------------------------------------

MOST_RUNS = 200


def bug_page(view, row):
    bug = row.bug
    sample = view.store.rows(
        'SELECT text FROM sample WHERE fold = ? AND exact = ?', *bug.sample)
    runs = sorted((view.runs[k] for k in bug.runs),
                  key=lambda r: (r.batch, r.kernel, r.job, r.seed),
                  reverse=True)
    rows = [[cell(r.batch), cell(r.kernel), cell(r.release), cell(r.arch),
             cell(r.job), count(r.seed), cell(f'{r.key}.{r.attempt}')]
            for r in runs[:MOST_RUNS]]
    more = len(runs) - len(rows)
    return page(bug.title, '<p><a href="index.html">all bugs</a></p>',
                f'<p>Bug {esc(bug.name)}. First seen in {esc(row.first)}, '
                f'last in {esc(row.last)}, in {len(runs)} runs.</p>',
                '<h2>An example</h2>',
                f"<pre>{esc(sample[0][0] if sample else '')}</pre>",
                '<h2>Its titles and hashes</h2>',
                '<pre>' + esc('\n'.join(sorted(bug.titles) +
                                        sorted(bug.folds))) + '</pre>',
                '<h2>Its runs</h2>',
                table(['batch', 'kernel', 'release', 'architecture', 'job',
                       'seed', 'result'], rows),
                f'<p>{more} older runs are left out.</p>' if more else '')


def write(view, folder):
    """Write all pages, and report.txt."""
    os.makedirs(folder, exist_ok=True)
    files = {'index.html': index(view), 'report.txt': texts.render(view)}
    for row in view.rows:
        files[bug_file(row.bug)] = bug_page(view, row)
    for name, text in files.items():
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as f:
            f.write(text)
