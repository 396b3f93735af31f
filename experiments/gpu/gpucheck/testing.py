"""The step `tests`: every test of every program has its turn, and what a slow one takes is bounded."""
import concurrent.futures
import os
import time

from .gtest import listed_tests, read_report
from .processes import run_limited, tail

# A test that takes longer than this is stopped, and its turn comes again when all others have had theirs.
LONGEST_TEST_S = 10
# The same of programs whose tests make plans of cuDNN, each of which is compiled for a second.
LONGEST_TEST_WITH_PLANS_S = 60
MOST_PARTS = 10  # of a program whose tests make plans
# What training on one GPU rests on comes first, from the ground up; then what several ranks add.
PROGRAMS_FIRST = (
    "paceline_cuda_contract_tests", "paceline_cuda_device_tests", "paceline_cuda_network_tests", "paceline_cudnn_contract_tests",
    "paceline_cudnn_network_tests", "paceline_cuda_calibration_tests", "paceline_nccl_contract_tests", "paceline_nccl_tests")
BAD = ("failed", "crashed", "hung")
# How a test can end. cut_off: it was stopped within its time, because that of the step was over.
HOWS = ("passed", "skipped", *BAD, "cut_off", "not_reached")


class Program:
    """A test program: which of its tests have ended, and how."""

    def __init__(self, check, name):
        self.check, self.name = check, name
        self.command = [check.bin / name]
        self.makes_plans = "cudnn" in name
        self.longest_s = LONGEST_TEST_WITH_PLANS_S if self.makes_plans else LONGEST_TEST_S
        self.left, self.ends, self.problem = [], {}, ""
        self.tests, self.starts, self.seconds = [], 0, 0.0

    def list(self, limit_s):
        """Asks for the tests. `problem` says why there are none."""
        if missing := self.check.missing(self.name):
            self.problem = f"{', '.join(missing)} is not on this machine"
            return
        listed = run_limited([*self.command, "--gtest_list_tests", "--gtest_filter=" + self.check.filter], limit_s, self.check.env)
        self.tests = listed_tests(listed.out)
        self.left = list(self.tests)
        if not self.tests and (listed.code != 0 or self.check.filter == "*"):
            self.problem = "does not list its tests: " + (listed.problem or tail(listed.err or listed.out, 600))

    def run(self, limit_s):
        """Runs what is left, on from a test in which the program ends or that takes too long."""
        deadline = time.monotonic() + limit_s
        while self.left and (left_s := deadline - time.monotonic()) > 1:
            ended, report = self.start(self.left, left_s, self.longest_s)
            self.ends.update({test: end_of(ran) for test, ran in report.ended.items()})
            if report.unfinished:
                self.ends[report.unfinished] = {"how": self.why_unfinished(ended, deadline), "end": ended.problem or f"ended with {ended.code}",
                                                "text": tail(report.unfinished_text + "\n" + ended.err)}
            before, self.left = self.left, [test for test in self.left if test not in self.ends]
            goes_on = self.left != before
            ended_badly = ended.code not in (None, 0, 1) and not report.unfinished
            if ended_badly or not goes_on:
                self.problem = f"the program {ended.problem or f'ended with {ended.code}'}: {tail(ended.err or ended.out, 600)}"
            if not goes_on:  # nothing more can be had of it
                return

    def run_in_parts(self, limit_s):
        """The same in processes beside each other, where plans take most of the time."""
        count = min(len(self.left), MOST_PARTS, (os.cpu_count() or 1) // 2) if self.makes_plans else 1
        if count < 2:
            return self.run(limit_s)
        parts = [Program(self.check, self.name) for _ in range(count)]
        for i, part in enumerate(parts):
            part.left = self.left[i::count]
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda part: part.run(limit_s), parts))
        for part in parts:
            self.ends.update(part.ends)
            self.starts += part.starts
            self.seconds += part.seconds
            self.problem = self.problem or part.problem
        self.left = [test for test in self.left if test not in self.ends]

    @staticmethod
    def why_unfinished(ended, deadline):
        if ended.code is not None:
            return "crashed"
        return "hung" if time.monotonic() < deadline else "cut_off"  # by the end of its program's share

    def run_alone(self, test, limit_s):
        """Runs once more what did not pass. What was stopped for its time may pass yet."""
        first = self.ends[test]
        ended, report = self.start([test], limit_s, limit_s)
        again = report.ended.get(test)
        alone = again.how if again else ended.problem or f"ended with {ended.code}"
        if first["how"] in ("failed", "crashed"):
            first["alone"] = alone
        elif again:
            self.ends[test] = {**end_of(again), "at_first": first["end"]}
        elif ended.code is not None:
            self.ends[test] = {**first, "how": "crashed", "alone": alone}
        else:
            self.ends[test] = {**first, "how": "hung" if limit_s >= self.longest_s else first["how"], "alone": alone}

    def start(self, tests, limit_s, silence_s):
        begin = time.monotonic()
        ended = run_limited([*self.command, "--gtest_filter=" + ":".join(tests)], limit_s, self.check.env, self.check.scratch, silence_s)
        self.starts += 1
        self.seconds += time.monotonic() - begin
        return ended, read_report(ended.out)

    def result(self):
        each = {test: self.ends.get(test, {"how": "not_reached"}) for test in self.tests}
        counts = {how: sum(end["how"] == how for end in each.values()) for how in HOWS}
        bad = [f"{counts[how]} {how}" for how in BAD if counts[how]] + ([self.problem] if self.problem else [])
        return {"program": self.name, "command": " ".join(map(str, self.command)), "tests": len(each), **counts,
                "starts": self.starts, "seconds": round(self.seconds, 2), **state_of(bad, counts, not each), "each": each}


