"""A program with a time limit of its own."""
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass

LONGEST_WAIT_AFTER_KILL_S = 2  # a process that waits for a broken driver may not end at all


@dataclass
class Ended:
    """How a program ended. `code` is None where it was stopped, and `problem` says why."""

    code: "int | None"
    seconds: float
    out: str
    err: str
    problem: str = ""


def run_limited(command, limit_s, env=None, cwd=None, silence_s=None):
    """Runs a command for at most `limit_s` seconds, and no longer than `silence_s` without output.

    Then its whole process group is killed. Output goes through files, so that a process that cannot
    be killed holds nothing up.
    """
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       env=env, cwd=cwd, start_new_session=True)
        except OSError as error:
            return Ended(127, 0.0, "", "", f"did not start: {error.strerror}")
        problem = _wait(process, begin + limit_s, limit_s, silence_s, out)
        try:  # also what a program that ended by itself left behind
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            process.wait(LONGEST_WAIT_AFTER_KILL_S)
        except subprocess.TimeoutExpired:
            problem += ", and could not be killed"
        seconds = time.monotonic() - begin
        texts = [_text(file) for file in (out, err)]
    return Ended(None if problem else process.returncode, seconds, *texts, problem)


def _wait(process, deadline, limit_s, silence_s, out):
    """Returns why the process has to be stopped, or nothing once it has ended."""
    size, heard = 0, time.monotonic()
    while True:
        try:
            process.wait(0.05)
            return ""
        except subprocess.TimeoutExpired:
            pass
        now = time.monotonic()
        if os.fstat(out.fileno()).st_size != size:
            size, heard = os.fstat(out.fileno()).st_size, now
        if now >= deadline:
            return f"was stopped after its limit of {limit_s:.0f} s"
        if silence_s is not None and now - heard >= silence_s:
            return f"was stopped after {silence_s:.0f} s without output"


def _text(file):
    file.seek(0)
    return file.read().decode(errors="replace")


def tail(text, characters=4000):
    text = text.strip()
    return text if len(text) <= characters else "… " + text[-characters:]
