"""Views of tensors become the inputs of layers: where their elements stand in another order or shape than the
layer puts out that has them, a layer that rearranges them comes between."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Sequence

from .layers import INPUT, LayerList
from .operands import Parameter, Refused, Scores, Statistic, Value, owner
from .views import FEATURES, PLACES, SAMPLES, Base, NoLayer, ReadsRefused, Shape, View, fresh, listed

__all__ = ["ACTIVATIONS", "Layout"]

# What an activation keeps for the backward pass: its output, as ReLU and tanh do, or its input.
ACTIVATIONS = {
    "relu": "relu", "clip": "relu", "leaky_relu": "relu", "threshold": "relu", "tanh": "tanh", "sigmoid": "tanh",
    "gelu": "gelu", "silu": "gelu", "hardswish": "gelu", "hardsigmoid": "gelu", "elu": "gelu", "selu": "gelu",
    "celu": "gelu", "mish": "gelu", "softplus": "gelu", "erf": "gelu", "logsigmoid": "gelu", "softsign": "gelu",
    "exp": "tanh", "sqrt": "tanh", "rsqrt": "gelu", "abs": "gelu", "pow": "gelu", "reciprocal": "tanh", "neg": "",
}


class Layout:
    """The layers so far, and those that reading a view adds."""

    def __init__(self, layers: LayerList, samples: int) -> None:
        self.layers, self.samples = layers, samples
        self.arranged: dict[object, str] = {}  # the layers that have a tensor's elements in a shape
        self.movements = 0
        self.tables: dict[str, str] = {}  # embeddings of tokens, by their parameter
        self.taken: dict[str, int] = {}  # elements of the parameters that layers have

    @property
    def last(self) -> str:
        return str(self.layers.layers[-1]["name"]) if self.layers.layers else INPUT

    def add(self, name: str, kind: str, inputs: Sequence[str], **attributes: object) -> str:
        return self.layers.add(name or kind, kind, inputs, **attributes)

    def take(self, parameter: Parameter) -> None:
        for name, shape in zip(parameter.names, parameter.shapes):
            self.taken[name] = prod(shape)

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
            return value.made.get("settled", value)
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
        name = view.name
        if view.parts:
            view = self._natural(view.but(ops=(), weights=()))
        shape = view.base.shape
        layer = self.add(name, kind, [view.base.layer], **attributes)
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
        now = view.roles()
        if not view.parts and not view.moved and now is not None and view.ordered(now):
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
        channels, height, width = sizes[1:]
        shape = Shape.image(channels, height, width)
        return fresh(layer, shape, sizes, [SAMPLES, FEATURES, PLACES, PLACES], self.samples)

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
