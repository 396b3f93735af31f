#!/usr/bin/env python3
"""Writes the wheel of the package that the build made.

    write_wheel.py --version 0.1.0 --package BUILD/python/paceline --source TREE --out FOLDER

A wheel is a zip with a folder of metadata (the specification "Binary distribution format" of
packaging.python.org), so that it needs none of the tools that Debian does not have. The same package
makes the same bytes.
"""

import argparse
import base64
import hashlib
import pathlib
import sys
import sysconfig
import zipfile

METADATA = """\
Metadata-Version: 2.1
Name: paceline
Version: {version}
Summary: Predicts, tunes and runs the all-reduce plan of data-parallel training
License: Apache-2.0
License-File: LICENSE
License-File: NOTICE
Requires-Python: >=3.11
Requires-Dist: numpy
Provides-Extra: torch
Requires-Dist: torch; extra == "torch"
Provides-Extra: onnx
Requires-Dist: onnx; extra == "onnx"
Provides-Extra: chakra
Requires-Dist: protobuf; extra == "chakra"
"""

WHEEL = """\
Wheel-Version: 1.0
Generator: paceline
Root-Is-Purelib: false
Tag: {tag}
"""


def tag():
    """Returns the tag of this interpreter on this platform: the libraries of Debian that the module
    needs are not in the wheel, so that it is of this platform and no other."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{python}-{python}-{platform}"


def entries(package, source, version):
    """Yields the name and the bytes of each file but the record."""
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"paceline/{path.relative_to(package)}", path.read_bytes()
    info = f"paceline-{version}.dist-info"
    yield f"{info}/METADATA", METADATA.format(version=version).encode()
    yield f"{info}/WHEEL", WHEEL.format(tag=tag()).encode()
    for name in ("LICENSE", "NOTICE"):
        yield f"{info}/licenses/{name}", (source / name).read_bytes()


def write_wheel(package, source, version, out):
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"paceline-{version}-{tag()}.whl"
    unfinished = wheel.with_suffix(".part")
    record = []
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
        def add(name, data):
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)

        for name, data in entries(package, source, version):
            add(name, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
        info = f"paceline-{version}.dist-info"
        add(f"{info}/RECORD", "\n".join(record + [f"{info}/RECORD,,", ""]).encode())
    unfinished.rename(wheel)
    return wheel


def main():
    parser = argparse.ArgumentParser(description="Writes the wheel of the package that the build made.")
    parser.add_argument("--version", required=True)
    for option in ("--package", "--source", "--out"):
        parser.add_argument(option, required=True, type=pathlib.Path)
    options = parser.parse_args()
    print(write_wheel(options.package, options.source, options.version, options.out))


if __name__ == "__main__":
    main()
