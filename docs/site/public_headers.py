"""The public headers of models/ and simulator/, by room, each with what its first comment says.

    python3 docs/site/public_headers.py     # as Markdown, with links from docs/
"""

import pathlib

MARK = "<!-- the headers -->"
LIBRARIES = ("models", "simulator")


def first_paragraph(text):
    """The first paragraph of the comment that a header opens with."""
    lines = []
    for line in text.splitlines():
        words = line.removeprefix("//").strip()
        if not line.startswith("//") or not words:
            break
        lines.append(words)
    return " ".join(lines)


def rooms(root):
    """{room: [(path, first paragraph)]}, each in the order of names."""
    found = {}
    for library in LIBRARIES:
        for path in sorted((root / library).rglob("*.h")):
            paragraph = first_paragraph(path.read_text())
            found.setdefault(path.parent.relative_to(root).as_posix(), []).append((path.relative_to(root).as_posix(), paragraph))
    return dict(sorted(found.items()))


def escaped(text):
    """As the text of a Markdown table; what stands between backticks is code already."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        for character in "\\*_<>[]$":
            parts[index] = parts[index].replace(character, "\\" + character)
    return "`".join(parts).replace("|", "\\|")


def as_markdown(root):
    lines = []
    for room, headers in rooms(root).items():
        lines += [f"## {room}", "", "| header | what it says first |", "|---|---|"]
        lines += [f"| [{pathlib.PurePath(path).name}](../{path}) | {escaped(paragraph)} |" for path, paragraph in headers]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(as_markdown(pathlib.Path(__file__).resolve().parents[2]))
