# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of ka report, which the program ka writes, with the findings of the
job; and a plain page for a run of which there is neither VM nor journal."""
import html
import os
import subprocess
import tempfile

from . import Refused, clean

MOST_SECONDS = 900
PLAIN = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<title>ka: {title}</title></head>
<body><h1>{title}</h1>
{parts}
</body></html>
"""


def write(program, source, path, findings):
    """Let the program ka write the page of a journal or VM. SOURCE: its
    options; FINDINGS: the report as JSON. The program replaces the file."""
    with tempfile.TemporaryDirectory(prefix='ka-page.') as folder:
        name = os.path.join(folder, 'findings.json')
        with open(name, 'w', encoding='utf-8') as f:
            f.write(findings)
        done = subprocess.run(
            [program, *source, 'report', '--findings', name, '-o', path],
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, errors='replace', timeout=MOST_SECONDS,
            check=False)
    if done.returncode:
        raise Refused(done.stderr.strip().removeprefix('ka: ') or
                      f'ka report ended with status {done.returncode}')


def part(heading, text):
    return f'<h2>{html.escape(clean.line(heading))}</h2>\n' \
           f'<pre>{html.escape(clean.text(text))}</pre>\n'


def without_vm(report):
    """Return a page of a run that was not swept."""
    parts = [part(g.name, g.text) for g in report.failing]
    if report.problem:
        parts.append(part('The run is not complete', report.why))
    return PLAIN.format(title='findings' if report.failing else
                        'the run is not complete', parts=''.join(parts))
