"""Operators on tensors, whichever tool names them, and the layers that they become.

What a network computes is walked through operator by operator. Tensors are views of the outputs of layers
(views.py); parameters, constants and others are values of their own kinds (operands.py). Reshaping and permuting
make no layer until it is read (layout.py).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any, Sequence

from .arithmetic import Arithmetic
from .attention import Attention
from .layers import INPUT
from .operands import Constant, Parameter, Refused, Scores, Statistic, Value
from .views import FEATURES, PLACES, SAMPLES, NoLayer, ReadsRefused, Shape, View, fresh, listed

__all__ = ["Operators"]


class Operators(Arithmetic, Attention):
    """Makes layers of operators. Each function takes values, and gives that of the operator's output."""

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

    def layer_norm(self, value: Value, name: str, bias: bool = True) -> View:
        view = self.view(value)
        return self._each(view, name, "layer_norm", view.sizes[-1], **({} if bias else {"bias": False}))

    def linear(self, value: Value, name: str, outputs: int, bias: bool, weight: str) -> View:
        view = self.view(value)
        table = self.tables.get(weight)
        if table is not None:
            return self._each(view, name, "tied_linear", outputs, table, bias=bias)
        return self._each(view, name, "linear", outputs, outputs=outputs, bias=bias)

    def dropout(self, value: Value, name: str, probability: float, kind: str = "dropout") -> Value:
        if isinstance(value, Scores):
            return replace(value, dropout=probability) if value.is_softmax else value
        view = self.view(value)
        if probability == 0:
            return view
        return self.on_base(self.settled(view).but(name=name), kind, probability=probability)

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
            if isinstance(value, Constant) and value.array is not None:
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
        if shape.kind == "vector" or \
                any(roles[index] != PLACES or sizes[index] < view.sizes[index] for index in changed):
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
        return view.made["padded"]

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
                before, after = values[0].sizes[:axis], values[0].sizes[axis + 1:]
                return Constant((*before, sum(value.sizes[axis] for value in values), *after))
            raise NoLayer("of parameters")
        if any(isinstance(value, Parameter) for value in values):
            return self._class_tokens(values, axis)
        if any(not isinstance(value, View) for value in values):
            if any(isinstance(value, Refused) for value in values):
                raise ReadsRefused
            raise NoLayer("with a constant")
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
        if list(output) == made:
            return product
        return self.permute(product, [made.index(letter) for letter in output], name)
