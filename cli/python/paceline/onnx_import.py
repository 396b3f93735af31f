"""Networks from ONNX: each operator of a graph becomes a layer."""

import os
from typing import TYPE_CHECKING, Any, Callable

from .errors import InputError, UnavailableError
from .layers import INPUT, LayerList, input_of
from .values import Network, PathOrName

if TYPE_CHECKING:
    import onnx

__all__ = ["from_onnx"]

_AS_RELU = ("Relu", "Clip", "LeakyRelu", "ThresholdedRelu")
_AS_GELU = ("Gelu", "HardSigmoid", "HardSwish", "Elu", "Selu", "Celu", "Mish", "Softplus", "Erf")
_AS_TANH = ("Tanh", "Sigmoid")
_RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")
_LARGEST_MIB = 4096


def from_onnx(model: "onnx.ModelProto | PathOrName", *, name: str | None = None,
              stored_sample: str | None = None, loss: bool = True) -> Network:
    """The network of an ONNX model, or of its file. Backward costs are those of the layers.

    Its parameters are the initializers that its layers multiply, add and normalise by; the running mean
    and variance of a batch norm are none. With ``loss``, a cross-entropy of a softmax is put behind a
    vector or a sequence, in the place of a softmax at the end.

    Raises InputError, which lists all operators that have no layer (docs/python.md), and
    UnavailableError without the package onnx.
    """
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise UnavailableError(f"the package onnx is not installed: {error}") from error
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        try:
            if os.path.getsize(path) > _LARGEST_MIB << 20:
                raise InputError(f"{path} has more than {_LARGEST_MIB} MiB", path)
            # Sizes are in the model; weights in other files are not read.
            model = onnx.load(path, load_external_data=False)
        except (OSError, DecodeError) as error:
            raise InputError(f"{path}: no ONNX model can be read: {error}", path) from error
        title = name or os.path.splitext(os.path.basename(path))[0]
    else:
        title = name or model.graph.name or "onnx"
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
    except Exception as error:
        raise InputError(f"{title}: its shapes cannot be inferred: {str(error).splitlines()[0]}", title) from error
    reader = _Reader(inferred.graph, title)
    reader.read(loss)
    return reader.layers.network(reader.parameters, stored_sample)


class _NoLayer(Exception):
    """An operator has no layer; the text says in which form."""


class _ReadsRefused(_NoLayer):
    """An operator reads what has no layer, and might have one itself."""


def _pair(sizes: Any) -> Any:
    values = [int(size) for size in sizes]
    return values[0] if len(set(values)) == 1 else values


