"""What Debian's Furo (2022.12.07) needs to work from disk and in the dark, written into a built site.

Its style sheet was compiled by another compiler than its author's, which left out the query for the
system's colours; it imports another one from the root of a web server; and its script imports a script
as only modules may. A Furo without these faults is left as it is.
"""

import pathlib
import re

NORMALIZE = pathlib.Path("/usr/share/nodejs/normalize.css/normalize.css")


def as_the_system_says(style):
    """The dark colours again, for a system that is dark and a reader who has chosen nothing."""
    colours = re.search(r'body\[data-theme="dark"\] (\{[^}]*\})', style)
    if "prefers-color-scheme" in style or not colours:
        return style
    return f'{style}\n@media not print {{ @media (prefers-color-scheme: dark) {{ body:not([data-theme="light"]) {colours[1]} }} }}\n'


def repair(static):
    style, script = static / "styles/furo.css", static / "scripts/furo.js"
    for file, line, other in ((style, "@import url(/javascript/normalize.css/normalize.css);", NORMALIZE),
                              (script, 'import Gumshoe from "./gumshoe-patched.js";', static / "scripts/gumshoe-patched.js")):
        text = file.read_text(encoding="utf-8")
        if line in text:
            file.write_text(text.replace(line, other.read_text(encoding="utf-8")), encoding="utf-8")
    style.write_text(as_the_system_says(style.read_text(encoding="utf-8")), encoding="utf-8")
