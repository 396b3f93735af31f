#!/usr/bin/env python3
"""Lists comments that start like a fragment of a sentence, for a person to judge. Not a test: a few of
them ("Of the two samples the later is the longer.") are whole sentences.

    list_fragments.py [FOLDER ...]    (default: all tracked sources)

Prints file, line and text of each, and how many comments were read.
"""

import re
import subprocess
import sys

FRAGMENT = re.compile(r"(Of|That which|That one|Those of|Those that|In place of|And|Or)\b")
PATTERNS = ("*.h", "*.cc", "*.py", "*.cmake", "CMakeLists.txt", "*.sh")


def comments(file):
    """Yields the line number and the first line of each block of comment lines."""
    mark = "//" if file.endswith((".h", ".cc")) else "#"
    is_inside = False
    with open(file, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            text = line.strip()
            is_comment = text.startswith(mark) and not text.startswith("#!")
            if is_comment and not is_inside:
                yield number, text.lstrip(mark).strip()
            is_inside = is_comment


def main():
    listed = subprocess.run(["git", "ls-files", "--", *PATTERNS], check=True, capture_output=True, text=True)
    folders = tuple(sys.argv[1:])
    read = found = 0
    for file in listed.stdout.split():
        if folders and not file.startswith(folders):
            continue
        for number, text in comments(file):
            read += 1
            if FRAGMENT.match(text):
                found += 1
                print(f"{file}:{number}: {text}")
    print(f"{found} of {read} comments start like a fragment")


if __name__ == "__main__":
    main()
