"""Arithmetic of constants in ONNX graphs, such as that of shapes. It is done with numbers where they are few."""

from math import prod
from typing import Any, Callable

import numpy as np

__all__ = ["MOST_NUMBERS", "computed"]

MOST_NUMBERS = 1 << 20


def _slice(array: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    index = [slice(None)] * array.ndim
    for place, (start, end) in enumerate(zip(starts, ends)):
        axis = int(axes[place]) if axes is not None else place
        step = int(steps[place]) if steps is not None else 1
        index[axis] = slice(int(start), int(end) if abs(int(end)) < 1 << 40 else None, step)
    return array[tuple(index)]


def _range(start: Any, limit: Any, delta: Any) -> Any:
    if abs((limit - start) / delta) > MOST_NUMBERS:
        raise ValueError("too many numbers")
    return np.arange(start, limit, delta)


def _filled(sizes: Any, value: Any) -> Any:
    if prod(int(size) for size in sizes) > MOST_NUMBERS:
        raise ValueError("too many numbers")
    return np.full([int(size) for size in sizes], value if value is not None else 0)


def _expanded(array: Any, sizes: Any) -> Any:
    shape = np.broadcast_shapes(array.shape, tuple(int(size) for size in sizes))
    if prod(shape) > MOST_NUMBERS:
        raise ValueError("too many numbers")
    return np.broadcast_to(array, shape)


def _reshaped(array: Any, sizes: Any) -> Any:
    return array.reshape([array.shape[place] if size == 0 else int(size) for place, size in enumerate(sizes)])


def _unsqueezed(array: Any, axes: Any) -> Any:
    return np.expand_dims(array, tuple(int(axis) for axis in np.atleast_1d(axes)))


def _squeezed(array: Any, axes: Any = None) -> Any:
    return array.squeeze(None if axes is None else tuple(int(axis) for axis in np.atleast_1d(axes)))


def _divided(first: Any, second: Any) -> Any:
    if np.issubdtype(first.dtype, np.integer):
        return np.trunc(first / second).astype(first.dtype)
    return first / second


_OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _divided, "Mod": np.mod, "Pow": np.power,
    "Neg": np.negative, "Abs": np.abs, "Sqrt": np.sqrt, "Floor": np.floor, "Ceil": np.ceil, "Not": np.logical_not,
    "And": np.logical_and, "Or": np.logical_or, "Equal": np.equal, "Less": np.less, "Greater": np.greater,
    "LessOrEqual": np.less_equal, "GreaterOrEqual": np.greater_equal, "Where": np.where, "Range": _range,
    "Slice": _slice, "Expand": _expanded, "Reshape": _reshaped, "Unsqueeze": _unsqueezed, "Squeeze": _squeezed,
    "Identity": lambda array: array, "Min": np.minimum, "Max": np.maximum,
}


def computed(operator: str, arrays: list[Any], of: dict[str, Any]) -> Any:
    """The array that an operator makes of arrays, or None where that is not known."""
    if any(array is None or array.size > MOST_NUMBERS for array in arrays):
        return None
    if operator == "Cast":
        return arrays[0].astype(np.float64 if of.get("to") in (1, 10, 11) else bool if of.get("to") == 9 else np.int64)
    if operator == "Gather":
        return np.take(arrays[0], arrays[1].astype(np.int64), axis=of.get("axis", 0))
    if operator == "Concat":
        return np.concatenate([np.atleast_1d(array) for array in arrays], axis=of.get("axis", 0))
    if operator == "Transpose":
        return arrays[0].transpose(of.get("perm"))
    if operator == "Trilu":
        cut = int(arrays[1]) if len(arrays) > 1 else 0
        return np.triu(arrays[0], cut) if of.get("upper", 1) else np.tril(arrays[0], cut)
    if operator == "ConstantOfShape":
        return _filled(arrays[0], of.get("value"))
    if operator in ("Unsqueeze", "Squeeze") and "axes" in of:
        return _OPERATORS[operator](arrays[0], of["axes"])
    if operator == "Slice" and "starts" in of:
        return _slice(arrays[0], of["starts"], of["ends"], of.get("axes"))
    function = _OPERATORS.get(operator)
    return function(*arrays) if function is not None else None
