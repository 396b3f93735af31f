"""Processors that do not halt: a hypervisor that is busy lends one that does to other machines, and
gives it back late (stay_awake.cc)."""
import os
import pathlib
import subprocess

from labnet.errors import UNAVAILABLE, LabError


def is_virtual_machine():
    try:
        return " hypervisor" in pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


def awake_program(choice, switch):
    """What keeps processors awake, built beside the switch; None if they may halt. `choice` is
    auto, yes or no. Raises LabError if it was asked for and is not there."""
    if choice == "no" or (choice == "auto" and not is_virtual_machine()):
        return None
    program = pathlib.Path(switch).parent / "paceline-lab-awake"
    if os.access(program, os.X_OK):
        return str(program)
    if choice == "auto":
        return None
    raise LabError(f"this machine lacks {program} (build target paceline-lab-awake)", UNAVAILABLE)


def stay_awake(program):
    """Keeps processors awake until the lab ends. Returns the processes that do it."""
    return {subprocess.Popen([program], start_new_session=True).pid} if program else set()
