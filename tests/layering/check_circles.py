"""No two units of a folder need each other. A unit is a header with the source file of its name.

usage: check_circles.py SOURCE_DIR [FOLDER ...]    (by default models and simulator)

Prints each circle and exits with 1 if there is one.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def units(root, folders):
    """Of each unit, the units that its files include."""
    found = {}
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            unit = path.relative_to(root).with_suffix("").as_posix()
            for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
                found.setdefault(unit, set()).add(pathlib.PurePosixPath(name).with_suffix("").as_posix())
    return {unit: {n for n in needs if n in found and n != unit} for unit, needs in found.items()}


def circle_through(graph, start):
    """The units of a way from `start` back to it, or nothing."""
    ways = [[start]]
    seen = {start}
    while ways:
        way = ways.pop(0)
        for unit in sorted(graph[way[-1]]):
            if unit == start:
                return way
            if unit not in seen:
                seen.add(unit)
                ways.append([*way, unit])
    return None


def main():
    root = pathlib.Path(sys.argv[1])
    graph = units(root, sys.argv[2:] or ["models", "simulator"])
    circles = {}
    for unit in graph:
        way = circle_through(graph, unit)
        if way:
            circles[frozenset(way)] = way
    for way in circles.values():
        print(" -> ".join([*way, way[0]]))
    print(f"{len(graph)} units, {len(circles)} circles")
    sys.exit(1 if circles or not graph else 0)


main()
