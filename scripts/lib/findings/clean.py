# SPDX-License-Identifier: GPL-2.0-or-later
"""Text that is safe in a report. A guest chooses the names of its tasks,
modules and caches, and a report must not become another one by a name."""

MOST_LINE = 300         # characters of a title or name
MOST_TEXT = 16384       # characters of a text of several lines


def visible(c):
    """Return a character, or its number if it cannot be printed: control
    characters, halves of pairs, marks of direction. XML 1.0 allows all that
    are returned as they are."""
    if c.isprintable():
        return c
    return f'\\x{ord(c):02x}' if ord(c) < 0x100 else f'\\u{ord(c):04x}'


def cut(text, most):
    more = len(text) - most
    return text if more <= 0 else f'{text[:most]}... ({more} more characters)'


def line(text, most=MOST_LINE):
    """Return one line; bytes that cannot be printed as \\xNN."""
    if isinstance(text, bytes):
        text = text.decode('utf-8', 'backslashreplace')
    return cut(''.join(map(visible, text)), most)


def text(lines, most=MOST_TEXT):
    """Return a text whose lines end as they did, at most so many characters."""
    return cut('\n'.join(line(part, most) for part in lines.split('\n')), most)
