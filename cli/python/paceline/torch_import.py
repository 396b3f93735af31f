"""Networks from PyTorch: a module is traced by torch.fx, and each of its operators becomes a layer."""

import copy
from typing import TYPE_CHECKING, Any, Callable

from .errors import InputError, UnavailableError
from .layers import INPUT, LayerList, input_of
from .values import Network

if TYPE_CHECKING:
    import torch

__all__ = ["from_torch"]

# Operators that read and write each element once, by what they keep for the backward pass: their output,
# as ReLU does, or their input, as GELU does.
_AS_RELU = ("relu", "relu_", "relu6", "leaky_relu", "leaky_relu_", "hardtanh", "hardtanh_", "threshold")
_AS_GELU = ("gelu", "silu", "hardswish", "hardsigmoid", "elu", "elu_", "selu", "celu", "mish", "softplus")
_AS_TANH = ("tanh", "tanh_", "sigmoid", "sigmoid_")
_RESHAPES = ("view", "reshape", "flatten", "squeeze", "unsqueeze")
_SAME = ("contiguous", "clone", "to", "float", "detach")


def from_torch(module: "torch.nn.Module", sample: "torch.Tensor", *, name: str | None = None,
               stored_sample: str | None = None, loss: bool = True) -> Network:
    """The network that a module computes for a batch like ``sample``, whose first dimension counts
    samples.

    The module is not changed: a copy of it is traced, and run once on the sample in evaluation. Its
    layers have its own names, and as many parameters as it has, all told; a module with parameters that
    no layer has is refused. ``stored_sample`` is the size of a sample on storage ("112 kB"). With
    ``loss``, a cross-entropy of a softmax is put behind a vector or a sequence.

    Raises InputError, which lists all operators that have no layer (docs/python.md), and
    UnavailableError without PyTorch.
    """
    try:
        import torch
        import torch.fx
        from torch.fx.passes.shape_prop import ShapeProp
    except ImportError as error:
        raise UnavailableError(f"PyTorch is not installed: {error}") from error
    title = name or type(module).__name__
    if not isinstance(sample, torch.Tensor) or sample.dim() < 2:
        raise InputError("the sample is no batch; give a tensor whose first dimension counts samples")
    traced = copy.deepcopy(module).eval()
    try:
        graph_module = torch.fx.GraphModule(traced, torch.fx.Tracer().trace(traced))
        graph_module.graph.eliminate_dead_code()
    except Exception as error:
        raise InputError(f"{title}: torch.fx cannot trace it: {str(error).splitlines()[0]}", title) from error
    with torch.no_grad():
        try:
            ShapeProp(graph_module).propagate(sample)
        except Exception as error:
            raise InputError(f"{title}: it cannot compute the sample: {str(error).splitlines()[0]}",
                             title) from error
    is_tokens = not sample.dtype.is_floating_point
    layers = LayerList(title, title, input_of(tuple(sample.shape[1:]), is_tokens))
    _Reader(graph_module, layers).read(loss)
    return layers.network({key: value.numel() for key, value in module.named_parameters()}, stored_sample)


def _pair(value: Any) -> Any:
    """A size of PyTorch as documents write it: a number, or [height, width]."""
    if isinstance(value, (tuple, list)):
        return value[0] if len(value) == 1 or value[0] == value[1] else list(value[:2])
    return value


