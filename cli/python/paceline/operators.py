"""Operators on tensors, whichever tool names them, and the layers that they become.

What a network computes is walked through operator by operator. Tensors are views of the outputs of layers
(views.py); parameters, constants, means over features and scores of attention are values of their own kinds.
Arithmetic of single elements waits until it is read, so that a layer norm, a GELU or an attention that is
written out in its parts becomes the one layer that it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any, Callable, Sequence

from .layers import INPUT, LayerList
from .views import FEATURES, PLACES, SAMPLES, Base, NoLayer, ReadsRefused, Shape, View, fresh, listed

__all__ = ["ACTIVATIONS", "Constant", "Operators", "Parameter", "Refused", "Scores", "Statistic", "is_causal_mask",
           "owner"]

# What an activation keeps for the backward pass: its output, as ReLU and tanh do, or its input.
ACTIVATIONS = {
    "relu": "relu", "clip": "relu", "leaky_relu": "relu", "threshold": "relu", "tanh": "tanh", "sigmoid": "tanh",
    "gelu": "gelu", "silu": "gelu", "hardswish": "gelu", "hardsigmoid": "gelu", "elu": "gelu", "selu": "gelu",
    "celu": "gelu", "mish": "gelu", "softplus": "gelu", "erf": "gelu", "logsigmoid": "gelu", "softsign": "gelu",
    "prelu": "gelu", "exp": "tanh", "sqrt": "tanh", "rsqrt": "gelu", "abs": "gelu", "neg": "", "pow": "gelu", "reciprocal": "tanh", "log": "gelu", "sin": "gelu", "cos": "gelu",
}
# Those that are parts of others, such as the sigmoid of x * sigmoid(x). They wait for what reads them.
_PARTS = {"clip", "tanh", "sigmoid", "hardsigmoid", "softplus", "erf", "exp", "sqrt", "rsqrt", "pow", "reciprocal", "neg"}
_NUMBERS = {"number", "normalize"}  # what attention takes in: factors of queries and keys, and their norms


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


Value = Any  # one of the above, or a number


class Operators:
    """Makes layers of operators. Each function takes values, and gives that of the operator's output."""

    def __init__(self, layers: LayerList, samples: int) -> None:
        self.layers, self.samples = layers, samples
        self.arranged: dict[object, str] = {}  # the layers that have a tensor's elements in a shape
        self.movements = 0
        self.tables: dict[str, str] = {}  # embeddings of tokens, by their parameter
        self.taken: dict[str, int] = {}  # elements of the parameters that layers have

    # ----- layers

    @property
    def last(self) -> str:
        return self.layers.layers[-1]["name"] if self.layers.layers else INPUT

    def add(self, name: str, kind: str, inputs: Sequence[str], **attributes: object) -> str:
        return self.layers.add(name, kind, inputs, **attributes)

    def input(self, shape: Shape, sizes: Sequence[int]) -> View:
        rank = len(sizes)
        roles = [SAMPLES] + ([FEATURES] + [PLACES] * 2 if rank == 4 else [PLACES, FEATURES][-(rank - 1):])
        if shape.kind == "sequence" and rank == 2:
            roles = [SAMPLES, PLACES]  # tokens, whose one feature is their number
        return fresh(INPUT, shape, sizes, roles, self.samples)

    def view(self, value: Value) -> View:
        """A tensor that depends on the samples. Raises NoLayer if the value is none."""
        if isinstance(value, Refused):
            raise ReadsRefused
        if isinstance(value, View):
            return self.now(value)
        raise NoLayer("of attention's scores" if isinstance(value, Scores) else "")

    def now(self, value: Value) -> Value:
        """A value as it is since its pending arithmetic became a layer, if it did."""
        if isinstance(value, Statistic):
            return replace(value, of=self.now(value.of))
        return value.made.get("settled", value) if isinstance(value, View) else value

    def settled(self, view: View) -> View:
        """The tensor behind its pending arithmetic, which becomes a layer."""
        if not view.ops:
            return view
        if "settled" in view.made:
            return view.made["settled"]
        kinds = [ACTIVATIONS[op] for op in view.ops if ACTIVATIONS.get(op)]
        if "norm" in view.ops:
            if not view.weights:
                raise NoLayer("without parameters")
            made = self._normed(view)
        elif kinds:
            made = self.on_base(view, kinds[0] if len(view.ops) == 1 else "gelu")
        elif "product" in view.ops:
            made = self.on_base(view, "gelu")
        elif set(view.ops) <= {"neg", "number", "normalize"}:
            made = self.on_base(view, "scale", learned=False)
        else:
            raise NoLayer("of " + view.ops[-1])
        view.made["settled"] = made
        return made

    def on_base(self, view: View, kind: str, **attributes: object) -> View:
        """A layer that takes each element by itself, in whichever order they stand."""
        if view.parts:
            view = self._natural(view.but(ops=(), weights=()))
        shape = view.base.shape
        layer = self.add(view.name, kind, [view.base.layer], **attributes)
        return view.but(base=Base(layer, shape), ops=(), weights=())

    def _normed(self, view: View) -> View:
        *_, last = view.sizes
        plain = view.but(ops=(), weights=())
        name = owner(view.weights[0]) or view.name
        return self._each(plain, name, "layer_norm", last, **({} if len(view.weights) > 1 else {"bias": False}))

    def as_roles(self, view: View, roles: Sequence[str], shape: Shape) -> str:
        """The layer that has the tensor's elements in this shape, which is added where there is none yet."""
        view = self.settled(view)
        key = (view.root, tuple(roles), shape)
        if key not in self.arranged:
            self.arranged[key] = self._arrange(view, roles, shape)
        return self.arranged[key]

    def _arrange(self, view: View, roles: Sequence[str], shape: Shape) -> str:
        ordered, layer = view.ordered(roles), view.base.layer
        name = view.name or f"{layer}.moved"
        if prod(view.sizes) != shape.elements * self.samples:
            raise NoLayer(f"of {listed(view.sizes)}")
        if not view.parts:
            if ordered and shape == view.base.shape:
                return layer
            if shape.kind == "vector" and not view.moved and (ordered or view.base.shape.kind != "vector"):
                return self.add(name, "flatten", [layer])
            return self.add(name, "rearrange", [layer], output=shape.document(), **({"view": True} if ordered else {}))
        first = len(view.parts) == 1 and view.parts[0][0][0].role == PLACES and view.parts[0][1:3] == (0, 1)
        if first and shape.kind == "vector" and view.base.shape.kind == "sequence" and not view.moved:
            return self.add(name, "first_token", [layer])
        # The order of what is cut out does not matter to what it costs.
        layer = self.add(name, "slice", [layer], output=shape.document())
        return layer if ordered else self.add(name, "rearrange", [layer], output=shape.document())

    def features_last(self, view: View) -> tuple[list[str], Shape]:
        """The roles of the dimensions, and the shape, where the last dimension has the features."""
        sizes = view.sizes
        roles = [SAMPLES] + [PLACES] * (len(sizes) - 2) + [FEATURES]
        if not any(atom.role == SAMPLES for atom in view.dims[0]):
            roles[0] = PLACES
            for axis, dim in enumerate(view.dims[:-1]):
                if any(atom.role == SAMPLES for atom in dim):
                    roles[axis] = SAMPLES
        places = prod(sizes[:-1]) // self.samples
        base = view.base.shape
        if len(sizes) <= 2 and not any(atom.role == PLACES and atom.size > 1 for atom in view.dims[0]):
            return roles, Shape.vector(sizes[-1])
        if base.kind == "image" and len(sizes) == 4 and self._is_plain_image(view) \
                and view.roles() == roles:
            return roles, Shape.image(sizes[3], sizes[1], sizes[2])
        return roles, Shape.sequence(places, sizes[-1])

    def _is_plain_image(self, view: View) -> bool:
        """Whether the dimensions are those of the image behind it: each row and each column is one."""
        roles = view.roles() or []
        keys = [{atom.key[0] for atom in dim if atom.size > 1 and atom.role == PLACES} for dim in view.dims]
        places = [found for found, role in zip(keys, roles) if role == PLACES]
        return len(places) == 2 and not keys[0] and places[0] <= {0} and places[1] <= {1}

    def _natural(self, view: View) -> View:
        """The same tensor as the output of a layer, with the places and features that it has now."""
        view = self.settled(view)
        if not view.parts and not view.moved and view.roles() is not None and view.ordered(view.roles()):
            return view
        roles, shape = self.natural_shape(view)
        return fresh(self.as_roles(view, roles, shape), shape, view.sizes, roles, self.samples)

    def _reference(self, views: Sequence[View]) -> View:
        """The tensor whose shape the others take: one that needs no movement, if there is one."""
        def stays(view: View) -> bool:
            return not view.parts and self.natural_shape(view)[1] == view.base.shape and \
                view.ordered(self.natural_shape(view)[0])
        return next((view for view in views if stays(view)), views[0])

    def natural_shape(self, view: View) -> tuple[list[str], Shape]:
        roles = view.roles()
        sizes = view.sizes
        if roles is None or FEATURES not in roles or roles.count(FEATURES) > 1:
            return self.features_last(view)
        channels = sizes[roles.index(FEATURES)]
        places = [size for size, role in zip(sizes, roles) if role == PLACES]
        inner = prod(sizes) // channels // self.samples
        if len(places) == 2 and view.base.shape.kind == "image" and self._is_plain_image(view):
            return roles, Shape.image(channels, *places)
        if not places and inner == 1:
            return roles, Shape.vector(channels)
        return roles, Shape.sequence(inner, channels)

    # ----- layers that read an image, or each element

    def image(self, value: Value) -> tuple[str, View]:
        view = self.settled(self.view(value))
        sizes = view.sizes
        if len(sizes) != 4:
            raise NoLayer(f"of {len(sizes)} dimensions")
        shape = Shape.image(sizes[1], sizes[2], sizes[3])
        return self.as_roles(view, [SAMPLES, FEATURES, PLACES, PLACES], shape), view

    def windowed(self, value: Value, name: str, kind: str, sizes: Sequence[int], **attributes: object) -> View:
        """A layer over windows of an image, whose output has these sizes."""
        layer, _ = self.image(value)
        layer = self.add(name, kind, [layer], **attributes)
        return fresh(layer, Shape.image(*sizes[1:]), sizes, [SAMPLES, FEATURES, PLACES, PLACES], self.samples)  # type: ignore[arg-type]

    def batch_norm(self, value: Value, name: str) -> View:
        view = self.settled(self.view(value))
        if len(view.sizes) == 4:
            return self.windowed(view, name, "batch_norm", view.sizes)
        if len(view.sizes) == 2:
            return self._each(view, name, "batch_norm", view.sizes[-1])
        roles = [SAMPLES, FEATURES, PLACES]
        shape = Shape.sequence(view.sizes[2], view.sizes[1])
        layer = self.add(name, "batch_norm", [self.as_roles(view, roles, shape)])
        return fresh(layer, shape, view.sizes, roles, self.samples)

    def _each(self, view: View, name: str, kind: str, channels: int, *more: str, **attributes: object) -> View:
        """A layer over the features of each element, which are the last dimension."""
        view = self.settled(view)
        roles, shape = self.features_last(view)
        source = self.as_roles(view, roles, shape)
        if kind == "linear" and shape.kind == "vector":
            kind = "fully_connected"
        layer = self.add(name, kind, [source, *more], **attributes)
        shape = replace(shape, channels=channels)
        return fresh(layer, shape, (*view.sizes[:-1], channels), roles, self.samples)

    def layer_norm(self, value: Value, name: str, bias: bool = True) -> View:
        view = self.view(value)
        return self._each(view, name, "layer_norm", view.sizes[-1], **({} if bias else {"bias": False}))

    def linear(self, value: Value, name: str, outputs: int, bias: bool, weight: str) -> View:
        view = self.view(value)
        table = self.tables.get(weight)
        if table is not None:
            return self._each(view, name, "tied_linear", outputs, table, bias=bias)
        return self._each(view, name, "linear", outputs, outputs=outputs, bias=bias)

    def activation(self, value: Value, name: str, op: str) -> Value:
        if isinstance(value, Parameter) or isinstance(value, Constant):
            return value
        if isinstance(value, Statistic):
            return replace(value, name=op)
        view = self.view(value)
        fused = op in _PARTS
        goes_on = view.ops[-1:] == ("softplus",) or \
            set(view.ops) & {"number", "center"} and not set(view.ops) & {"product", "norm"}
        if view.ops and not (fused and goes_on):
            view = self.settled(view)
        view = view.but(ops=(*view.ops, op), name=name)
        return self.settled(view) if ACTIVATIONS[op] == "relu" and not fused else view

    def dropout(self, value: Value, name: str, probability: float, kind: str = "dropout") -> Value:
        if isinstance(value, Scores):
            return replace(value, dropout=probability) if value.is_softmax else value
        view = self.view(value)
        if probability == 0:
            return view
        return self.on_base(self.settled(view).but(name=name), kind, probability=probability)

    # ----- shapes

    def reshape(self, value: Value, sizes: Sequence[int], name: str) -> Value:
        if isinstance(value, Constant):
            array = value.array.reshape(sizes) if value.array is not None and value.array.size == prod(sizes) else None
            return replace(value, sizes=tuple(sizes), array=array)
        if isinstance(value, Parameter):
            return value.of(sizes)
        if isinstance(value, Scores):
            return replace(value, sizes=tuple(sizes))
        if isinstance(value, Statistic):
            return value
        view = self.view(value)
        try:
            return view.reshape(sizes, name)
        except NoLayer:
            return self._natural(self.settled(view)).reshape(sizes, name)

    def permute(self, value: Value, order: Sequence[int], name: str) -> Value:
        if isinstance(value, Scores):
            raise NoLayer("of attention's scores")
        if isinstance(value, (Constant, Parameter)):
            array = getattr(value, "array", None)
            changes = {"array": array.transpose(order)} if array is not None else {}
            return replace(value, sizes=tuple(value.sizes[axis] for axis in order), **changes)
        return self.view(value).permute(order, name)

    def cut(self, value: Value, axis: int, start: int, length: int, step: int, name: str) -> Value:
        if isinstance(value, (Constant, Parameter)):
            changes: dict[str, Any] = {"sizes": (*value.sizes[:axis], length, *value.sizes[axis + 1:])}
            if getattr(value, "array", None) is not None:
                changes["array"] = value.array[(slice(None),) * axis + (slice(start, start + length * step, step),)]
            return replace(value, **changes)
        if isinstance(value, Scores):
            raise NoLayer("of attention's scores")
        view = self.view(value)
        if length == view.sizes[axis] and step == 1:
            return view
        if any(atom.role == SAMPLES and atom.size > 1 for atom in view.dims[axis]):
            raise NoLayer("of some samples")
        try:
            return self.settled(view).cut(axis, start, length, step, name)
        except NoLayer:
            return self._natural(view).cut(axis, start, length, step, name)

    def select(self, value: Value, axis: int, index: int, name: str) -> Value:
        value = self.cut(value, axis, index, 1, 1, name)
        sizes = list(value.sizes)
        del sizes[axis]
        if isinstance(value, View):
            return value.but(dims=(*value.dims[:axis], *value.dims[axis + 1:]))
        return self.reshape(value, sizes, name)

    def pad(self, value: Value, sizes: Sequence[int], name: str) -> Value:
        if isinstance(value, (Constant, Parameter)):
            return replace(value, sizes=tuple(sizes))
        view = self.settled(self.view(value))
        if tuple(sizes) == view.sizes:
            return view
        roles, shape = self.natural_shape(view)
        if len(sizes) == 4 and roles[0] == SAMPLES and roles.count(PLACES) == 2 and view.sizes[0] == self.samples:
            shape = Shape.image(shape.channels, *(size for size, role in zip(view.sizes, roles) if role == PLACES))
        changed = [index for index, size in enumerate(sizes) if size != view.sizes[index]]
        if shape.kind == "vector" or any(roles[index] != PLACES or sizes[index] < view.sizes[index] for index in changed):
            raise NoLayer(f"of {listed(view.sizes)} to {listed(sizes)}")
        places = [size for size, role in zip(sizes, roles) if role == PLACES]
        bigger = replace(shape, places=tuple(places) if shape.kind == "image" else (prod(places),))
        layer = self.add(name, "pad", [self.as_roles(view, roles, shape)], output=bigger.document())
        padded = fresh(layer, bigger, sizes, roles, self.samples)
        padded.made["padded"] = view
        return padded

    def unpadded(self, view: View) -> View | None:
        """The tensor before its padding, which is then no layer. None if others may read the padded one."""
        if "padded" not in view.made or self.last != view.base.layer:
            return None
        self.layers.drop_last()
        return view.made["padded"]  # type: ignore[return-value]

    def moved(self, value: Value, name: str) -> Value:
        """Elements in an order that dimensions do not show, such as a roll."""
        if isinstance(value, (Constant, Parameter)):
            return value
        self.movements += 1
        return self.settled(self.view(value)).but(moved=self.movements, name=name)

    def repeated(self, value: Value, sizes: Sequence[int], name: str) -> Value:
        """Copies along dimensions of 1. Those of a tensor are left to what reads it."""
        if isinstance(value, (Constant, Parameter)):
            return replace(value, sizes=tuple(sizes), **({"array": None} if isinstance(value, Constant) else {}))
        view = self.view(value)
        if tuple(sizes) == view.sizes:
            return view
        if len(sizes) == len(view.sizes) and view.base.shape.elements * self.samples == prod(view.sizes):
            return view  # one number for each channel; the product that reads it repeats it
        raise NoLayer(f"of {listed(view.sizes)} to {listed(sizes)}")

    def concat(self, values: Sequence[Value], axis: int, name: str) -> Value:
        if len(values) == 1:
            return values[0]
        if not any(isinstance(value, (View, Refused)) for value in values):
            if all(isinstance(value, Constant) for value in values):
                return Constant(tuple(values[0].sizes[:axis]) + (sum(v.sizes[axis] for v in values),) + tuple(values[0].sizes[axis + 1:]))
            raise NoLayer("of parameters")
        if any(isinstance(value, Parameter) for value in values):
            return self._class_tokens(values, axis)
        if any(not isinstance(value, View) for value in values):
            raise ReadsRefused if any(isinstance(value, Refused) for value in values) else NoLayer("with a constant")
        rolled = self._rolled(values, axis, name)
        if rolled is not None:
            return rolled
        views = [self.settled(self.view(value)) for value in values]
        reference = self._reference(views)
        roles, shape = self.natural_shape(reference)
        if roles[axis] != FEATURES:
            raise NoLayer(f"along dimension {axis}")
        sources = [self.as_roles(view, roles, replace(shape, channels=view.sizes[axis])) for view in views]
        channels = sum(view.sizes[axis] for view in views)
        layer = self.add(name, "concat", sources)
        sizes = (*reference.sizes[:axis], channels, *reference.sizes[axis + 1:])
        return fresh(layer, replace(shape, channels=channels), sizes, roles, self.samples)

    def _rolled(self, views: Sequence[View], axis: int, name: str) -> View | None:
        """The tensor whose parts these are, in another order, if they are all of it: a roll."""
        first = views[0]
        if any(not view.parts or view.base != first.base or view.parts[:-1] != first.parts[:-1] or view.ops
               or view.parts[-1][0] != first.parts[-1][0] or len(view.dims) != len(first.dims) for view in views):
            return None
        whole = first.parts[-1][0]
        covered = sorted(view.parts[-1][1:] for view in views)
        starts = [0]
        for start, length, step in covered:
            if step != 1 or start != starts[-1]:
                return None
            starts.append(start + length)
        if starts[-1] != prod(atom.size for atom in whole) or any(len(view.dims[axis]) != 1 for view in views):
            return None
        dims = (*first.dims[:axis], whole, *first.dims[axis + 1:])
        self.movements += 1
        return first.but(dims=dims, parts=first.parts[:-1], moved=self.movements, name=name)

    def _class_tokens(self, values: Sequence[Value], axis: int) -> View:
        """Learned elements before a sequence."""
        *tokens, last = values
        view = self.settled(self.view(last))
        roles, shape = self.features_last(view)
        if shape.kind != "sequence" or roles[axis] != PLACES or len(view.sizes) != 3:
            raise NoLayer("of a parameter")
        for token in reversed(tokens):
            if not isinstance(token, Parameter) or token.sizes[axis] != 1 or prod(token.shapes[0]) != shape.channels:
                raise NoLayer("of a parameter")
            layer = self.add(token.name, "class_token", [self.as_roles(view, roles, shape)])
            self.take(token)
            shape = Shape.sequence(shape.places[0] + 1, shape.channels)
            sizes = (*view.sizes[:axis], view.sizes[axis] + 1, *view.sizes[axis + 1:])
            view = fresh(layer, shape, sizes, roles, self.samples)
        return view

    def take(self, parameter: Parameter) -> None:
        for name, shape in zip(parameter.names, parameter.shapes):
            self.taken[name] = prod(shape)

    # ----- arithmetic

    def plus(self, first: Value, second: Value, name: str, is_minus: bool = False) -> Value:
        first, second = self.now(first), self.now(second)
        if isinstance(first, Refused) or isinstance(second, Refused):
            raise ReadsRefused
        first, second = self._whole_norms(first, second)
        if isinstance(second, (View, Scores)) and not isinstance(first, (View, Scores)) or \
                isinstance(second, View) and isinstance(first, Scores):
            first, second = second, first
        if isinstance(first, Statistic) and isinstance(second, (int, float, Constant)):
            return first
        if isinstance(first, Scores):
            return self._add_to_scores(first, second)
        if not isinstance(first, View):
            return _mixed(first, second)
        if isinstance(second, Statistic):
            return self._with_statistic(first, second, "center", name)
        if isinstance(second, Parameter):
            return self._add_parameter(first, second, name)
        if not isinstance(second, View):
            return first.but(ops=(*first.ops, "number"), name=name)
        if first.root == second.root and (first.ops or second.ops):
            return first.but(ops=(*first.ops, *second.ops, "sum"), name=name)
        return self._sum(self.settled(first), self.settled(second), name)

    def _whole_norms(self, *values: Value, is_product: bool = False) -> list[Value]:
        """The values, where a norm that has its weight is a layer, unless its bias is what is added."""
        others = [value for value in values if isinstance(value, View)]
        if others and others[0].sizes[-1] != 1:  # one number is no parameter of a layer
            values = tuple(Constant(value.sizes) if isinstance(value, Parameter) and prod(value.sizes) == 1
                           and len(value.names) == 1 else value for value in values)
        is_bias = not is_product and any(isinstance(value, Parameter) for value in values)
        return [self.settled(value) if isinstance(value, View) and value.weights and not is_bias else value
                for value in values]

    def _sum(self, first: View, second: View, name: str) -> View:
        if first.sizes != second.sizes:
            raise NoLayer("of different shapes")
        if first.base.shape == second.base.shape and first.dims == second.dims and not first.parts \
                and not second.parts and first.moved == second.moved:
            layer = self.add(name, "add", [first.base.layer, second.base.layer])
            return first.but(base=Base(layer, first.base.shape), name=name)
        reference = self._reference([first, second])
        roles, shape = self.natural_shape(reference)
        layer = self.add(name, "add", [self.as_roles(view, roles, shape) for view in (first, second)])
        return fresh(layer, shape, first.sizes, roles, self.samples)

    def _add_parameter(self, view: View, parameter: Parameter, name: str) -> View:
        if view.ops and "norm" in view.ops and view.weights:
            self.take(parameter)
            return self.settled(view.but(weights=(*view.weights, parameter.name), name=name))
        view = self.settled(view)
        last = self.layers.layers[-1] if self.layers.layers else {}
        channels = [atom.size for atom in view.dims[-1] if atom.role == FEATURES]
        if prod(parameter.sizes) == parameter.sizes[-1] == prod(channels) == view.sizes[-1] and not view.parts and \
                last.get("name") == view.base.layer and last.get("bias") is False and last["kind"] in (
                    "linear", "fully_connected", "tied_linear"):
            # The bias of the product before it.
            last["bias"] = True
            self.take(parameter)
            own = owner(parameter)
            if own and own != view.base.layer:
                layer = self.layers.rename(view.base.layer, own)
                return view.but(base=Base(layer, view.base.shape), name=layer)
            return view
        roles, shape = self.features_last(view)
        inner = tuple(size for size, role in zip(view.sizes, roles) if role != SAMPLES)
        sizes = parameter.sizes[-len(inner):]
        if shape.kind != "sequence" or sizes != inner or prod(parameter.sizes) != prod(inner):
            raise NoLayer("of a parameter")
        entries = prod(parameter.shapes[0]) // shape.channels
        source = self.as_roles(view, roles, shape)
        of = {"of": "positions"}
        where = source
        if parameter.picked and entries < shape.places[0]:
            of, where = {"of": "segments"}, INPUT
        table = self.add(owner(parameter) or parameter.name, "embedding", [where],
                         entries=entries, features=shape.channels, **of)
        self.take(parameter)
        layer = self.add(name, "add", [source, table])
        return fresh(layer, shape, view.sizes, roles, self.samples)

    def _add_to_scores(self, scores: Scores, other: Value) -> Scores:
        if isinstance(other, Parameter) and not scores.is_softmax:
            if scores.bias is not None:
                raise NoLayer("of a second bias")
            return replace(scores, bias=other)
        if isinstance(other, (Constant, int, float)) and not scores.is_softmax:
            return replace(scores, causal=scores.causal or getattr(other, "causal", False))
        raise NoLayer("of attention's scores")

    def times(self, first: Value, second: Value, name: str, is_division: bool = False) -> Value:
        first, second = self.now(first), self.now(second)
        if isinstance(first, Refused) or isinstance(second, Refused):
            raise ReadsRefused
        first, second = self._whole_norms(first, second, is_product=True)
        if isinstance(second, (View, Scores)) and not isinstance(first, (View, Scores)):
            first, second = second, first
        if isinstance(first, Scores):
            if isinstance(second, Parameter) and not is_division and not first.is_softmax:
                return replace(first, scale=second)
            if isinstance(second, (int, float, Constant)) and not first.is_softmax:
                return first
            raise NoLayer("of attention's scores")
        if is_division and isinstance(first, (int, float, Constant)) and isinstance(second, Statistic):
            return second
        if not isinstance(first, View):
            return _mixed(first, second)
        if isinstance(second, Statistic):
            return self._with_statistic(first, second, "norm", name)
        if isinstance(second, Parameter):
            return self._scale(first, second, name)
        if not isinstance(second, View):
            return first.but(ops=(*first.ops, "number"), name=name)
        if first.root == second.root:
            return first.but(ops=(*first.ops, *second.ops, "product"), name=name)
        if is_division:
            raise NoLayer("by another tensor")
        return self._product(self.settled(first), self.settled(second), name)

    def _product(self, first: View, second: View, name: str) -> View:
        if prod(first.sizes) < prod(second.sizes):
            first, second = second, first
        if len(first.sizes) != len(second.sizes):
            raise NoLayer("of different shapes")
        reference = self._reference([first, second] if first.sizes == second.sizes else [first])
        roles, shape = self.natural_shape(reference)
        sources = [self.as_roles(first, roles, shape)]
        if first.sizes == second.sizes:
            sources.append(self.as_roles(second, roles, shape))
        elif all(size == (whole if role != PLACES else 1) for size, whole, role in
                 zip(second.sizes, first.sizes, roles)):
            factor = second.base.shape if second.base.shape.elements == shape.channels else Shape.vector(shape.channels)
            sources.append(self.as_roles(second, roles, factor))
        else:
            raise NoLayer(f"of {listed(first.sizes)} and {listed(second.sizes)}")
        layer = self.add(name, "multiply", sources)
        return fresh(layer, shape, first.sizes, roles, self.samples)

    def _scale(self, view: View, parameter: Parameter, name: str) -> View:
        if "norm" in view.ops and not view.weights:
            if prod(parameter.sizes) != view.sizes[-1] or not set(view.ops) <= {"center", "norm"}:
                raise NoLayer("of a parameter")
            self.take(parameter)
            return view.but(ops=("norm",), weights=(parameter.name,), name=name)
        view = self.settled(view)
        roles, shape = self.natural_shape(view)
        sizes = (1,) * (len(view.sizes) - len(parameter.sizes)) + parameter.sizes
        wanted = tuple(size if role == FEATURES else 1 for size, role in zip(view.sizes, roles))
        if sizes != wanted or prod(parameter.shapes[0]) != shape.channels:
            raise NoLayer("of a parameter")
        self.take(parameter)
        layer = self.add(parameter.name, "scale", [self.as_roles(view, roles, shape)])
        return fresh(layer, shape, view.sizes, roles, self.samples)

    def _with_statistic(self, view: View, statistic: Statistic, op: str, name: str) -> View:
        if statistic.of.root != view.root:
            raise NoLayer("of another tensor's mean")
        return view.but(ops=(*view.ops, op), name=name)

    def mean(self, value: Value, axes: Sequence[int], keep: bool, name: str, is_mean: bool = True) -> Value:
        if isinstance(value, (Constant, Parameter)):
            return Constant()
        view = self.view(value)
        rank = len(view.sizes)
        axes = sorted(axis % rank for axis in axes)
        if axes == [rank - 1] and keep:
            if not set(view.ops) <= {"center", "product", "pow"}:
                view = self.settled(view)
            return Statistic(view, "mean")
        view = self.settled(view)
        if not is_mean:
            raise NoLayer(f"of dimensions {listed(axes)}")
        roles = view.roles()
        features = next((axis for axis in range(1, rank) if axis not in axes), 0)
        if rank == 4 and len(axes) == 2 and features:
            order = [0, features, *axes]
            layer, _ = self.image(view.permute(order, view.name))
            layer = self.add(name, "adaptive_average_pool", [layer], output=1)
            shape = Shape.image(view.sizes[features], 1, 1)
            pooled = fresh(layer, shape, (view.sizes[0], view.sizes[features], 1, 1), [SAMPLES, FEATURES, PLACES, PLACES], self.samples)
            pooled = pooled.permute([order.index(axis) for axis in range(4)], f"{name}.flatten")
            return pooled if keep else pooled.reshape((view.sizes[0], view.sizes[features]), f"{name}.flatten")
        if rank == 3 and axes == [1] and roles == [SAMPLES, PLACES, FEATURES]:
            roles, shape = self.features_last(view)
            layer = self.add(name, "mean_token", [self.as_roles(view, roles, shape)])
            made = fresh(layer, Shape.vector(view.sizes[2]), (view.sizes[0], view.sizes[2]), [SAMPLES, FEATURES], self.samples)
            return made.reshape((view.sizes[0], 1, view.sizes[2]), name) if keep else made
        raise NoLayer(f"of dimensions {listed(axes)}")

    # ----- embeddings and attention

    def embedding(self, index: Value, table: Parameter, name: str) -> Value:
        entries, features = table.shapes[0]
        if isinstance(index, View):
            if index.base.layer != INPUT or index.ops or index.parts:
                raise NoLayer("of computed numbers")
            self.take(table)
            elements = index.base.shape.places[0]
            layer = self.add(name, "embedding", [INPUT], of="tokens", entries=entries, features=features)
            self.tables[table.name] = layer
            return fresh(layer, Shape.sequence(elements, features), (*index.sizes, features),
                         [SAMPLES, PLACES, FEATURES], self.samples)
        if isinstance(index, Constant):
            return replace(table, sizes=(*index.sizes, features), picked=True)
        self.view(index)
        raise NoLayer

    def product(self, first: Value, second: Value, sizes: Sequence[int], name: str) -> Value:
        """A product of matrices of which none is a parameter."""
        if isinstance(first, Refused) or isinstance(second, Refused):
            raise ReadsRefused
        if isinstance(first, Scores):
            return self._attention(first, self.view(second), name)
        queries, keys = self.view(first), self.view(second)
        for view in (queries, keys):
            if not set(view.ops) <= _NUMBERS:
                return self.product(self.settled(queries), self.settled(keys), sizes, name)
        if len(queries.dims) < 3 or len(queries.dims) != len(keys.dims) or \
                _role(queries.dims[-1]) != FEATURES or _role(keys.dims[-2]) != FEATURES or \
                _role(queries.dims[-2]) != PLACES or _role(keys.dims[-1]) != PLACES:
            raise NoLayer("of two tensors")
        order = [*range(len(keys.dims) - 2), len(keys.dims) - 1, len(keys.dims) - 2]
        return Scores(queries, keys.permute(order, keys.name), tuple(sizes), name)

    def attend(self, queries: Value, keys: Value, values: Value, name: str, causal: bool, dropout: float) -> View:
        """softmax(q k^T) v as one operator."""
        keys = self.view(keys)
        order = [*range(len(keys.dims) - 2), len(keys.dims) - 1, len(keys.dims) - 2]
        scores = self.product(queries, keys.permute(order, keys.name), (), name)
        return self._attention(replace(scores, is_softmax=True, causal=causal, dropout=dropout), self.view(values), name)

    def einsum(self, equation: str, first: Value, second: Value, name: str) -> Value:
        """A sum of products over one letter, as a product of matrices."""
        inputs, arrow, output = equation.replace(" ", "").partition("->")
        left_side, _, right_side = inputs.partition(",")
        both = [letter for letter in output if letter in left_side and letter in right_side]
        summed = [letter for letter in left_side if letter in right_side and letter not in output]
        left = [letter for letter in left_side if letter not in right_side]
        right = [letter for letter in right_side if letter not in left_side]
        made = [*both, *left, *right]
        if not arrow or not right_side.isalpha() or not left_side.isalpha() or sorted(output) != sorted(made) or \
                len(summed) != 1 or len(left) != 1 or len(right) != 1 or \
                (len(left_side), len(right_side)) != (len(first.sizes), len(second.sizes)):
            raise NoLayer(f"of {equation}")
        order = [left_side.index(letter) for letter in (*both, *left, *summed)]
        one = first if order == list(range(len(order))) else self.permute(first, order, name)
        other = self.permute(second, [right_side.index(letter) for letter in (*both, *summed, *right)], name)
        product = self.product(one, other, (*one.sizes[:-1], other.sizes[-1]), name)
        return product if list(output) == made else self.permute(product, [made.index(letter) for letter in output], name)

    def softmax(self, value: Value, axis: int, name: str) -> Value:
        if not isinstance(value, Scores):
            self.view(value)
            raise NoLayer
        if axis not in (-1, len(value.sizes) - 1) or value.is_softmax:
            raise NoLayer(f"along dimension {axis}")
        return replace(value, is_softmax=True)

    def masked(self, value: Value, mask: Value) -> Value:
        """Some elements replaced by a number."""
        if isinstance(value, Scores) and isinstance(mask, Constant):
            return replace(value, causal=value.causal or mask.causal)
        if isinstance(value, Constant):
            return replace(value, causal=value.causal or getattr(mask, "causal", False), array=None)
        self.view(value)
        raise NoLayer

    def _attention(self, scores: Scores, values: View, name: str) -> View:
        queries, keys, values = scores.queries, scores.keys, self.settled(values)
        if not scores.is_softmax:
            raise NoLayer("of scores without a softmax")
        *lead, places, head = queries.dims
        window, features = prod(a.size for a in places), prod(a.size for a in head)
        heads = prod(atom.size for dim in lead for atom in dim if atom.role == FEATURES)
        elements = window * prod(atom.size for dim in lead for atom in dim if atom.role == PLACES)
        for other in (keys, values):
            if other.sizes != queries.sizes or _role(other.dims[-1]) != FEATURES or _role(other.dims[-2]) != PLACES:
                raise NoLayer("over other keys")
        attributes: dict[str, object] = {"heads": heads, "dropout": scores.dropout}
        if scores.causal:
            attributes["causal"] = True
        if window != elements:
            attributes["window"] = window
        shape = Shape.sequence(elements, heads * features)
        plain = [view.but(ops=()) for view in (queries, keys, values)]
        sources = self._packed(plain, shape) or [self._side(view, shape) for view in plain]
        name = _place(name)
        if scores.scale is not None:
            if prod(scores.scale.shapes[0]) != heads:
                raise NoLayer("of attention's scores and a parameter")
            attributes["learned_scale"] = True
            self.take(scores.scale)
        if scores.bias is not None:
            sources = [*sources, self._position_bias(scores.bias, heads, window)]
        layer = self.add(name, "attention", sources, **attributes)
        # The output has the dimensions of the queries, over the axes of the layer.
        windows = [atom.size for dim in lead for atom in dim if atom.role == PLACES and atom.size > 1]
        split = [atom.size for dim in lead for atom in dim if atom.role == FEATURES and atom.size > 1]
        whole = fresh(layer, shape, (self.samples, *windows, window, *split, features),
                      [SAMPLES] + [PLACES] * (len(windows) + 1) + [FEATURES] * (len(split) + 1), self.samples)
        batch, *rest = whole.dims
        by_role = {PLACES: iter(rest[:len(windows)]), FEATURES: iter(rest[len(windows) + 1:-1]), SAMPLES: iter([batch])}
        dims = [sum((next(by_role[atom.role]) for atom in dim if atom.size > 1 or atom.role == SAMPLES), ()) for dim in lead]
        return View(whole.base, (*dims, rest[len(windows)], rest[-1]), name)

    def _packed(self, views: Sequence[View], shape: Shape) -> list[str] | None:
        """The one layer that has queries, keys and values side by side, if there is one."""
        if len({view.base for view in views}) != 1 or len({view.parts for view in views}) != 3:
            return None
        base = views[0].base
        if base.shape.elements != 3 * shape.elements or any(len(view.parts) != 1 for view in views):
            return None
        if any(not view.ordered(_mixed_roles(view)) for view in views):
            return None
        whole = Shape.sequence(shape.places[0], 3 * shape.channels)
        if base.shape == whole:
            return [base.layer]
        made = self.add(f"{base.layer}.sequence", "rearrange", [base.layer], output=whole.document(), view=True)
        return [made]

    def _side(self, view: View, shape: Shape) -> str:
        """Queries, keys or values as a sequence of their own."""
        joined = view.but(dims=tuple(tuple(view.atoms(role)) for role in (SAMPLES, PLACES, FEATURES)))
        return self.as_roles(joined, [SAMPLES, PLACES, FEATURES], shape)

    def _position_bias(self, bias: Parameter, heads: int, window: int) -> str:
        """The layer of a bias of attention's scores: a table of it, or a network of two layers."""
        if bias.sizes[-3:] != (heads, window, window):
            raise NoLayer("of attention's scores and a parameter")
        attributes: dict[str, object] = {"heads": heads, "window": window}
        if len(bias.names) == 1 and len(bias.shapes[0]) == 2 and bias.shapes[0][1] == heads:
            name, entries = bias.name, bias.shapes[0][0]
        else:
            name, entries, attributes["hidden"] = self._network_of_distances(bias, heads)
        self.take(bias)
        layer = self.layers.insert(bias.after, name, "relative_position_bias", entries=entries, **attributes)
        return layer

    def _network_of_distances(self, bias: Parameter, heads: int) -> tuple[str, int, int]:
        shapes = dict(zip(bias.names, bias.shapes))
        prefix = owner(bias).rpartition(".")[0]
        names = [f"{prefix}.0.weight", f"{prefix}.0.bias", f"{prefix}.2.weight"]
        if list(shapes) != names or shapes[names[0]][1] != 2 or shapes[names[2]] != (heads, shapes[names[0]][0]):
            raise NoLayer("of attention's scores and a parameter")
        return prefix, max(1, bias.rows), shapes[names[0]][0]


