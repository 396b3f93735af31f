"""Parts of check.py. Python's standard library is all that they need, 3.9 or later.

    errors.py     what ends the command with one line
    packing.py    pack: programs, their libraries and the data into a folder
    machine.py    what the machine has: libraries, tools, devices
    processes.py  a program with a time limit of its own
    gtest.py      the output of a GoogleTest program
    testing.py    the step of the test programs
    checks.py     the other steps, one function for each
    running.py    run: the steps within the budget, and the result file
"""
