"""Modules of PyTorch that are one layer, or a few that are known: how each becomes layers."""

from typing import Any, Callable, Mapping

from .operators import Operators
from .layout import ACTIVATIONS
from .views import FEATURES, PLACES, SAMPLES, NoLayer, Shape, View, fresh, listed

__all__ = ["MODULES", "adaptive_pool", "convolution", "pair", "pool"]

# What a module calls its activation, and what operators.py does.
_ACTIVATIONS = {
    "ReLU": "relu", "ReLU6": "clip", "Hardtanh": "clip", "LeakyReLU": "leaky_relu", "Threshold": "threshold",
    "GELU": "gelu", "SiLU": "silu", "Hardswish": "hardswish", "Hardsigmoid": "hardsigmoid", "ELU": "elu",
    "SELU": "selu", "CELU": "celu", "Mish": "mish", "Softplus": "softplus", "Tanh": "tanh", "Sigmoid": "sigmoid",
    "LogSigmoid": "logsigmoid", "Softsign": "softsign",
}


def pair(value: Any) -> Any:
    """A size of PyTorch as documents write it: a number, or [height, width]."""
    if isinstance(value, (tuple, list)):
        return value[0] if len(value) == 1 or value[0] == value[1] else list(value[:2])
    return value


def convolution(operators: Operators, value: Any, name: str, weight: Any, bias: bool, sizes: Any, stride: Any,
                padding: Any, dilation: Any, groups: int) -> View:
    kernel = tuple(weight[2:])
    if len(kernel) != 2:
        raise NoLayer(f"of {len(kernel)} dimensions")
    dilation = dilation if isinstance(dilation, (tuple, list)) else (dilation,) * 2
    if padding == "valid":
        padding = (0, 0)
    elif padding == "same":
        whole = [d * (k - 1) for k, d in zip(kernel, dilation)]
        if any(size % 2 for size in whole):
            raise NoLayer("with uneven padding")
        padding = tuple(size // 2 for size in whole)
    return operators.windowed(value, name, "convolution", sizes, channels=weight[0], kernel=pair(kernel),
                              stride=pair(stride), padding=pair(padding), dilation=pair(dilation), groups=groups,
                              bias=bias)


def pool(operators: Operators, value: Any, name: str, kind: str, of: Mapping[str, Any], sizes: Any) -> View:
    if pair(of.get("dilation", 1)) != 1 or of.get("return_indices") or of.get("divisor_override"):
        raise NoLayer("with dilation, indices or a divisor")
    kernel, stride = of["kernel_size"], of.get("stride")
    return operators.windowed(value, name, kind, sizes, kernel=pair(kernel),
                              stride=pair(kernel if stride in (None, [], ()) else stride),
                              padding=pair(of.get("padding", 0)), ceil=bool(of.get("ceil_mode", False)))


def adaptive_pool(operators: Operators, value: Any, name: str, sizes: Any) -> Any:
    if len(sizes) == 3 and sizes[2] == 1:
        view = operators.view(value)
        pooled = operators.mean(view.permute([0, 2, 1], view.name), [1], False, name)
        return pooled.reshape((*pooled.sizes, 1), name)
    if len(sizes) != 4:
        raise NoLayer(f"of {len(sizes)} dimensions")
    return operators.windowed(value, name, "adaptive_average_pool", sizes, output=pair(tuple(sizes[2:])))


def _convolution(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    return convolution(recorder.operators, values[0], name, tuple(module.weight.shape), module.bias is not None,
                       tuple(result.shape), module.stride, module.padding, module.dilation, module.groups)


def _linear(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    weight = recorder._value(module.weight).name
    return recorder.operators.linear(values[0], name, module.out_features, module.bias is not None, weight)


def _batch_norm(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    if not module.affine:
        raise NoLayer("without parameters")
    return recorder.operators.batch_norm(values[0], name)


def _layer_norm(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    if not module.elementwise_affine or len(module.normalized_shape) != 1:
        raise NoLayer(f"over {listed(module.normalized_shape)}")
    return recorder.operators.layer_norm(values[0], name, getattr(module, "bias", None) is not None)


def _embedding(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    return recorder.operators.embedding(values[0], recorder._value(module.weight), name)


def _attend(operators: Operators, value: View, name: str, attention: Any) -> View:
    """Attention of a sequence over itself. Its dimensions are samples, elements and features."""
    width, bias = attention.embed_dim, attention.in_proj_bias is not None
    if not attention._qkv_same_embed_dim or attention.bias_k is not None or attention.add_zero_attn:
        raise NoLayer("with keys or values of another size")
    sizes = value.sizes
    if len(sizes) != 3 or sizes[0] != operators.samples:
        raise NoLayer(f"of {listed(sizes)}")
    packed = operators.linear(value, f"{name}.in_proj", 3 * width, bias, "")
    layer = operators.add(name, "attention", [packed.base.layer], heads=attention.num_heads, dropout=attention.dropout)
    attended = fresh(layer, Shape.sequence(sizes[1], width), sizes, [SAMPLES, PLACES, FEATURES], operators.samples)
    return operators.linear(attended, f"{name}.out_proj", width, attention.out_proj.bias is not None, "")


def _attention(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    if any(value is not values[0] for value in values[1:3]):
        raise NoLayer("over other keys")
    order = (0, 1, 2) if module.batch_first else (1, 0, 2)
    view = recorder.operators.view(values[0])
    made = _attend(recorder.operators, view.permute(order, view.name), name, module)
    return made.permute(order, made.name)


def _encoder_layer(operators: Operators, name: str, source: View, module: Any) -> Any:
    def norm(which: str, value: View) -> View:
        return operators.layer_norm(value, f"{name}.{which}")

    def attend(value: View) -> Any:
        attended = _attend(operators, value, f"{name}.self_attn", module.self_attn)
        return operators.dropout(attended, f"{name}.dropout1", module.dropout1.p)

    def feed(value: View) -> Any:
        first, second = module.linear1, module.linear2
        value = operators.linear(value, f"{name}.linear1", first.out_features, first.bias is not None, "")
        activation = getattr(module.activation, "__name__", type(module.activation).__name__).lower()
        if activation not in ACTIVATIONS:
            raise NoLayer(f"with {activation}")
        value = operators.settled(operators.activation(value, f"{name}.activation", activation))
        value = operators.dropout(value, f"{name}.dropout", module.dropout.p)
        value = operators.linear(value, f"{name}.linear2", second.out_features, second.bias is not None, "")
        return operators.dropout(value, f"{name}.dropout2", module.dropout2.p)

    def add(which: str, first: View, second: View) -> Any:
        return operators.plus(first, second, f"{name}.{which}")

    if module.norm_first:
        source = add("add1", source, attend(norm("norm1", source)))
        return add("add2", source, feed(norm("norm2", source)))
    source = norm("norm1", add("add1", source, attend(source)))
    return norm("norm2", add("add2", source, feed(source)))


def _encoder(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    """One layer of a transformer's encoder, or several."""
    operators = recorder.operators
    several = getattr(module, "layers", None)
    layers = {name: module} if several is None else {
        f"{name}.layers.{index}": inner for index, inner in enumerate(several)}
    view = operators.view(values[0])
    orders = {inner.self_attn.batch_first for inner in layers.values()}
    order = (0, 1, 2) if orders == {True} else (1, 0, 2)
    view = view.permute(order, view.name)
    for inner_name, inner in layers.items():
        view = _encoder_layer(operators, inner_name, view, inner)
    if getattr(module, "norm", None) is not None:
        view = operators.layer_norm(view, f"{name}.norm")
    return view.permute(order, view.name)


def _dropout(kind: str = "dropout") -> Callable[..., Any]:
    def dropout(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
        probability = getattr(module, "p", None)
        if probability is None:
            probability = getattr(module, "drop_prob", None)  # timm's
        if probability is None:
            raise NoLayer("without a probability")
        return recorder.operators.dropout(values[0], name, float(probability), kind)
    return dropout


def _lrn(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    return recorder.operators.windowed(values[0], name, "lrn", tuple(result.shape), size=module.size)


def _reshape(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    return recorder.operators.reshape(values[0], tuple(result.shape), name)


def _zero_pad(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    return recorder.operators.pad(values[0], tuple(result.shape), name)


def _shuffle(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    """Channels in another order, groups interleaved."""
    view = recorder.operators.view(values[0])
    samples, channels, *places = view.sizes
    split = view.reshape((samples, module.groups, channels // module.groups, *places), name)
    order = [0, 2, 1, *range(3, 3 + len(places))]
    return recorder.operators.reshape(split.permute(order, name), view.sizes, name)


def _activation(op: str) -> Callable[..., Any]:
    return lambda recorder, values, name, module, result: recorder.operators.activation(values[0], name, op)


def _same(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    return values[0]


def _max_pool(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    return pool(recorder.operators, values[0], name, "max_pool", vars(module), tuple(result.shape))


def _average_pool(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    return pool(recorder.operators, values[0], name, "average_pool", vars(module), tuple(result.shape))


def _adaptive_pool(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    return adaptive_pool(recorder.operators, values[0], name, tuple(result.shape))


MODULES: dict[str, Callable[..., Any]] = {
    "Conv2d": _convolution,
    "Linear": _linear, "NonDynamicallyQuantizableLinear": _linear,
    "BatchNorm1d": _batch_norm, "BatchNorm2d": _batch_norm, "SyncBatchNorm": _batch_norm,
    "LayerNorm": _layer_norm,
    "Embedding": _embedding,
    "MultiheadAttention": _attention,
    "TransformerEncoder": _encoder, "TransformerEncoderLayer": _encoder,
    "MaxPool2d": _max_pool, "AvgPool2d": _average_pool,
    "AdaptiveAvgPool1d": _adaptive_pool, "AdaptiveAvgPool2d": _adaptive_pool,
    "LocalResponseNorm": _lrn,
    "Dropout": _dropout(), "Dropout1d": _dropout(), "Dropout2d": _dropout(),
    "StochasticDepth": _dropout("stochastic_depth"), "DropPath": _dropout("stochastic_depth"),
    "Flatten": _reshape, "Unflatten": _reshape,
    "Identity": _same,
    "ZeroPad2d": _zero_pad,
    "ChannelShuffle": _shuffle,
    **{kind: _activation(op) for kind, op in _ACTIVATIONS.items()},
}
