"""What pickle keeps of the values of the core, which it cannot pickle themselves."""

from typing import Any, Callable

from . import _core


class Kept:
    """What pickle keeps of a value of the core: its document. The value is made again when its text, a plan or a
    timeline is asked for."""

    def __init__(self, document: str, again: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._document, self._again, self._arguments = document, again, arguments
        self._made: Any = None

    def to_json(self) -> str:
        return self._document

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._made is None:
            self._made = self._again(*self._arguments)
        return getattr(self._made, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Kept, (self._document, self._again, self._arguments)


def kept_of(value: Any, again: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return value if isinstance(value, Kept) else Kept(value.to_json(), again, arguments)


class FoundTuning:
    """What pickle keeps of a tuning, whose search would end elsewhere another time."""

    def __init__(self, document: str, plan: str, text: str) -> None:
        self._parts = document, plan, text

    def to_json(self) -> str:
        return self._parts[0]

    def plan(self) -> _core.Plan:
        return _core.Plan.parse(self._parts[1], "plan")

    def to_text(self, width: int) -> str:
        return self._parts[2]

    def __reduce__(self) -> tuple[Any, ...]:
        return FoundTuning, self._parts


def point_of(scaling: tuple[Any, ...], index: int) -> _core.Prediction:
    again, arguments = scaling
    points: list[_core.Prediction] = again(*arguments).points()
    return points[index]
