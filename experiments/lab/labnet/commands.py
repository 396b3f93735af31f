"""Commands of the scripts that use the lab, and where they find it."""
import json
import pathlib
import shlex
import subprocess
import sys

LAB = pathlib.Path(__file__).resolve().parents[1] / "lab.py"
PROJECT = LAB.parents[2]


def run(command, is_printed=False, **options):
    """Runs a command of any parts, and prints it before where it is said to. Raises CalledProcessError."""
    command = [str(part) for part in command]
    if is_printed:
        print("$ " + shlex.join(command), file=sys.stderr, flush=True)
    return subprocess.run(command, check=True, **options)


def run_in_lab(report, place, command, **options):
    """Runs a command in the lab that `place`, options of lab.py, describes.

    Returns what `run` does, and the lab's report, which stays in the file `report`.
    """
    ended = run([sys.executable, LAB, "run", "--report", report, *place, "--", *command], **options)
    return ended, json.loads(report.read_text())
