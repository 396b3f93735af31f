#!/usr/bin/env python3
"""Holds every #include of the libraries and of the command against the order of the house.

    check_includes.py ROOT [HOUSE]

ROOT is a source tree, HOUSE the order (default: house.json beside this file). The order says which
folders, and which rooms inside a folder, a file may include from; which headers are private to units;
and which units may include which library. No two units (a header with the source file of its name)
need each other. Every violation is one line on stdout, and the exit code is
then 1.
"""

import fnmatch
import json
import pathlib
import re
import sys

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
SUFFIXES = {".h", ".cc", ".cu", ".cuh"}


def room_of(path, rooms):
    """Returns the longest room that the path lies in, or None where its folder is not divided."""
    parts = path.split("/")
    for length in range(len(parts) - 1, 0, -1):
        if (room := "/".join(parts[:length])) in rooms:
            return room
    return None


def circle_in(graph):
    """Returns names that lead from one back to itself, or None."""
    done, way = set(), []

    def visit(name):
        if name in way:
            return way[way.index(name):] + [name]
        if name in done:
            return None
        way.append(name)
        for other in sorted(graph.get(name, [])):
            if circle := visit(other):
                return circle
        way.pop()
        done.add(name)
        return None

    for name in graph:
        if circle := visit(name):
            return circle
    return None


class House:
    def __init__(self, root, order):
        self.root, self.order = root, order
        self.folders, self.rooms = order["folders"], order["rooms"]
        self.divided = {room.split("/")[0] for room in self.rooms}
        self.violations, self.used_exceptions = [], set()
        self.units = {}  # the units that each includes

    def say(self, line):
        self.violations.append(line)

    def is_private(self, file):
        return any(fnmatch.fnmatch(file, pattern) for pattern in self.order["private_headers"])

    def excepted(self, unit, target):
        exception = (unit, target)
        if any((e["file"], e["may_include"]) == exception for e in self.order["exceptions"]):
            self.used_exceptions.add(exception)
            return True
        return False

    def check(self):
        for kind, graph in (("folders", self.folders), ("rooms", self.rooms)):
            if circle := circle_in(graph):
                self.say(f"{kind} of house.json stand in a circle: {' -> '.join(circle)}")
        files = [path for folder in self.folders if "/" not in folder
                 for path in sorted((self.root / folder).rglob("*")) if path.suffix in SUFFIXES]
        if not files:
            self.say(f"there is no source file under {self.root}")
        for path in files:
            self.check_file(path)
        if circle := circle_in(self.units):
            self.say(f"units include each other in a circle: {' -> '.join(circle)}")
        for exception in self.order["exceptions"]:
            if (exception["file"], exception["may_include"]) not in self.used_exceptions:
                self.say(f"house.json excepts {exception['file']} for {exception['may_include']}, "
                         "which nothing uses any more: remove the exception")
        return len(files)

    def check_file(self, path):
        file = path.relative_to(self.root).as_posix()
        folder = file.split("/")[0]
        if folder in self.divided and (room := room_of(file, self.rooms)) in (None, folder) \
                and len(file.split("/")) > 2:
            self.say(f"{file} is in no room of house.json: add the room {file.rsplit('/', 1)[0]}")
            return
        includes = INCLUDE.findall(path.read_text(encoding="utf-8"))
        own = path.with_suffix(".h")
        if path.suffix == ".cc" and own.exists():
            own = own.relative_to(self.root).as_posix()
            if not includes or includes[0][0] != own:
                self.say(f'{file} does not include "{own}" first: only so is it seen to compile alone')
        for quoted, angled in includes:
            if quoted:
                self.check_ours(file, folder, quoted)
            else:
                self.check_others(file, folder, angled)

    def check_ours(self, file, folder, target):
        if not (self.root / target).exists():
            if not (self.root / (target.rsplit(".pb.h", 1)[0] + ".proto")).exists():
                self.say(f'{file} includes "{target}", which is not under the root of the sources')
            return
        unit, target_unit = file.rsplit(".", 1)[0], target.rsplit(".", 1)[0]
        if unit != target_unit and folder in self.order["folders_without_circles"] \
                and not self.excepted(unit, target_unit):
            self.units.setdefault(unit, set()).add(target_unit)
        target_folder = target.split("/")[0]
        room = room_of(file, self.folders)  # a room may be narrower than its folder
        if target_folder != folder and target_folder not in self.folders[room]:
            self.say(f'{file} includes "{target}": {room} may include '
                     f"{' and '.join(self.folders[room]) or 'no other folder'}")
        elif target_folder == folder and folder in self.divided:
            self.check_room(file, target)
        if file.endswith(".h") and self.is_private(target) and not self.is_private(file):
            self.say(f'{file} includes "{target}", which is private to .cc files')

    def check_room(self, file, target):
        room, target_room = room_of(file, self.rooms), room_of(target, self.rooms)
        if target_room == room or target_room in self.rooms.get(room, []):
            return
        if self.excepted(file.rsplit(".", 1)[0], target_room):
            return
        self.say(f'{file} includes "{target}": the room {room} may include '
                 f"{' and '.join(self.rooms.get(room, [])) or 'no other room'}")

    def check_others(self, file, folder, header):
        for library, places in self.order["libraries"].items():
            if header.startswith(library) and not file.startswith(tuple(places)) \
                    and "/lab/" not in file:
                self.say(f"{file} includes <{header}>, which only {' and '.join(places)} may")
                return
        # What the standard library calls its headers has neither a dot nor a slash.
        if file.endswith(".h") and (folder != "cli" or "/job/" in file) and re.search(r"[./]", header) \
                and not self.is_private(file) and header not in self.order["system_headers"]:
            self.say(f"{file} includes <{header}>: a public header shows no library but the standard one")


def main():
    root = pathlib.Path(sys.argv[1])
    order = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path(__file__).with_name("house.json")
    house = House(root, json.loads(order.read_text(encoding="utf-8")))
    count = house.check()
    for line in house.violations:
        print(f"layering: {line}")
    if not house.violations:
        print(f"layering: {count} files are in order")
    return 1 if house.violations else 0


if __name__ == "__main__":
    sys.exit(main())