class _Reader:
    """Makes layers of the nodes of a traced module."""

    def __init__(self, module: Any, layers: LayerList) -> None:
        self.module, self.layers = module, layers
        self.of: dict[Any, str | None] = {}  # the layer whose output a node is
        self.tables: dict[int, str] = {}  # embeddings, by their weights
        self.positions: set[str | None] = set()  # embeddings of places, and what keeps their shape
        self.with_parameters: set[str] = set()
        self.refused: set[Any] = set()  # nodes without a layer, and what reads them

    def read(self, loss: bool) -> None:
        for node in self.module.graph.nodes:
            getattr(self, f"_{node.op}")(node)
        if loss and not self.layers.unknown and self.last is not None:
            rank = len(_shape(self.last))
            if rank in (2, 3):
                self.layers.add("loss", "softmax_cross_entropy", [self._layer(self.last)])

    # One function for each kind of node.

    def _placeholder(self, node: Any) -> None:
        if INPUT in self.of.values():
            if node.users:
                self.layers.refuse("a second input", node.name)
            return
        self.of[node] = INPUT

    def _get_attr(self, node: Any) -> None:
        self.of[node] = None

    def _output(self, node: Any) -> None:
        self.last = node.args[0]
        if not hasattr(self.last, "op") or self.of.get(self.last) is None:
            if not self.layers.unknown:
                self.layers.refuse("several outputs", node.name)
            self.last = None

    def _call_module(self, node: Any) -> None:
        module = self.module.get_submodule(node.target)
        if any(True for _ in module.parameters()):
            if node.target in self.with_parameters:
                return self._refuse(node, f"{type(module).__name__} used twice")
            self.with_parameters.add(node.target)
        self._emit(node, type(module).__name__, node.target, module)

    def _call_function(self, node: Any) -> None:
        self._call(node, getattr(node.target, "__name__", str(node.target)))

    def _call_method(self, node: Any) -> None:
        self._call(node, node.target)

    # What they share.

    def _layer(self, node: Any) -> str:
        if node in self.refused:
            raise _ReadsRefused
        layer = self.of.get(node)
        if layer is None:
            raise _NoLayer
        return layer

    def _refuse(self, node: Any, operator: str | None) -> None:
        """Remembers an operator that has no layer; None has one, and reads what has none."""
        if operator is not None:
            self.layers.refuse(operator, str(node.target) if node.op == "call_module" else node.name)
        self.refused.add(node)
        self.of[node] = None

    def _emit(self, node: Any, kind: str, name: str, module: Any) -> None:
        if kind not in _MODULES:
            return self._refuse(node, kind)
        try:
            self.of[node] = _MODULES[kind](self, node, name, module)
        except _ReadsRefused:
            self._refuse(node, None)
        except _NoLayer as problem:
            self._refuse(node, f"{kind} {problem}".strip())

    def _call(self, node: Any, operator: str) -> None:
        import torch
        if issubclass(node.meta.get("type", object), (int, float, bool, str, torch.Size, torch.device,
                                                      torch.dtype, type(None))):
            self.of[node] = None  # a number, such as a size
            return
        try:
            self.of[node] = self._function(node, operator)
        except _ReadsRefused:
            self._refuse(node, None)
        except _NoLayer as problem:
            self._refuse(node, f"{operator} {problem}".strip())

    def _function(self, node: Any, operator: str) -> str:
        add, first = self.layers.add, node.args[0] if node.args else None
        if operator in ("add", "iadd", "add_"):
            others = [arg for arg in node.args if hasattr(arg, "op")]
            if len(others) == 2 and _shape(others[0]) != _shape(others[1]):
                # Positions of a sequence are the same in each sample.
                others.sort(key=lambda arg: -len(_shape(arg)))
                whole, second = _shape(others[0]), _shape(others[1])
                if not (second in (whole[1:], (1, *whole[1:])) and self.of.get(others[1]) in self.positions):
                    raise _NoLayer("of different shapes")
            elif len(others) != 2:
                raise _NoLayer("of a number")
            return add(node.name, "add", [self._layer(arg) for arg in others])
        if operator in ("cat", "concat"):
            return self._concat(node)
        if operator in _SAME or operator in ("getitem", "getattr"):
            if operator == "getitem" and node.args[1] != 0:
                raise _NoLayer
            return self._layer(first)
        if operator in _RESHAPES:
            return self._reshape(node, node.name, first)
        if operator == "mean":
            return self._mean(node)
        for names, kind in ((_AS_RELU, "relu"), (_AS_GELU, "gelu"), (_AS_TANH, "tanh")):
            if operator in names:
                return add(node.name, kind, [self._layer(first)])
        arguments = dict(zip(_ARGUMENTS.get(operator, ()), node.args[1:])) | node.kwargs
        if operator in ("dropout", "dropout_", "feature_dropout", "stochastic_depth"):
            return self._dropout(node, node.name, float(arguments.get("p", 0.5)))
        if operator in ("max_pool2d", "boolean_dispatch", "avg_pool2d"):
            kind = "average_pool" if operator == "avg_pool2d" else "max_pool"
            return self._pool(node, node.name, kind, arguments)
        if operator == "adaptive_avg_pool2d":
            return self._adaptive(node, node.name, arguments.get("output_size"))
        raise _NoLayer

    def _concat(self, node: Any) -> str:
        tensors = node.args[0]
        dimension = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else 0)
        rank = len(_shape(node))
        channels = 2 if rank == 3 else 1
        if dimension % rank != channels:
            raise _NoLayer(f"along dimension {dimension}")
        inputs = [self._layer(tensor) for tensor in tensors]
        return self.layers.add(node.name, "concat", inputs) if len(inputs) > 1 else inputs[0]

    def _reshape(self, node: Any, name: str, first: Any) -> str:
        before, after = _shape(first), _shape(node)
        if before == after:
            return self._layer(first)
        if len(after) == 2 and before[0] == after[0]:
            return self.layers.add(name, "flatten", [self._layer(first)])
        raise _NoLayer(f"of {_listed(before)} to {_listed(after)}")

    def _mean(self, node: Any) -> str:
        arguments = dict(zip(("dim", "keepdim"), node.args[1:])) | node.kwargs
        before, dimensions = _shape(node.args[0]), arguments.get("dim", ())
        dimensions = {d % len(before) for d in (dimensions if isinstance(dimensions, (list, tuple)) else [dimensions])}
        if len(before) != 4 or dimensions != {2, 3}:
            raise _NoLayer(f"of dimensions {_listed(dimensions)}")
        pooled = self.layers.add(node.name, "adaptive_average_pool", [self._layer(node.args[0])], output=1)
        if arguments.get("keepdim"):
            return pooled
        return self.layers.add(f"{node.name}.flatten", "flatten", [pooled])

    def _dropout(self, node: Any, name: str, probability: float) -> str:
        source = self._layer(node.args[0])
        if probability == 0:
            return source
        return self.layers.add(name, "dropout", [source], probability=probability)

    def _pool(self, node: Any, name: str, kind: str, of: dict[str, Any]) -> str:
        if _pair(of.get("dilation", 1)) != 1 or of.get("return_indices") or of.get("divisor_override"):
            raise _NoLayer("with dilation, indices or a divisor")
        kernel = of["kernel_size"]
        stride = of.get("stride")
        return self.layers.add(name, kind, [self._layer(node.args[0])], kernel=_pair(kernel),
                               stride=_pair(kernel if stride in (None, []) else stride),
                               padding=_pair(of.get("padding", 0)), ceil=bool(of.get("ceil_mode", False)))

    def _adaptive(self, node: Any, name: str, output: Any) -> str:
        height, width = _shape(node)[2:]
        return self.layers.add(name, "adaptive_average_pool", [self._layer(node.args[0])],
                               output=_pair((height, width)))

    def _linear(self, name: str, source: str, rank: int, outputs: int, bias: bool) -> str:
        if rank not in (2, 3):
            raise _NoLayer(f"of {rank} dimensions")
        return self.layers.add(name, "linear" if rank == 3 else "fully_connected", [source], outputs=outputs,
                               bias=bias)

    # Layers of torch.nn.

    def _conv(self, node: Any, name: str, module: Any) -> str:
        padding = module.padding
        if padding == "valid":
            padding = (0, 0)
        elif padding == "same":
            whole = [d * (k - 1) for k, d in zip(module.kernel_size, module.dilation)]
            if any(size % 2 for size in whole):
                raise _NoLayer("with uneven padding")
            padding = tuple(size // 2 for size in whole)
        return self.layers.add(name, "convolution", [self._layer(node.args[0])], channels=module.out_channels,
                               kernel=_pair(module.kernel_size), stride=_pair(module.stride),
                               padding=_pair(padding), dilation=_pair(module.dilation), groups=module.groups,
                               bias=module.bias is not None)

    def _full(self, node: Any, name: str, module: Any) -> str:
        source, table = self._layer(node.args[0]), self.tables.get(id(module.weight))
        if table is not None:
            return self.layers.add(name, "tied_linear", [source, table], bias=module.bias is not None)
        return self._linear(name, source, len(_shape(node.args[0])), module.out_features,
                            module.bias is not None)

    def _batch_norm(self, node: Any, name: str, module: Any) -> str:
        if not module.affine:
            raise _NoLayer("without parameters")
        return self.layers.add(name, "batch_norm", [self._layer(node.args[0])])

    def _layer_norm(self, node: Any, name: str, module: Any) -> str:
        if len(_shape(node)) > 3:
            raise _NoLayer(f"of {len(_shape(node))} dimensions")
        if not module.elementwise_affine or len(module.normalized_shape) != 1:
            raise _NoLayer(f"over {_listed(module.normalized_shape)}")
        return self.layers.add(name, "layer_norm", [self._layer(node.args[0])])

    def _embedding(self, node: Any, name: str, module: Any) -> str:
        # What is not the input is the place of each element: a buffer, or a range of numbers.
        of = "tokens" if self.of.get(node.args[0]) == INPUT else "positions"
        layer = self.layers.add(name, "embedding", [INPUT], of=of, entries=module.num_embeddings,
                                features=module.embedding_dim)
        self.tables[id(module.weight)] = layer
        if of == "positions":
            self.positions.add(layer)
        return layer

    def _attend(self, name: str, source: str, attention: Any) -> str:
        width, bias = attention.embed_dim, attention.in_proj_bias is not None
        if not attention._qkv_same_embed_dim or attention.bias_k is not None:
            raise _NoLayer("with keys or values of another size")
        layer = self._linear(f"{name}.in_proj", source, 3, 3 * width, bias)
        layer = self.layers.add(name, "attention", [layer], heads=attention.num_heads,
                                dropout=attention.dropout)
        return self._linear(f"{name}.out_proj", layer, 3, width, attention.out_proj.bias is not None)

    def _attention(self, node: Any, name: str, module: Any) -> str:
        if not module.batch_first or any(other is not node.args[0] for other in node.args[1:3]):
            raise _NoLayer("over other keys, or not batch_first")
        return self._attend(name, self._layer(node.args[0]), module)

    def _encoder_layer(self, name: str, source: str, module: Any) -> str:
        if not module.self_attn.batch_first:
            raise _NoLayer("not batch_first")
        add = self.layers.add

        def norm(which: str, layer: str) -> str:
            return add(f"{name}.{which}", "layer_norm", [layer])

        def drop(which: str, layer: str) -> str:
            probability = getattr(module, which).p
            return add(f"{name}.{which}", "dropout", [layer], probability=probability) if probability else layer

        def attend(layer: str) -> str:
            return drop("dropout1", self._attend(f"{name}.self_attn", layer, module.self_attn))

        def feed(layer: str) -> str:
            first, second = module.linear1, module.linear2
            layer = self._linear(f"{name}.linear1", layer, 3, first.out_features, first.bias is not None)
            activation = getattr(module.activation, "__name__", type(module.activation).__name__).lower()
            layer = add(f"{name}.activation", "relu" if activation in _AS_RELU else "gelu", [layer])
            layer = self._linear(f"{name}.linear2", drop("dropout", layer), 3, second.out_features,
                                 second.bias is not None)
            return drop("dropout2", layer)

        if module.norm_first:
            source = add(f"{name}.add1", "add", [source, attend(norm("norm1", source))])
            return add(f"{name}.add2", "add", [source, feed(norm("norm2", source))])
        source = norm("norm1", add(f"{name}.add1", "add", [source, attend(source)]))
        return norm("norm2", add(f"{name}.add2", "add", [source, feed(source)]))

    def _encoder(self, node: Any, name: str, module: Any) -> str:
        layer = self._layer(node.args[0])
        for index, inner in enumerate(module.layers):
            layer = self._encoder_layer(f"{name}.layers.{index}", layer, inner)
        return layer if module.norm is None else self.layers.add(f"{name}.norm", "layer_norm", [layer])

    def _simple(kind: str) -> "Callable[[_Reader, Any, str, Any], str]":  # type: ignore[misc]
        return lambda self, node, name, module: self.layers.add(name, kind, [self._layer(node.args[0])])

    _relu, _gelu, _tanh = _simple("relu"), _simple("gelu"), _simple("tanh")


class _NoLayer(Exception):
    """An operator has no layer; the text says in which form."""


class _ReadsRefused(_NoLayer):
    """An operator reads what has no layer, and might have one itself."""


def _shape(node: Any) -> tuple[int, ...]:
    """The shape of a node's tensor. Raises _NoLayer if it has none."""
    shape = getattr(node.meta.get("tensor_meta"), "shape", None)
    if shape is None:
        raise _NoLayer
    return tuple(shape)


def _listed(sizes: Any) -> str:
    return " x ".join(map(str, sizes))


_ARGUMENTS = {
    "dropout": ("p",), "dropout_": ("p",), "feature_dropout": ("p",), "stochastic_depth": ("p",),
    "max_pool2d": ("kernel_size", "stride", "padding", "dilation", "ceil_mode"),
    "boolean_dispatch": ("kernel_size", "stride", "padding", "dilation", "ceil_mode"),
    "avg_pool2d": ("kernel_size", "stride", "padding", "ceil_mode"),
    "adaptive_avg_pool2d": ("output_size",),
}

_MODULES: dict[str, Callable[[_Reader, Any, str, Any], str]] = {
    "Conv2d": _Reader._conv,
    "Linear": _Reader._full,
    "NonDynamicallyQuantizableLinear": _Reader._full,
    "BatchNorm1d": _Reader._batch_norm,
    "BatchNorm2d": _Reader._batch_norm,
    "SyncBatchNorm": _Reader._batch_norm,
    "LayerNorm": _Reader._layer_norm,
    "Embedding": _Reader._embedding,
    "MultiheadAttention": _Reader._attention,
    "TransformerEncoder": _Reader._encoder,
    "TransformerEncoderLayer":
        lambda self, node, name, module: self._encoder_layer(name, self._layer(node.args[0]), module),
    "MaxPool2d": lambda self, node, name, module: self._pool(node, name, "max_pool", vars(module)),
    "AvgPool2d": lambda self, node, name, module: self._pool(node, name, "average_pool", vars(module)),
    "AdaptiveAvgPool2d": lambda self, node, name, module: self._adaptive(node, name, module.output_size),
    "LocalResponseNorm":
        lambda self, node, name, module: self.layers.add(name, "lrn", [self._layer(node.args[0])],
                                                         size=module.size),
    "Dropout": lambda self, node, name, module: self._dropout(node, name, module.p),
    "Dropout2d": lambda self, node, name, module: self._dropout(node, name, module.p),
    "StochasticDepth": lambda self, node, name, module: self._dropout(node, name, module.p),
    "Flatten": lambda self, node, name, module: self._reshape(node, name, node.args[0]),
    "Identity": lambda self, node, name, module: self._layer(node.args[0]),
} | {kind: _Reader._relu for kind in ("ReLU", "ReLU6", "LeakyReLU", "Hardtanh", "Threshold")} | {
    kind: _Reader._gelu for kind in ("GELU", "SiLU", "Hardswish", "Hardsigmoid", "ELU", "SELU", "CELU", "Mish",
                                     "Softplus")} | {
    kind: _Reader._tanh for kind in ("Tanh", "Sigmoid")}
