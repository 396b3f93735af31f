#!/usr/bin/env python3
"""Counts the lines of C++ and CUDA of each room, and holds them against its budget.

    check_lines.py ROOT [BUDGETS]

BUDGETS (default: budgets.json beside this file) has the lines of each room at the last release and the
most that it may have. Every room is a line on stdout, with its balance since the release. A room that
is over its budget, that has no budget or that is gone is a line that begins with "lines:", and the exit
code is then 1: make the room smaller, or raise its budget on purpose.
"""

import json
import pathlib
import sys

SUFFIXES = {".h", ".cc", ".cu", ".cuh"}


def counted(root, rooms):
    """The lines of each room without those of rooms inside it; of folders without a budget, by their path."""
    lines = dict.fromkeys(rooms, 0)
    for folder in sorted({room.split("/")[0] for room in rooms}):
        for path in (root / folder).rglob("*"):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            parts = path.relative_to(root).parts[:-1]
            inside = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
            room = next((name for name in inside if name in rooms), inside[-1])
            lines[room] = lines.get(room, 0) + path.read_text(errors="replace").count("\n")
    return lines


def complaints(lines, budgets):
    for room, count in lines.items():
        if room not in budgets:
            yield f"{room} has no budget: give it one in budgets.json"
        elif count == 0:
            yield f"{room} has no line: take it out of budgets.json"
        elif count > budgets[room]["most"]:
            yield (f"{room} has {count} lines, {count - budgets[room]['most']} more than its budget: make it smaller, "
                   "or raise the budget in budgets.json and say why in the commit")


def main(root, budgets_file):
    budgets = json.loads(budgets_file.read_text())["rooms"]
    lines = counted(root, budgets)
    for room, count in lines.items():
        released = budgets.get(room, {}).get("released", 0)
        print(f"{room:32} {count:7} {count - released:+7}")
    print(f"{'all':32} {sum(lines.values()):7} {sum(lines.values()) - sum(room['released'] for room in budgets.values()):+7}")
    found = list(complaints(lines, budgets))
    for line in found:
        print("lines:", line)
    return 1 if found else 0


if __name__ == "__main__":
    here = pathlib.Path(__file__).parent
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else here / "budgets.json"))
