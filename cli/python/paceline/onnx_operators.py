"""Operators of ONNX on tensors that depend on the samples: how each becomes layers.

A function takes the operators (operators.py), the values of a node's inputs, its attributes, its name and the
node.
"""

from math import prod
from typing import Any, Callable, Sequence

from .operands import Constant, Parameter, Scores, owner
from .operators import Operators
from .views import NoLayer, View, listed

__all__ = ["OPERATORS"]


def _pair(sizes: Sequence[int]) -> Any:
    values = [int(size) for size in sizes]
    return values[0] if len(set(values)) == 1 else values


def _numbers(value: Any, what: str) -> list[int]:
    """The numbers of a constant. Raises NoLayer if they are not known."""
    if not isinstance(value, Constant) or value.array is None:
        raise NoLayer(f"whose {what} is not constant")
    return [int(number) for number in value.array.reshape(-1)]


def _axes(values: list[Any], of: dict[str, Any], place: int = 1) -> list[int] | None:
    if "axes" in of:
        return list(of["axes"])
    if len(values) > place and values[place] is not None:
        return _numbers(values[place], "axes")
    return None


def _window(of: dict[str, Any], sizes: Sequence[int], kernel: Sequence[int]) -> tuple[Any, Any, Any]:
    """Stride, padding before and behind, and dilation of a window over an image."""
    if len(kernel) != 2 or len(sizes) != 4:
        raise NoLayer(f"of {len(kernel)} dimensions")
    strides, dilations = of.get("strides") or [1, 1], of.get("dilations") or [1, 1]
    pads = of.get("pads") or [0, 0, 0, 0]
    if of.get("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
        room = [max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n)
                for n, s, k, d in zip(sizes[2:], strides, kernel, dilations)]
        less, more = [size // 2 for size in room], [-(-size // 2) for size in room]
        pads = [*less, *more] if of["auto_pad"] == "SAME_UPPER" else [*more, *less]
    return strides, pads, dilations


def _windows(sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int],
             dilations: Sequence[int], ceil: bool = False) -> list[int]:
    counts = []
    for size, k, s, p, d in zip(sizes, kernel, strides, pads, dilations):
        room = size + 2 * p - d * (k - 1) - 1
        count = (-(-room // s) if ceil else room // s) + 1
        counts.append(count - 1 if ceil and (count - 1) * s >= size + p else count)
    return counts


def _conv(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    weight, bias = values[1], values[2] if len(values) > 2 else None
    if not isinstance(weight, Parameter) or not isinstance(bias, (Parameter, type(None))):
        raise NoLayer("whose weight is no initializer")
    view, kernel = operators.settled(operators.view(values[0])), weight.sizes[2:]
    strides, pads, dilations = _window(of, view.sizes, kernel)
    if pads[:2] != pads[2:]:
        padded = [size + pads[i] + pads[i + 2] for i, size in enumerate(view.sizes[2:])]
        view, pads = operators.pad(view, (*view.sizes[:2], *padded), f"{name}.pad"), [0, 0, 0, 0]
    sizes = (view.sizes[0], weight.sizes[0], *_windows(view.sizes[2:], kernel, strides, pads, dilations))
    for parameter in filter(None, (weight, bias)):
        operators.take(parameter)
    return operators.windowed(view, owner(weight) or name, "convolution", sizes, channels=weight.sizes[0],
                              kernel=_pair(kernel), stride=_pair(strides), padding=_pair(pads[:2]),
                              dilation=_pair(dilations), groups=of.get("group", 1), bias=bias is not None)


def _pool(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    if any(dilation != 1 for dilation in of.get("dilations") or []) or len([o for o in node.output if o]) > 1:
        raise NoLayer("with dilation or indices")
    view, kernel = operators.settled(operators.view(values[0])), of["kernel_shape"]
    strides, pads, dilations = _window(of, view.sizes, kernel)
    inner = operators.unpadded(view) if node.op_type == "AveragePool" and not any(pads) else None
    if inner is not None:  # PyTorch's exporter pads before it takes averages
        pads = [(big - small) // 2 for big, small in zip(view.sizes[2:], inner.sizes[2:])] * 2
        view = inner
    if pads[:2] != pads[2:]:
        raise NoLayer("with uneven padding")
    ceil = bool(of.get("ceil_mode", 0))
    sizes = (*view.sizes[:2], *_windows(view.sizes[2:], kernel, strides, pads, dilations, ceil))
    kind = "max_pool" if node.op_type == "MaxPool" else "average_pool"
    return operators.windowed(view, name, kind, sizes, kernel=_pair(kernel), stride=_pair(strides),
                              padding=_pair(pads[:2]), ceil=ceil)


def _global_pool(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    sizes = operators.view(values[0]).sizes
    if len(sizes) == 3:
        pooled = operators.mean(operators.view(values[0]).permute([0, 2, 1], name), [1], True, name)
        return pooled.permute([0, 2, 1], name)
    return operators.windowed(values[0], name, "adaptive_average_pool", (*sizes[:2], 1, 1), output=1)


def _mean(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    axes = _axes(values, of)
    if axes is None:
        raise NoLayer("of all dimensions")
    return operators.mean(values[0], axes, bool(of.get("keepdims", 1)), name)


def _norm_of(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    view = operators.view(values[0])
    if (_axes(values, of) or []) not in ([-1], [len(view.sizes) - 1]) or not of.get("keepdims", 1):
        raise NoLayer("of other dimensions than the last")
    return operators.mean(values[0], [-1], True, name)


def _learned(operators: Operators, value: Any, weight: Parameter, bias: Any, outputs: int, name: str) -> Any:
    for parameter in filter(None, (weight, bias)):
        operators.take(parameter)
    return operators.linear(value, owner(weight) or name, outputs, bias is not None, weight.name)


def _gemm(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    weight, bias = values[1], values[2] if len(values) > 2 else None
    if not isinstance(weight, Parameter) or not isinstance(bias, (Parameter, type(None))) or of.get("transA"):
        raise NoLayer("whose weight is no initializer")
    return _learned(operators, values[0], weight, bias, weight.sizes[0 if of.get("transB") else 1], name)


def _matmul(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    first, second = values
    if isinstance(second, Parameter) and len(second.sizes) == 2:
        return _learned(operators, first, second, None, second.sizes[1], name)
    if isinstance(first, (Parameter, Constant)) or isinstance(second, (Parameter, Constant)):
        raise NoLayer("whose weight is no initializer")
    return operators.product(first, second, (*first.sizes[:-1], second.sizes[-1]), name)


def _sum(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    made = values[0]
    for value in values[1:]:
        made = operators.plus(made, value, name)
    return made


def _minus(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    if isinstance(values[1], Parameter):
        raise NoLayer("of an initializer")
    return operators.plus(values[0], values[1], name)


def _times(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    return operators.times(values[0], values[1], name)


def _divided(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    if isinstance(values[1], Parameter) or not isinstance(values[0], (View, Scores, Constant)):
        raise NoLayer("by an initializer")
    return operators.times(values[0], values[1], name, is_division=True)


def _concat(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    return operators.concat(values, of["axis"] % len(values[0].sizes), name)


def _layer_norm(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    weight, bias = values[1], values[2] if len(values) > 2 else None
    axis, rank = of.get("axis", -1), len(operators.view(values[0]).sizes)
    if not isinstance(weight, Parameter) or axis not in (-1, rank - 1):
        raise NoLayer(f"over {listed(getattr(weight, 'sizes', ()))}")
    for parameter in filter(None, (weight, bias)):
        operators.take(parameter)
    return operators.layer_norm(values[0], owner(weight) or name, bias is not None)


def _batch_norm(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    if not isinstance(values[1], Parameter) or not isinstance(values[2], Parameter):
        raise NoLayer("whose weight is no initializer")
    operators.take(values[1])
    operators.take(values[2])
    return operators.batch_norm(values[0], owner(values[1]) or name)


def _lrn(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    return operators.windowed(values[0], name, "lrn", operators.view(values[0]).sizes, size=of["size"])


def _dropout(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    probability = of.get("ratio", 0.5)
    if len(values) > 1 and isinstance(values[1], Constant) and values[1].array is not None:
        probability = float(values[1].array.reshape(-1)[0])
    probability = float(f"{probability:.6g}")  # it has 32 bits, and was written in decimals
    made = operators.dropout(values[0], name, probability)
    return [made, Constant(), *[Constant()] * len(node.output)][:len(node.output)]


def _softmax(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    return operators.softmax(values[0], of.get("axis", -1), name)


def _whole(sizes: list[int], before: Sequence[int]) -> list[int]:
    """The sizes of a reshape: 0 keeps a dimension, and -1 is what is left."""
    found = [before[place] if size == 0 else size for place, size in enumerate(sizes)]
    if -1 in found:
        known = prod(size for size in found if size != -1)
        if known <= 0 or prod(before) % known:
            raise NoLayer(f"of {listed(before)} to {listed(sizes)}")
        found[found.index(-1)] = prod(before) // known
    if prod(found) != prod(before) or min(found, default=1) < 0:
        raise NoLayer(f"of {listed(before)} to {listed(sizes)}")
    return found


def _reshape(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    return operators.reshape(values[0], _whole(_numbers(values[1], "shape"), values[0].sizes), name)


def _flatten(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    sizes, axis = values[0].sizes, of.get("axis", 1)
    axis %= len(sizes) + 1
    return operators.reshape(values[0], (prod(sizes[:axis]), prod(sizes[axis:])), name)


def _squeeze(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    value, axes = values[0], _axes(values, of)
    rank = len(value.sizes)
    ones = [axis for axis, size in enumerate(value.sizes) if size == 1]
    gone = {axis % rank for axis in (ones if axes is None else axes)}
    sizes = [size for place, size in enumerate(value.sizes) if place not in gone]
    if any(value.sizes[place] != 1 for place in gone):
        raise NoLayer(f"of {listed(value.sizes)}")
    if isinstance(value, View):
        return value.but(dims=tuple(dim for place, dim in enumerate(value.dims) if place not in gone))
    return operators.reshape(value, sizes, name)


def _unsqueeze(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    value, axes = values[0], _axes(values, of) or []
    rank = len(value.sizes) + len(axes)
    sizes, dims = list(value.sizes), list(getattr(value, "dims", []))
    for axis in sorted(axis % rank for axis in axes):
        sizes.insert(axis, 1)
        dims.insert(axis, ())
    if isinstance(value, View):
        return value.but(dims=tuple(dims))
    return operators.reshape(value, sizes, name)


def _transpose(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    rank = len(values[0].sizes)
    order = of.get("perm") or list(range(rank))[::-1]
    if sorted(order) != list(range(rank)):
        raise NoLayer(f"by {listed(order)}")
    return operators.permute(values[0], order, name)


def _split(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    value = values[0]
    axis = of.get("axis", 0) % len(value.sizes)
    lengths = of.get("split") or (_numbers(values[1], "split") if len(values) > 1 else None)
    if lengths is None:
        each = -(-value.sizes[axis] // len(node.output))
        lengths = [min(each, value.sizes[axis] - each * place) for place in range(len(node.output))]
    if sum(lengths) != value.sizes[axis] or min(lengths) < 1:
        raise NoLayer(f"of {value.sizes[axis]} to {listed(lengths)}")
    starts = [sum(lengths[:place]) for place in range(len(lengths))]
    return [operators.cut(value, axis, start, length, 1, name) for start, length in zip(starts, lengths)]


def _slice(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    value = values[0]
    starts = of.get("starts") or _numbers(values[1], "starts")
    ends = of.get("ends") or _numbers(values[2], "ends")
    axes = _axes(values, of, 3) or list(range(len(starts)))
    steps = _numbers(values[4], "steps") if len(values) > 4 and values[4] is not None else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps):
        axis %= len(value.sizes)
        start, stop, step = slice(start, end, step).indices(value.sizes[axis])
        length = max(0, -(-(stop - start) // step))
        if step < 1 or length < 1:
            raise NoLayer(f"of {value.sizes[axis]} from {start} to {stop}")
        value = operators.cut(value, axis, start, length, step, name)
    return value


def _gather(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    value, index = values
    axis = of.get("axis", 0) % len(value.sizes)
    if isinstance(value, Parameter) and len(value.sizes) == 2 and axis == 0 and \
            (isinstance(index, View) or index.sizes and prod(index.sizes) > 1):
        return operators.embedding(index, value, owner(value) or value.name)
    if not isinstance(index, Constant):
        raise NoLayer("by computed numbers")
    numbers = _numbers(index, "index")
    if not index.sizes:
        return operators.select(value, axis, numbers[0] % value.sizes[axis], name)
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise NoLayer("of several places")
    return operators.cut(value, axis, numbers[0] % value.sizes[axis], len(numbers), 1, name)


def _expand(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    value = values[0]
    sizes = _numbers(values[1], "shape")
    before = (1,) * (len(sizes) - len(value.sizes)) + tuple(value.sizes)
    return operators.repeated(value, [max(old, new) for old, new in zip(before, sizes)], name)


def _pad(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    pads = of.get("pads") or _numbers(values[1], "pads")
    sizes = values[0].sizes
    if len(pads) != 2 * len(sizes):
        raise NoLayer(f"by {listed(pads)}")
    return operators.pad(values[0], [size + pads[i] + pads[i + len(sizes)] for i, size in enumerate(sizes)], name)


def _where(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    mask, *sides = values
    scores = next((side for side in sides if isinstance(side, Scores)), None)
    if scores is None or not isinstance(mask, Constant):
        raise NoLayer
    return operators.masked(scores, mask)


def _compared(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    """A mask that the input says: it costs nothing beside what it masks."""
    if any(isinstance(value, View) and value.base.layer != "input" or isinstance(value, Scores) for value in values):
        raise NoLayer
    return Constant(max((value.sizes for value in values), key=len), any(getattr(v, "causal", False) for v in values))


def _einsum(operators: Operators, values: list[Any], of: dict[str, Any], name: str, node: Any) -> Any:
    if len(values) != 2 or not all(isinstance(value, (View, Scores)) for value in values):
        raise NoLayer(f"of {of.get('equation', '')}")
    return operators.einsum(of.get("equation", ""), values[0], values[1], name)


def _activation(op: str) -> Callable[..., Any]:
    return lambda operators, values, of, name, node: operators.activation(values[0], name, op)


OPERATORS: dict[str, Callable[..., Any]] = {
    "Conv": _conv, "MaxPool": _pool, "AveragePool": _pool, "GlobalAveragePool": _global_pool, "ReduceMean": _mean,
    "ReduceL2": _norm_of, "Gemm": _gemm, "MatMul": _matmul, "Add": _sum, "Sum": _sum, "Sub": _minus, "Mul": _times,
    "Div": _divided, "Concat": _concat, "BatchNormalization": _batch_norm, "LayerNormalization": _layer_norm,
    "LRN": _lrn, "Dropout": _dropout, "Softmax": _softmax, "Reshape": _reshape, "Flatten": _flatten,
    "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Transpose": _transpose, "Split": _split, "Slice": _slice,
    "Gather": _gather, "Expand": _expand, "Pad": _pad, "Where": _where, "Einsum": _einsum,
    **{op: _compared for op in ("Equal", "Greater", "Less", "Not", "GreaterOrEqual", "LessOrEqual")},
    **{op: lambda operators, values, of, name, node: values[0] for op in ("Identity", "Cast")},
    **{operator: _activation(op) for operator, op in {
        "Relu": "relu", "Clip": "clip", "LeakyRelu": "leaky_relu", "ThresholdedRelu": "threshold", 
        "Gelu": "gelu", "HardSigmoid": "hardsigmoid", "HardSwish": "hardswish", "Elu": "elu", "Selu": "selu",
        "Celu": "celu", "Mish": "mish", "Softplus": "softplus", "Erf": "erf", "Tanh": "tanh", "Sigmoid": "sigmoid",
        "Pow": "pow", "Sqrt": "sqrt", "Exp": "exp", "Reciprocal": "reciprocal", "Neg": "neg", "Abs": "abs",
        "Softsign": "softsign"}.items()},
}
