"""Attention, also where it is written out: a product of queries and keys, a softmax, and a product with values."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any, Sequence

from .operands import Constant, Parameter, Refused, Scores, Value, owner
from .layout import Layout
from .views import FEATURES, PLACES, SAMPLES, NoLayer, ReadsRefused, Shape, View, fresh

__all__ = ["Attention"]

_NUMBERS = {"number", "normalize"}  # what attention takes in: factors of queries and keys, and their norms


class Attention(Layout):
    """Products of tensors of which none is a parameter."""

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
        scores = replace(scores, is_softmax=True, causal=causal, dropout=dropout)
        return self._attention(scores, self.view(values), name)

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
        dims = [sum((next(by_role[atom.role]) for atom in dim if atom.size > 1 or atom.role == SAMPLES), ())
                for dim in lead]
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
    roles: set[str] = {atom.role for atom in dim if atom.size > 1} or {atom.role for atom in dim} or {PLACES}
    return roles.pop() if len(roles) == 1 else SAMPLES if roles <= {SAMPLES, PLACES} else "mixed"


def _mixed_roles(view: View) -> list[str]:
    return [_role(dim) for dim in view.dims]


def _place(name: str) -> str:
    """The name of the module that an operator is in, where the operator's name says it."""
    if "/" in name:
        return name.rpartition("/")[0].strip("/").replace("/", ".") or name
    return name.rpartition(".")[0] or name
