"""Arithmetic of tensors. That of single elements waits until it is read, so that a layer norm or an activation
that is written out in its parts becomes the one layer that it is."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Sequence

from .layers import INPUT
from .operands import Constant, Parameter, Refused, Scores, Statistic, Value, owner
from .layout import ACTIVATIONS, Layout
from .views import FEATURES, PLACES, SAMPLES, Base, NoLayer, ReadsRefused, Shape, View, fresh, listed

__all__ = ["Arithmetic"]

# Those that are parts of others, such as the sigmoid of x * sigmoid(x). They wait for what reads them.
_PARTS = {"clip", "tanh", "sigmoid", "hardsigmoid", "softplus", "erf", "exp", "sqrt", "rsqrt", "pow", "reciprocal",
          "neg"}


class Arithmetic(Layout):
    """Sums, products, means and activations."""

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
            sizes = (view.sizes[0], view.sizes[features], 1, 1)
            pooled = fresh(layer, shape, sizes, [SAMPLES, FEATURES, PLACES, PLACES], self.samples)
            pooled = pooled.permute([order.index(axis) for axis in range(4)], f"{name}.flatten")
            return pooled if keep else pooled.reshape((view.sizes[0], view.sizes[features]), f"{name}.flatten")
        if rank == 3 and axes == [1] and roles == [SAMPLES, PLACES, FEATURES]:
            roles, shape = self.features_last(view)
            layer = self.add(name, "mean_token", [self.as_roles(view, roles, shape)])
            made = fresh(layer, Shape.vector(view.sizes[2]), view.sizes[::2], [SAMPLES, FEATURES], self.samples)
            return made.reshape((view.sizes[0], 1, view.sizes[2]), name) if keep else made
        raise NoLayer(f"of dimensions {listed(axes)}")


def _mixed(first: Value, second: Value) -> Value:
    """What becomes of parameters and constants that are combined with each other."""
    parameters = [value for value in (first, second) if isinstance(value, Parameter)]
    if len(parameters) == 2:
        raise NoLayer("of two parameters")
    return parameters[0] if parameters else Constant(causal=any(getattr(v, "causal", False) for v in (first, second)))