def _role(dim: Sequence[Any]) -> str:
    """The one role of a dimension's atoms; none where they are of several."""
    roles = {atom.role for atom in dim if atom.size > 1} or {atom.role for atom in dim} or {PLACES}
    return roles.pop() if len(roles) == 1 else SAMPLES if roles <= {SAMPLES, PLACES} else "mixed"


def _mixed_roles(view: View) -> list[str]:
    return [_role(dim) for dim in view.dims]


def owner(parameter: Parameter | str) -> str:
    """The name of the layer that a weight or a bias is of; empty if its name does not say."""
    name = parameter if isinstance(parameter, str) else parameter.name
    for ending in (".weight", "_weight", ".bias", "_bias"):
        if name.endswith(ending):
            return name[:-len(ending)]
    return ""


def _place(name: str) -> str:
    """The name of the module that an operator is in, where the operator's name says it."""
    if "/" in name:
        return name.rpartition("/")[0].strip("/").replace("/", ".") or name
    return name.rpartition(".")[0] or name


def is_causal_mask(array: Any) -> bool:
    """Whether numbers are ones below the diagonal and zeros above it, or the other way round."""
    import numpy as np
    if array is None or array.ndim < 2 or array.size < 4 or array.shape[-1] != array.shape[-2] or \
            array.size != array.shape[-1] ** 2:
        return False
    square = array.reshape(array.shape[-2:]) != 0
    return bool(np.array_equal(square, np.tril(np.ones_like(square))) or
                np.array_equal(square, np.triu(np.ones_like(square), 1)))


def _mixed(first: Value, second: Value) -> Value:
    """What becomes of parameters and constants that are combined with each other."""
    parameters = [value for value in (first, second) if isinstance(value, Parameter)]
    if len(parameters) == 2:
        raise NoLayer("of two parameters")
    return parameters[0] if parameters else Constant(causal=any(getattr(v, "causal", False) for v in (first, second)))
