#!/usr/bin/env python3
"""The GPU check: what the CUDA backend does on a real GPU, within minutes, in one result file.

    check.py pack FOLDER                                  here: builds, and collects
    python3 FOLDER/check.py run FOLDER --output RESULT.json    on a machine with a GPU

The folder has all that the machine does not: programs, their libraries, Fashion-MNIST, this script.
The machine has an NVIDIA driver, Python 3.9 or later and, for the steps that want them, NCCL and cuDNN
(of a toolkit or of pip), compute-sanitizer, PyTorch. No network is used.

Exit code of run: 0 if the check came to its end, whatever the steps found (the result says it); 2 if
it was asked for something impossible, or there is no GPU: then there is no result file.
"""
import argparse
import pathlib
import sys

sys.dont_write_bytecode = True

from gpucheck.errors import CheckError  # noqa: E402
from gpucheck.packing import FASHION, pack  # noqa: E402
from gpucheck.running import STEPS, run  # noqa: E402

PROJECT = pathlib.Path(__file__).resolve().parents[2]


class OneLineParser(argparse.ArgumentParser):
    def error(self, message):
        raise CheckError(f"{message} (see {self.prog} --help)")


def parser():
    root = OneLineParser(prog="check.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = root.add_subparsers(dest="command", required=True, parser_class=OneLineParser)
    packing = commands.add_parser("pack", help="collect what travels")
    packing.add_argument("folder", type=pathlib.Path)
    packing.add_argument("--build", type=pathlib.Path, default=PROJECT / "build/release", help="a build with CUDA and tests")
    packing.add_argument("--peer", help="peer_baseline.py, or none (default: ../shared/gpu/peer_baseline.py if it is there)")
    packing.add_argument("--data", default=str(FASHION), help="folder of Fashion-MNIST, or none")
    packing.add_argument("--doubles", action="store_true", help="take the doubles of CUDA's libraries along, to rehearse")
    packing.add_argument("--programs", metavar="NAME,...", help="only these targets")
    packing.add_argument("--as-built", action="store_true", help="take the programs as they are, without building first")
    packing.add_argument("--limit-mib", type=float, default=46, help="refuse a larger folder (46: with the tree less than 64)")
    running = commands.add_parser("run", help="check this machine's GPU")
    running.add_argument("folder", type=pathlib.Path)
    running.add_argument("--output", type=pathlib.Path, required=True, metavar="RESULT.json")
    running.add_argument("--budget", type=float, default=570, metavar="SECONDS", help="the whole ends within these")
    running.add_argument("--steps", metavar="NAME,...", help=f"only these of {','.join(STEPS)}")
    running.add_argument("--tests", default="*", metavar="FILTER", help="only these tests of each program (GoogleTest's filter)")
    running.add_argument("--quick", action="store_true", help="tiny cases, to rehearse")
    running.add_argument("--doubles", nargs="?", const="packed", metavar="FOLDER",
                         help="rehearse on the doubles of CUDA's libraries: those of the folder, or of another build")
    return root


def peer_of(argument):
    if argument == "none":
        return None
    if argument is None:
        usual = PROJECT.parent / "shared/gpu/peer_baseline.py"
        return usual if usual.exists() else None
    if not pathlib.Path(argument).is_file():
        raise CheckError(f"there is no {argument}")
    return pathlib.Path(argument)


def main():
    try:
        args = parser().parse_args()
        if args.command == "pack":
            pack(args.folder, args.build.resolve(), peer_of(args.peer), None if args.data == "none" else pathlib.Path(args.data),
                 args.doubles, args.programs.split(",") if args.programs else None, args.limit_mib, args.as_built)
        else:
            run(args)
    except CheckError as error:
        print(f"check.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