def end_of(ran):
    return {"how": ran.how, "ms": ran.ms, **({"text": ran.text} if ran.how != "passed" else {})}


def state_of(bad, counts, has_none=False):
    if bad:
        return {"state": "failed", "reason": "; ".join(bad)}
    if late := counts["cut_off"] + counts["not_reached"]:
        return {"state": "incomplete", "reason": f"{late} of the tests did not come to their end for want of time"}
    return {"state": "skipped", "reason": "has no test of that name"} if has_none else {"state": "passed"}


def run_tests(check, limit_s):
    """All test programs on the device: a failure is a defect of the double, or of the product.

    First each program has an equal share of the time that is left when its turn comes; then those that
    have tests left go on; at the end each test that did not pass runs once more alone.
    """
    deadline = time.monotonic() + limit_s
    names = [name for name in check.manifest["programs"] if name.endswith("_tests")]
    if not names:
        return {"state": "skipped", "reason": "no test program was packed", "commands": []}
    names.sort(key=lambda name: PROGRAMS_FIRST.index(name) if name in PROGRAMS_FIRST else len(PROGRAMS_FIRST))
    programs = [Program(check, name) for name in names]
    for program in programs:
        program.list(max(1, min(30, (deadline - time.monotonic()) / 4)))
    share_out(programs, deadline)
    share_out(programs, deadline)
    again = [(program, test) for program in programs for test, end in program.ends.items() if end["how"] in (*BAD, "cut_off")]
    # What failed at once takes little time; what takes long has all that is left.
    again.sort(key=lambda pair: pair[0].ends[pair[1]]["how"] in ("hung", "cut_off"))
    for i, (program, test) in enumerate(again):
        share = (deadline - time.monotonic()) / (len(again) - i)
        if share < 1:
            program.ends[test]["alone"] = "not tried: out of time"
        else:
            program.run_alone(test, share)
    results = [program.result() for program in programs]
    totals = {key: sum(result[key] for result in results) for key in ("tests", *HOWS)}
    problems = [f"{result['program']}: {result['reason']}" for result in results if result["state"] == "failed"]
    said = ", ".join(f"{totals[how]} {how.replace('_', ' ')}" for how in HOWS if totals[how])
    return {**state_of(problems, totals), "said": f"{totals['tests']} tests: {said}",
            "commands": [result["command"] for result in results], "totals": totals, "programs": results}


def share_out(programs, deadline):
    """Gives each program that has tests left an equal share of what is left of the time."""
    waiting = [program for program in programs if program.left and not program.problem]
    for i, program in enumerate(waiting):
        program.run_in_parts((deadline - time.monotonic()) / (len(waiting) - i))