class _Reader:
    """Makes layers of the nodes of a graph."""

    def __init__(self, graph: Any, title: str) -> None:
        self.graph = graph
        self.weights = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant":
                self.constants |= {node.output[0]: a.t for a in node.attribute if a.name == "value"}
        self.shapes: dict[str, tuple[int, ...]] = {}
        for value in [*graph.input, *graph.value_info, *graph.output]:
            dimensions = value.type.tensor_type.shape.dim
            # A dimension without a number is that of the batch.
            self.shapes[value.name] = tuple(d.dim_value or 1 for d in dimensions)
        inputs = [value for value in graph.input if value.name not in self.weights]
        if len(inputs) != 1:
            raise InputError(f"{title}: it has {len(inputs)} inputs; a network has one", title)
        self.input = inputs[0].name
        is_tokens = inputs[0].type.tensor_type.elem_type in (6, 7)  # INT32, INT64
        self.layers = LayerList(title, title, input_of(self.shapes[self.input][1:], is_tokens))
        self.of: dict[str, str | None] = {self.input: INPUT}  # the layer of each value
        self.refused: set[str] = set()
        self.parameters: dict[str, int] = {}
        self.kinds: dict[str, str] = {}  # of layers, for what is added to them

    def read(self, loss: bool) -> None:
        for index, node in enumerate(self.graph.node):
            self._node(node, node.name or f"{node.op_type}_{index}")
        last = self.graph.output[0].name
        if loss and not self.layers.unknown and len(self.shapes.get(last, ())) in (2, 3):
            self.layers.add("loss", "softmax_cross_entropy", [self._layer(last)])

    def _node(self, node: Any, name: str) -> None:
        operator = node.op_type
        if operator in ("Constant", "Shape"):
            return
        if operator == "Transpose" and node.input[0] in self.weights:
            dims = self.weights[node.input[0]]
            order = next((list(a.ints) for a in node.attribute if a.name == "perm"), range(len(dims))[::-1])
            if sorted(order) == list(range(len(dims))):
                self.weights[node.output[0]] = tuple(dims[axis] for axis in order)
                return
        if all(value in self.constants or self.of.get(value, "") is None and value not in self.refused
               for value in node.input if value):
            self.of |= {value: None for value in node.output}  # arithmetic of sizes
            return
        try:
            layer = self._emit(node, name)
        except _NoLayer as problem:
            if not isinstance(problem, _ReadsRefused):
                self.layers.refuse(f"{operator} {problem}".strip(), name)
            self.refused |= set(node.output)
            return
        self.of |= {value: layer for value in node.output}

    def _layer(self, value: str) -> str:
        if value in self.refused:
            raise _ReadsRefused
        layer = self.of.get(value)
        if layer is None:
            raise _NoLayer
        return layer

    def _shape(self, value: str) -> tuple[int, ...]:
        if value not in self.shapes:
            raise _NoLayer("of unknown shape")
        return self.shapes[value]

    def _take(self, layer: str, value: str, what: str) -> tuple[int, ...]:
        """Notes that a layer has an initializer for its parameter."""
        if value not in self.weights:
            raise _NoLayer(f"whose {what} is no initializer")
        shape, elements = self.weights[value], 1
        for size in shape:
            elements *= size
        self.parameters[f"{layer}.{what}"] = elements
        return shape

    def _add(self, name: str, kind: str, inputs: list[str], **attributes: object) -> str:
        layer = self.layers.add(name, kind, inputs, **attributes)
        self.kinds[layer] = kind
        return layer

    def _emit(self, node: Any, name: str) -> str:
        operator = node.op_type
        for names, kind in ((_AS_RELU, "relu"), (_AS_GELU, "gelu"), (_AS_TANH, "tanh")):
            if operator in names:
                return self._add(name, kind, [self._layer(node.input[0])])
        if operator in _RESHAPES:
            return self._reshape(node, name)
        if operator in ("Identity", "Cast") or operator == "Softmax" and node.output[0] == self.graph.output[0].name:
            return self._layer(node.input[0])
        if operator == "Pad" and self._shape(node.input[0]) == self._shape(node.output[0]):
            return self._layer(node.input[0])
        if operator not in _OPERATORS:
            raise _NoLayer
        attributes = {}
        for attribute in node.attribute:
            attributes[attribute.name] = {1: attribute.f, 2: attribute.i, 3: attribute.s.decode(errors="replace"),
                                          7: list(attribute.ints)}.get(attribute.type)
        return _OPERATORS[operator](self, node, name, attributes)

    def _reshape(self, node: Any, name: str) -> str:
        before, after = self._shape(node.input[0]), self._shape(node.output[0])
        layer = self._layer(node.input[0])
        if before == after:
            return layer
        if len(after) == 2 and before[0] == after[0]:
            return self._add(name, "flatten", [layer])
        raise _NoLayer("of " + " x ".join(map(str, before)) + " to " + " x ".join(map(str, after)))

    def _window(self, node: Any, of: dict[str, Any]) -> dict[str, object]:
        """Kernel, stride and padding of a convolution or of pooling."""
        kernel = of["kernel_shape"]
        if len(kernel) != 2:
            raise _NoLayer(f"of {len(kernel)} dimensions")
        pads = of.get("pads") or [0, 0, 0, 0]
        strides, dilations = of.get("strides") or [1, 1], of.get("dilations") or [1, 1]
        if of.get("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
            sizes = self._shape(node.input[0])[2:]
            room = [max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n)
                    for n, s, k, d in zip(sizes, strides, kernel, dilations)]
            pads = [room[0] // 2, room[1] // 2, -(-room[0] // 2), -(-room[1] // 2)]
        if pads[:2] != pads[2:]:
            raise _NoLayer("with uneven padding")
        return {"kernel": _pair(kernel), "stride": _pair(strides), "padding": _pair(pads[:2])}

    def _conv(self, node: Any, name: str, of: dict[str, Any]) -> str:
        source, name = self._layer(node.input[0]), self.layers.free_name(name)
        shape, bias = self._take(name, node.input[1], "weight"), len(node.input) > 2 and node.input[2] != ""
        if bias:
            self._take(name, node.input[2], "bias")
        window = self._window(node, {"kernel_shape": list(shape[2:])} | of)
        return self._add(name, "convolution", [source], channels=shape[0], groups=of.get("group", 1), bias=bias,
                         dilation=_pair(of.get("dilations") or [1, 1]), **window)

    def _pool(self, node: Any, name: str, of: dict[str, Any]) -> str:
        if any(dilation != 1 for dilation in of.get("dilations") or []) or len(node.output) > 1:
            raise _NoLayer("with dilation or indices")
        kind = "max_pool" if node.op_type == "MaxPool" else "average_pool"
        return self._add(name, kind, [self._layer(node.input[0])], ceil=bool(of.get("ceil_mode", 0)),
                         **self._window(node, of))

    def _global_pool(self, node: Any, name: str, of: dict[str, Any]) -> str:
        return self._add(name, "adaptive_average_pool", [self._layer(node.input[0])], output=1)

    def _mean(self, node: Any, name: str, of: dict[str, Any]) -> str:
        rank = len(self._shape(node.input[0]))
        if rank != 4 or {axis % rank for axis in of.get("axes") or []} != {2, 3}:
            raise _NoLayer("of other dimensions than height and width")
        layer = self._global_pool(node, name, of)
        return layer if of.get("keepdims", 1) else self._add(f"{name}.flatten", "flatten", [layer])

    def _gemm(self, node: Any, name: str, of: dict[str, Any]) -> str:
        source, name = self._layer(node.input[0]), self.layers.free_name(name)
        shape, bias = self._take(name, node.input[1], "weight"), len(node.input) > 2
        if bias:
            self._take(name, node.input[2], "bias")
        return self._add(name, "fully_connected", [source], outputs=shape[0 if of.get("transB") else 1], bias=bias)

    def _product(self, node: Any, name: str, of: dict[str, Any]) -> str:
        rank = len(self._shape(node.output[0]))
        if rank not in (2, 3):
            raise _NoLayer(f"of {rank} dimensions")
        source, name = self._layer(node.input[0]), self.layers.free_name(name)
        outputs = self._take(name, node.input[1], "weight")[-1]
        return self._add(name, "linear" if rank == 3 else "fully_connected", [source], outputs=outputs, bias=False)

    def _sum(self, node: Any, name: str, of: dict[str, Any]) -> str:
        weights = [value for value in node.input if value in self.weights]
        others = [value for value in node.input if value not in self.weights]
        if len(weights) == 1 and len(others) == 1:
            # The bias of the product above it.
            layer = self._layer(others[0])
            last = self.layers.layers[-1]
            if last["name"] != layer or last.get("bias") is not False or len(self.weights[weights[0]]) != 1:
                raise _NoLayer("of an initializer")
            self._take(layer, weights[0], "bias")
            last["bias"] = True
            return layer
        if len({self._shape(value) for value in node.input}) != 1:
            raise _NoLayer("of different shapes")
        return self._add(name, "add", [self._layer(value) for value in node.input])

    def _concat(self, node: Any, name: str, of: dict[str, Any]) -> str:
        rank = len(self._shape(node.output[0]))
        if of["axis"] % rank != (2 if rank == 3 else 1):
            raise _NoLayer(f"along dimension {of['axis']}")
        inputs = [self._layer(value) for value in node.input]
        return self._add(name, "concat", inputs) if len(inputs) > 1 else inputs[0]

    def _norm(self, node: Any, name: str, of: dict[str, Any]) -> str:
        source, name = self._layer(node.input[0]), self.layers.free_name(name)
        self._take(name, node.input[1], "weight")
        self._take(name, node.input[2], "bias")
        return self._add(name, "batch_norm" if node.op_type == "BatchNormalization" else "layer_norm", [source])

    def _lrn(self, node: Any, name: str, of: dict[str, Any]) -> str:
        return self._add(name, "lrn", [self._layer(node.input[0])], size=of["size"])

    def _dropout(self, node: Any, name: str, of: dict[str, Any]) -> str:
        probability = of.get("ratio", 0.5)
        if len(node.input) > 1 and node.input[1] in self.constants:
            from onnx import numpy_helper
            probability = float(numpy_helper.to_array(self.constants[node.input[1]]))
        source = self._layer(node.input[0])
        return self._add(name, "dropout", [source], probability=probability) if probability else source


_OPERATORS: dict[str, Callable[[_Reader, Any, str, dict[str, Any]], str]] = {
    "Conv": _Reader._conv, "MaxPool": _Reader._pool, "AveragePool": _Reader._pool,
    "GlobalAveragePool": _Reader._global_pool, "ReduceMean": _Reader._mean, "Gemm": _Reader._gemm,
    "MatMul": _Reader._product, "Add": _Reader._sum, "Sum": _Reader._sum, "Concat": _Reader._concat,
    "BatchNormalization": _Reader._norm, "LayerNormalization": _Reader._norm, "LRN": _Reader._lrn,
    "Dropout": _Reader._dropout,
}
