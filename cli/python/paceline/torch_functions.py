"""Functions and methods of PyTorch on tensors that depend on the samples: how each becomes layers.

A function takes the recorder, the values of its arguments and keywords, a name for a layer, and PyTorch's
result, whose shape it may use. In-place functions are those without the underscore.
"""

from typing import Any, Callable

from .operands import Constant, Parameter, Scores, owner
from .layout import ACTIVATIONS
from .torch_modules import adaptive_pool, convolution, pool
from .views import NoLayer, View, listed

__all__ = ["COMPARISONS", "FUNCTIONS", "NEW_TENSORS"]

# What takes the shape of a tensor or its kind of numbers, and none of its numbers; and what makes a mask of it.
NEW_TENSORS = {
    "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor", "zeros_like", "ones_like", "full_like",
    "empty_like", "rand_like", "randn_like",
}
COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge", "logical_not", "argmax", "isnan", "invert"}


def _given(names: tuple[str, ...], values: list[Any], named: dict[str, Any]) -> dict[str, Any]:
    """Arguments by their names."""
    return dict(zip(names, values)) | named


def _sizes(result: Any) -> tuple[int, ...]:
    return tuple(result.shape)


def _same(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    return values[0]


def _reshape(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    value = values[0]
    if isinstance(value, View) and name.endswith("squeeze"):  # dimensions of 1 keep theirs
        return _squeeze(value, values[1] if len(values) > 1 else named.get("dim"), _sizes(result), name)
    return recorder.operators.reshape(value, _sizes(result), name)


def _squeeze(view: View, axis: Any, sizes: tuple[int, ...], name: str) -> View:
    """A dimension of 1 put in or taken out."""
    dims = list(view.dims)
    if len(sizes) > len(dims):
        dims.insert(axis % len(sizes), ())
    elif isinstance(axis, int):
        if len(sizes) < len(dims):
            dims.pop(axis % len(dims))
    else:
        dims = [dim for dim, size in zip(dims, view.sizes) if size != 1]
    return view.but(dims=tuple(dims), name=name)


def _transpose(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    of = _given(("self", "dim0", "dim1"), values, named)
    first, second = of.get("dim0", of.get("axis0")), of.get("dim1", of.get("axis1"))
    rank = len(values[0].sizes)
    order = list(range(rank))
    if first is None:  # .T and .mT
        order = order[::-1] if name.endswith("T") and not name.endswith("mT") else [*order[:-2], rank - 1, rank - 2]
    else:
        order[first], order[second] = order[second], order[first]
    return _permuted(recorder, values[0], order, name)


def _permute(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    order = named.get("dims", values[1:])
    if len(order) == 1 and isinstance(order[0], (tuple, list)):
        order = order[0]
    rank = len(values[0].sizes)
    return _permuted(recorder, values[0], [axis % rank for axis in order], name)


def _permuted(recorder: Any, value: Any, order: list[int], name: str) -> Any:
    return recorder.operators.permute(value, order, name)


def _flip(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    return recorder.operators.moved(values[0], name)


def _getitem(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    value, index = values[0], values[1]
    index = list(index) if isinstance(index, (tuple, list)) else [index]
    rank = len(value.sizes)
    taken = sum(1 for one in index if one is not None and one is not Ellipsis)
    if Ellipsis in [one for one in index if one is None or one is Ellipsis or isinstance(one, (int, slice))]:
        place = next(i for i, one in enumerate(index) if one is Ellipsis)
        index[place:place + 1] = [slice(None)] * (rank - taken)
    axis = 0
    for one in index:
        if one is None:
            value = _squeeze(value, axis, value.sizes + (1,), name) if isinstance(value, View) else \
                recorder.operators.reshape(value, (*value.sizes[:axis], 1, *value.sizes[axis:]), name)
            axis += 1
        elif isinstance(one, slice):
            size = value.sizes[axis]
            start, stop, step = one.indices(size)
            value = recorder.operators.cut(value, axis, start, max(0, -(-(stop - start) // step)), step, name)
            axis += 1
        elif isinstance(one, int) and not isinstance(one, bool):
            value = recorder.operators.select(value, axis, one % value.sizes[axis], name)
        else:
            raise NoLayer("by a tensor")
    return value


def _select(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    of = _given(("self", "dim", "index"), values, named)
    axis = of["dim"] % len(values[0].sizes)
    return recorder.operators.select(values[0], axis, of["index"] % values[0].sizes[axis], name)


def _narrow(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    of = _given(("self", "dim", "start", "length"), values, named)
    return recorder.operators.cut(values[0], of["dim"] % len(values[0].sizes), of["start"], of["length"], 1, name)


def _split(recorder: Any, values: Any, named: Any, name: str, result: Any) -> list[Any]:
    axis = (named["dim"] if "dim" in named else values[2] if len(values) > 2 else 0) % len(values[0].sizes)
    parts, start = [], 0
    for tensor in result:
        length = tensor.shape[axis]
        parts.append(recorder.operators.cut(values[0], axis, start, length, 1, name))
        start += length
    return parts


def _unbind(recorder: Any, values: Any, named: Any, name: str, result: Any) -> list[Any]:
    axis = (named["dim"] if "dim" in named else values[1] if len(values) > 1 else 0) % len(values[0].sizes)
    return [recorder.operators.select(values[0], axis, index, name) for index in range(len(result))]


def _concat(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    tensors = values[0] if values else named["tensors"]
    axis = named.get("dim", named.get("axis", values[1] if len(values) > 1 else 0))
    return recorder.operators.concat(tensors, axis % len(_sizes(result)), name)


def _repeated(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    return recorder.operators.repeated(values[0], _sizes(result), name)


def _pad(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    return recorder.operators.pad(values[0], _sizes(result), name)


def _plus(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    return recorder.operators.plus(values[0], values[1] if len(values) > 1 else named["other"], name)


def _minus(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    second = values[1] if len(values) > 1 else named["other"]
    if isinstance(second, Parameter):
        raise NoLayer("of a parameter")
    return recorder.operators.plus(values[0], second, name)


def _times(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    return recorder.operators.times(values[0], values[1] if len(values) > 1 else named["other"], name)


def _divided(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    second = values[1] if len(values) > 1 else named["other"]
    if isinstance(second, Parameter) or isinstance(second, View) and not isinstance(values[0], View):
        raise NoLayer("by a tensor")
    return recorder.operators.times(values[0], second, name, is_division=True)


def _mean(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    return _reduced(recorder, values, named, name, True)


def _deviation(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    return _reduced(recorder, values, named, name, False)


def _reduced(recorder: Any, values: Any, named: Any, name: str, is_mean: bool) -> Any:
    of = _given(("self", "dim"), values, named)
    axes, keep = of.get("dim", of.get("axis")), named.get("keepdim", is_mean and len(values) > 2 and values[2])
    if axes is None:
        raise NoLayer("of all dimensions")
    axes = axes if isinstance(axes, (tuple, list)) else [axes]
    return recorder.operators.mean(values[0], axes, bool(keep), name, is_mean)


def _linear(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    of = _given(("input", "weight", "bias"), values, named)
    weight, bias = of["weight"], of.get("bias")
    if not isinstance(weight, Parameter) or bias is not None and not isinstance(bias, Parameter):
        raise NoLayer("of two tensors")
    return _learned_product(recorder, of["input"], weight, bias, weight.sizes[0], name)


def _learned_product(recorder: Any, value: Any, weight: Parameter, bias: Any, outputs: int, name: str) -> Any:
    operators = recorder.operators
    for parameter in filter(None, (weight, bias)):
        operators.take(parameter)
    own = owner(weight) or name
    return operators.linear(value, own, outputs, bias is not None, weight.name)


def _matmul(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    first, second = values[0], values[1] if len(values) > 1 else named["other"]
    if isinstance(second, Parameter) and len(second.sizes) == 2:
        return _learned_product(recorder, first, second, None, second.sizes[1], name)
    return recorder.operators.product(first, second, _sizes(result), name)


def _addmm(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    bias, first, second = values[:3]
    if not isinstance(bias, Parameter) or not isinstance(second, Parameter):
        raise NoLayer("of tensors")
    return _learned_product(recorder, first, second, bias, second.sizes[1], name)


def _einsum(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    tensors = values[1] if isinstance(values[1], list) else values[1:]
    if len(tensors) != 2 or any(not isinstance(tensor, (View, Scores)) for tensor in tensors):
        raise NoLayer(f"of {values[0]}")
    return recorder.operators.einsum(values[0], tensors[0], tensors[1], name)


def _attend(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    weights = ("need_attn_weights",) if isinstance(result, tuple) else ()  # before PyTorch 2
    of = _given(("query", "key", "value", "attn_mask", "dropout_p", *weights, "is_causal"), values, named)
    mask = of.get("attn_mask")
    if mask is not None and not isinstance(mask, Constant):
        raise NoLayer("with a mask of the sample")
    causal = bool(of.get("is_causal")) or getattr(mask, "causal", False)
    made = recorder.operators.attend(of["query"], of["key"], of["value"], name, causal, float(of.get("dropout_p") or 0))
    return [made, Constant()] if isinstance(result, tuple) else made


def _softmax(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    axis = named["dim"] if "dim" in named else values[1] if len(values) > 1 else -1
    return recorder.operators.softmax(values[0], axis, name)


def _masked(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    return recorder.operators.masked(values[0], values[1] if len(values) > 1 else named["mask"])


def _where(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    mask, *sides = values
    scores = next((side for side in sides if isinstance(side, Scores)), None)
    if scores is None or not isinstance(mask, Constant):
        raise NoLayer
    return recorder.operators.masked(scores, mask)


def _normalize(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    of = _given(("input", "p", "dim"), values, named)
    view = recorder.operators.settled(recorder.operators.view(values[0]))
    if of.get("dim", 1) not in (-1, len(view.sizes) - 1):
        raise NoLayer(f"along dimension {of.get('dim', 1)}")
    return view.but(ops=("normalize",), name=name)


def _pow(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    if not isinstance(values[1] if len(values) > 1 else named.get("exponent"), (int, float)):
        raise NoLayer
    return recorder.operators.activation(values[0], name, "pow")


def _activation(op: str) -> Callable[..., Any]:
    return lambda recorder, values, named, name, result: recorder.operators.activation(values[0], name, op)


def _dropout(kind: str) -> Callable[..., Any]:
    def dropout(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
        probability = _given(("input", "p"), values, named).get("p", 0.5)
        return recorder.operators.dropout(values[0], name, float(probability), kind)
    return dropout


def _layer_norm(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    of = _given(("input", "normalized_shape", "weight", "bias"), values, named)
    weight, bias = of.get("weight"), of.get("bias")
    if not isinstance(weight, Parameter) or len(of["normalized_shape"]) != 1:
        raise NoLayer(f"over {listed(of['normalized_shape'])}")
    for parameter in filter(None, (weight, bias)):
        recorder.operators.take(parameter)
    own = owner(weight) or name
    return recorder.operators.layer_norm(values[0], own, bias is not None)


def _conv2d(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    of = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1} | _given(
        ("input", "weight", "bias", "stride", "padding", "dilation", "groups"), values, named)
    weight, bias = of["weight"], of.get("bias")
    if not isinstance(weight, Parameter):
        raise NoLayer("of two tensors")
    for parameter in filter(None, (weight, bias)):
        recorder.operators.take(parameter)
    own = owner(weight) or name
    return convolution(recorder.operators, of["input"], own, weight.sizes, bias is not None, _sizes(result),
                       of["stride"], of["padding"], of["dilation"], of["groups"])


def _embedding(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    of = _given(("input", "weight"), values, named)
    if not isinstance(of["weight"], Parameter):
        raise NoLayer
    own = owner(of["weight"]) or of["weight"].name
    return recorder.operators.embedding(of["input"], of["weight"], own)


def _max_pool(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    of = _given(("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode"), values, named)
    return pool(recorder.operators, values[0], name, "max_pool", of, _sizes(result))


def _average_pool(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    of = _given(("input", "kernel_size", "stride", "padding", "ceil_mode"), values, named)
    return pool(recorder.operators, values[0], name, "average_pool", of, _sizes(result))


def _adaptive_pool(recorder: Any, values: Any, named: Any, name: str, result: Any) -> Any:
    return adaptive_pool(recorder.operators, values[0], name, _sizes(result))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{op: _same for op in ("contiguous", "clone", "to", "float", "half", "double", "type", "type_as", "long", "int",
                            "detach", "requires_grad", "cuda", "cpu", "dequantize", "alias")},
    **{op: _reshape for op in ("view", "reshape", "flatten", "squeeze", "unsqueeze", "unflatten", "view_as",
                               "reshape_as")},
    **{op: _transpose for op in ("transpose", "swapaxes", "swapdims", "T", "mT", "t")},
    "permute": _permute, "roll": _flip, "flip": _flip,
    "getitem": _getitem, "select": _select, "narrow": _narrow, "split": _split, "chunk": _split,
    "split_with_sizes": _split, "tensor_split": _split, "unbind": _unbind,
    **{op: _concat for op in ("cat", "concat", "concatenate")},
    **{op: _repeated for op in ("expand", "expand_as", "broadcast_to", "repeat")}, "pad": _pad,
    **{op: _plus for op in ("add", "iadd", "radd")}, **{op: _minus for op in ("sub", "isub", "rsub", "subtract")},
    **{op: _times for op in ("mul", "imul", "rmul", "multiply")},
    **{op: _divided for op in ("div", "truediv", "itruediv", "rtruediv", "true_divide", "divide", "idiv")},
    "mean": _mean, "var": _deviation, "std": _deviation, "square": _activation("pow"), "linear": _linear,
    **{op: _matmul for op in ("matmul", "rmatmul", "bmm", "mm")}, "addmm": _addmm,
    "einsum": _einsum, "scaled_dot_product_attention": _attend, "softmax": _softmax,
    "masked_fill": _masked, "where": _where, "normalize": _normalize,
    **{op: _dropout("dropout") for op in ("dropout", "feature_dropout", "dropout2d", "dropout1d")},
    "stochastic_depth": _dropout("stochastic_depth"),
    "layer_norm": _layer_norm, "conv2d": _conv2d, "embedding": _embedding,
    **{op: _max_pool for op in ("max_pool2d", "boolean_dispatch", "_max_pool2d", "fn")}, "avg_pool2d": _average_pool,
    "adaptive_avg_pool2d": _adaptive_pool,
    **{op: _activation(op) for op in ACTIVATIONS},
    "pow": _pow,
    **{op: _activation("clip") for op in ("relu6", "hardtanh", "clamp", "clamp_min", "clamp_max")},
}
