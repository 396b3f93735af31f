"""The commands of a page of the manual, as its test runs them.

A page has these blocks, and a test runs those of a page in the order in which they stand, in one folder:

- ```console: after "$ " a command, which goes on in the next line where it ends in a backslash; below it,
  exactly what that prints on standard output. A line that is "..." stands for any lines, and "..." within
  a line for any text.
- ```sh: commands that end with exit code 0.
- ```bash: commands that install and build; they are the README's or a clone's.
- ```python: lines of a script of docs/examples that the page names.
- ```text, ```yaml, ```cpp: no commands.

What a block needs beside paceline stands behind its language: ```sh needs=torch. A block that no test can
run says why: ```sh not-run: it starts a job of Slurm. Its commands and options must be there nevertheless.
"""

import dataclasses
import re

LANGUAGES = ("console", "sh", "bash", "python", "text", "yaml", "cpp", "{toctree}")
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```[ \t]*$", re.M | re.S)


@dataclasses.dataclass(frozen=True)
class Block:
    line: int  # of the page, counted from 1: the first line of the text
    language: str
    needs: tuple
    text: str
    not_run: str = ""  # why no test runs it; empty where one does
    info: str = ""     # all that stands behind the fence


def blocks(page):
    found = []
    for match in FENCE.finditer(page):
        info, _, reason = match["info"].partition(" not-run:")
        language, _, needs = info.partition(" needs=")
        found.append(Block(page.count("\n", 0, match.start("text")) + 1, language.strip(), tuple(needs.strip().split(",")) if needs else (),
                           match["text"], reason.strip(), match["info"]))
    return found


def commands(block):
    """[(command, what it prints)] of a console block; an output may be empty."""
    found = []
    for line in block.text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].strip(), ""))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (found[-1][0].removesuffix("\\") + line.strip(), "")
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line)
        else:
            raise ValueError(f"line {block.line}: output without a command")
    return found


def spelled(text):
    """[(words, options)] of each call of paceline in the text of a shell or of prose: the words that may name a command and its
    subcommand, and the options. What stands for others (..., FILE) is left out."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.split(r"&&|;|\s\|\s", re.split(r"\s#\s", line)[0]):
            call = re.search(r"(?:^|\s)paceline\s+(.*)", part.strip())
            if call:
                words = call[1].split()
                found.append((tuple(word for word in words[:2] if re.fullmatch(r"[a-z][a-z-]*", word)), tuple(OPTION.findall(call[1]))))
    return found


def pattern(expected):
    """A regular expression of the texts that an output with "..." stands for."""
    lines = []
    for line in expected.splitlines():
        lines.append(r"(?:[^\n]*\n)*?" if line == "..." else "[^\n]*?".join(re.escape(part) for part in line.split("...")) + "\n")
    return re.compile("".join(lines))


def first_difference(expected, printed):
    """The first line of what was expected that the output does not have, for a message; None if there is none."""
    if pattern(expected).fullmatch(printed):
        return None
    lines = expected.splitlines(keepends=True)
    for count in range(1, len(lines) + 1):
        if not pattern("".join(lines[:count])).match(printed):
            return lines[count - 1].rstrip("\n")
    return "the end of the output"
