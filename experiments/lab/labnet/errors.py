"""What goes wrong in a lab, and with which exit code."""

BAD_INPUT = 2
UNAVAILABLE = 69  # EX_UNAVAILABLE of sysexits.h: this machine lacks what the lab needs
BROKEN = 70       # EX_SOFTWARE: a part of the lab died
TIME_LIMIT = 124  # as timeout(1)


class LabError(Exception):
    """One line for the user, and an exit code."""

    def __init__(self, message, code=BAD_INPUT):
        super().__init__(message)
        self.code = code
