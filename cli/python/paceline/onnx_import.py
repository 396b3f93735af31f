"""Networks from ONNX: each operator of a graph becomes a layer, or a part of one."""

import os
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from .errors import InputError, UnavailableError
from .layers import LayerList, input_of
from .onnx_constants import MOST_NUMBERS, computed
from .onnx_operators import OPERATORS
from .operands import Constant, Parameter, Refused, Scores, Statistic, is_causal_mask
from .operators import Operators
from .values import Network, PathOrName
from .views import NoLayer, ReadsRefused, Shape, View

if TYPE_CHECKING:
    import onnx

__all__ = ["from_onnx"]

_LARGEST_MIB = 4096
# What reading operators raises whose inputs or attributes are not those that ONNX says.
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, RuntimeError, StopIteration, TypeError, ValueError)


def from_onnx(model: "onnx.ModelProto | PathOrName", *, name: str | None = None,
              stored_sample: str | None = None, loss: bool = True) -> Network:
    """The network of an ONNX model, or of its file. Backward costs are those of the layers.

    Its parameters are the initializers that its layers multiply, add and normalise by; the running mean
    and variance of a batch norm are none. Layers that are written out in their parts, as exporters do with
    layer norms, GELU and attention, are told by what they compute. With ``loss``, a cross-entropy of a
    softmax is put behind a vector or a sequence, in the place of a softmax at the end.

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
            raise InputError(f"{path}: no ONNX model can be read: {_first_line(error)}", path) from error
        title = name or os.path.splitext(os.path.basename(path))[0]
    else:
        title = name or model.graph.name or "onnx"
    try:
        reader = _Reader(model.graph, title)
        reader.read(loss)
    except _UNREADABLE as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{title}: its graph cannot be read: {_first_line(error)}", title) from error
    return reader.operators.layers.network(reader.operators.taken, stored_sample)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


class _Reader:
    """Makes layers of the nodes of a graph."""

    def __init__(self, graph: Any, title: str) -> None:
        self.graph, self.title = graph, title
        self.values: dict[str, Any] = {}
        for tensor in graph.initializer:
            self.values[tensor.name] = self._initializer(tensor, tuple(tensor.dims))
        inputs = [value for value in graph.input if value.name not in self.values]
        if len(inputs) != 1:
            raise InputError(f"{title}: it has {len(inputs)} inputs; a network has one", title)
        dimensions = [d.dim_value for d in inputs[0].type.tensor_type.shape.dim]
        if len(dimensions) < 2 or min(dimensions) < 0 or min(dimensions[1:]) < 1:
            raise InputError(f"{title}: its input '{inputs[0].name}' has no fixed shape for a sample; export it with "
                             "numbers for all dimensions but the first", title)
        samples = dimensions[0] or 1  # a dimension without a number is that of the batch
        is_tokens = inputs[0].type.tensor_type.elem_type in (6, 7)  # INT32, INT64
        document = input_of(dimensions[1:], is_tokens)
        self.operators = Operators(LayerList(title, title, document), samples)
        self.values[inputs[0].name] = self.operators.input(Shape.of(document), (samples, *dimensions[1:]))

    def _initializer(self, tensor: Any, sizes: tuple[int, ...]) -> Any:
        """Tensors of floating point are parameters, unless they are a causal mask."""
        is_few = prod(sizes) <= MOST_NUMBERS
        if tensor.data_type in (1, 10, 11, 16) and sizes:
            if len(sizes) >= 2 and sizes[-1] == sizes[-2] and is_few and is_causal_mask(_array(tensor)):
                return Constant(sizes, causal=True)
            return Parameter((tensor.name,), sizes, (sizes,))
        array = _array(tensor) if is_few else None
        return Constant(sizes, is_causal_mask(array), array)

    def read(self, loss: bool) -> None:
        last = self.graph.output[0].name if self.graph.output else ""
        for index, node in enumerate(self.graph.node):
            self._node(node, node.name or f"{node.op_type}_{index}", last)
        layers, operators, value = self.operators.layers, self.operators, self.values.get(last)
        if layers.unknown:
            return
        if not isinstance(value, View):
            layers.refuse("an output that is no tensor of the samples", last or "output")
            return
        try:
            settled = operators.settled(value)
            rank = len(settled.sizes)
            roles, shape = operators.natural_shape(settled) if rank == 4 else operators.features_last(settled)
            layer = operators.as_roles(settled, roles, shape)
            if loss and rank in (2, 3):
                operators.add("loss", "softmax_cross_entropy", [layer])
        except NoLayer as problem:
            layers.refuse(f"an output {problem}".strip(), last)

    def _node(self, node: Any, name: str, last: str) -> None:
        operator = node.op_type
        try:
            values = [self._value(value) if value else None for value in node.input]
            of = _attributes(node)
            made = self._made(operator, node, values, of, name, last)
        except ReadsRefused:
            made = Refused()
        except NoLayer as problem:
            self.operators.layers.refuse(f"{operator} {problem}".strip(), name)
            made = Refused()
        except _UNREADABLE as problem:
            self.operators.layers.refuse(f"{operator} in a form that is not read ({_first_line(problem)[:60]})", name)
            made = Refused()
        several = made if isinstance(made, list) else [made] * len(node.output)
        self.values |= dict(zip(node.output, several))

    def _value(self, name: str) -> Any:
        value = self.values.get(name)
        if value is None:
            raise NoLayer("of an unknown value")
        if isinstance(value, Parameter) and value.after == "":
            value = self.values[name] = replace(value, after=self.operators.last)
        return value

    def _made(self, operator: str, node: Any, values: list[Any], of: dict[str, Any], name: str, last: str) -> Any:
        if operator == "Constant":
            tensor = of.get("value")
            if tensor is not None and hasattr(tensor, "dims"):
                return Constant(tuple(tensor.dims), array=_array(tensor) if prod(tensor.dims) <= MOST_NUMBERS else None)
            import numpy as np
            if not of:
                raise NoLayer("without a value")
            array = np.array(next(iter(of.values())))
            return Constant(array.shape, array=array)
        if operator == "Shape":
            if isinstance(values[0], Refused):
                return Constant()
            import numpy as np
            sizes = np.array(values[0].sizes, dtype=np.int64)
            return Constant(sizes.shape, array=sizes)
        if operator in ("Softmax", "LogSoftmax") and node.output[0] == last and isinstance(values[0], View):
            return values[0]  # the loss has it
        known = OPERATORS.get(operator)
        if all(value is None or isinstance(value, Constant) for value in values):
            return self._constant(operator, values, of)
        if known is None:
            if not any(isinstance(value, (View, Scores, Statistic, Refused)) for value in values):
                raise NoLayer("of a parameter")
            raise NoLayer
        if any(isinstance(value, Refused) for value in values):
            return Refused()
        return known(self.operators, values, of, name, node)

    def _constant(self, operator: str, values: list[Any], of: dict[str, Any]) -> Constant:
        causal = operator == "Trilu" or any(value is not None and value.causal for value in values)
        if hasattr(of.get("value"), "dims"):
            numbers = _array(of["value"])
            of = of | {"value": None if numbers is None or numbers.size != 1 else numbers.reshape(-1)[0]}
        try:
            array = computed(operator, [value.array for value in values if value is not None], of)
        except Exception:
            array = None
        return Constant(() if array is None else array.shape, causal, array)


def _array(tensor: Any) -> Any:
    """The numbers of a tensor; None if they are in another file, or are none."""
    from onnx import numpy_helper
    try:
        return numpy_helper.to_array(tensor)
    except Exception:
        return None


def _attributes(node: Any) -> dict[str, Any]:
    kinds = {1: "f", 2: "i", 4: "t", 6: "floats", 7: "ints"}
    found: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.type == 3:
            found[attribute.name] = attribute.s.decode(errors="replace")
        elif attribute.type in kinds:
            value = getattr(attribute, kinds[attribute.type])
            found[attribute.name] = list(value) if attribute.type > 4 else value
    return found
