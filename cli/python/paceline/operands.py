"""What is known of the tensors that a network computes: parameters, constants, means over features, scores of
attention, and what has no layer. Views of the outputs of layers are in views.py."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Sequence

from .views import View

__all__ = ["Constant", "Parameter", "Refused", "Scores", "Statistic", "Value", "is_causal_mask", "owner"]


@dataclass(frozen=True)
class Parameter:
    """A learned tensor, or what is made of learned tensors alone, such as rows of a table."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]  # of this tensor
    shapes: tuple[tuple[int, ...], ...]  # of each parameter
    after: str = ""  # the layer that was added last when it was first read
    picked: bool = False  # rows of an embedding's table
    rows: int = 0  # of the constant that a network of parameters made it of

    @property
    def name(self) -> str:
        return self.names[0]

    def of(self, sizes: Sequence[int]) -> Parameter:
        return replace(self, sizes=tuple(sizes))


@dataclass(frozen=True)
class Constant:
    """A tensor that no sample and no parameter changes."""

    sizes: tuple[int, ...] = ()
    causal: bool = False  # it is a mask of what comes later
    array: Any = None  # its numbers, where they are known
    of_sample: bool = False  # a mask that the sample says, whose numbers nobody may branch on


@dataclass(frozen=True)
class Refused:
    """The output of an operator that has no layer."""


@dataclass(frozen=True)
class Statistic:
    """A mean or a deviation of each element over its features."""

    of: View
    name: str


@dataclass(frozen=True)
class Scores:
    """Products of queries and keys, and their softmax."""

    queries: View
    keys: View
    sizes: tuple[int, ...]
    name: str
    is_softmax: bool = False
    causal: bool = False
    dropout: float = 0.0
    bias: Parameter | None = None
    scale: Parameter | None = None


Value = Any  # one of these, a view, or a number


def owner(parameter: Parameter | str) -> str:
    """The name of the layer that a weight or a bias is of; empty if its name does not say."""
    name = parameter if isinstance(parameter, str) else parameter.name
    for ending in (".weight", "_weight", ".bias", "_bias"):
        if name.endswith(ending):
            return name[:-len(ending)]
    return ""


def is_causal_mask(array: Any) -> bool:
    """Whether numbers are ones below the diagonal and zeros above it, or the other way round."""
    import numpy as np
    if array is None or array.ndim < 2 or array.size < 4 or array.shape[-1] != array.shape[-2] or \
            array.size != array.shape[-1] ** 2:
        return False
    square = array.reshape(array.shape[-2:]) != 0
    return bool(np.array_equal(square, np.tril(np.ones_like(square))) or
                np.array_equal(square, np.triu(np.ones_like(square), 1)))
