#!/usr/bin/env python3
"""The inputs that fuzz targets replay: an archive for each target, corpus/TARGET.tar.gz.

    corpus.py list TARGET            names and sizes
    corpus.py extract TARGET FOLDER  writes the inputs into a folder, which a fuzzer takes and adds to
    corpus.py add TARGET FILE...     adds inputs under their names, but for those that are there already
    corpus.py remove TARGET NAME...  takes inputs out

The same inputs make the same archive, to the byte. What a fuzzer found is called found-WHAT.
"""

import gzip
import io
import pathlib
import sys
import tarfile

CORPUS = pathlib.Path(__file__).parent / "corpus"


def archive_of(target):
    path = CORPUS / f"{target}.tar.gz"
    if not path.exists():
        sys.exit(f"corpus.py: there is no target {target!r}; known: " + ", ".join(sorted(p.name.split(".")[0] for p in CORPUS.glob("*.tar.gz"))))
    return path


def read(target):
    with tarfile.open(archive_of(target)) as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive}


def write(target, inputs):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(inputs.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    (CORPUS / f"{target}.tar.gz").write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def main(command, target, *words):
    inputs = read(target)
    if command == "list" and not words:
        for name, data in inputs.items():
            print(f"{len(data):9} {name}")
    elif command == "extract" and len(words) == 1:
        folder = pathlib.Path(words[0])
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in inputs.items():
            (folder / name).write_bytes(data)
    elif command == "add" and words:
        known = set(inputs.values())
        for path in map(pathlib.Path, words):
            if (data := path.read_bytes()) not in known:
                inputs[path.name] = data
                known.add(data)
        write(target, inputs)
    elif command == "remove" and words:
        for name in words:
            if inputs.pop(name, None) is None:
                sys.exit(f"corpus.py: {target} has no input {name!r}")
        write(target, inputs)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) > 2 else sys.exit(__doc__)
