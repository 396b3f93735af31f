"""What ends the command with one line."""


class CheckError(Exception):
    """A problem that the user can solve: one line, and exit code 2."""
