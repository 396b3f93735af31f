"""The errors of Paceline, by who can correct them."""

__all__ = ["Error", "InputError", "RunError", "UnavailableError"]


class Error(Exception):
    """What all errors of Paceline have in common."""


class InputError(Error, ValueError):
    """What was given is wrong. The message says where, what is wrong, and what would be right.

    ``file`` is a path, or the option as the command writes it ("--ranks"); it may be empty. ``line``
    and ``column`` count from 1, and 0 means unknown.
    """

    def __init__(self, message: str, file: str = "", line: int = 0, column: int = 0,
                 problem: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.file, self.line, self.column = file, line, column
        self.problem, self.remedy = problem or message, remedy

    @property
    def argument(self) -> str | None:
        """The name of the argument that is wrong, where one is."""
        return self.file[2:].replace("-", "_") if self.file.startswith("--") else None


class RunError(Error, RuntimeError):
    """The work failed: a disk, a peer, a limit of time."""


class UnavailableError(Error, RuntimeError):
    """A part is not there. The message says how to get it."""
