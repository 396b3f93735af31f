"""Tensors as views of what layers put out: which of a tensor's dimensions count samples, places and features,
and whether their elements stand in another order than in the layer's output.

A dimension is a list of atoms: factors of an axis of the layer's output. Reshaping splits and joins atoms,
permuting reorders dimensions, and neither is a layer. Only where an operator reads the tensor is it settled
whether elements must move.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Sequence

__all__ = ["Atom", "Base", "NoLayer", "ReadsRefused", "Shape", "View", "fresh", "listed"]

SAMPLES, PLACES, FEATURES = "b", "p", "f"


class NoLayer(Exception):
    """An operator has no layer; the text says in which form."""


class ReadsRefused(NoLayer):
    """An operator reads what has no layer, and might have one itself."""


def listed(sizes: Sequence[object]) -> str:
    return " x ".join(map(str, sizes))


@dataclass(frozen=True)
class Shape:
    """The shape of one sample, as a network document has it."""

    kind: str  # "image", "sequence" or "vector"
    channels: int
    places: tuple[int, ...] = ()  # height and width, or elements

    @staticmethod
    def image(channels: int, height: int, width: int) -> Shape:
        return Shape("image", channels, (height, width))

    @staticmethod
    def sequence(elements: int, features: int) -> Shape:
        return Shape("sequence", features, (elements,))

    @staticmethod
    def vector(features: int) -> Shape:
        return Shape("vector", features)

    @staticmethod
    def of(document: Any) -> Shape:
        """The shape that a network document has."""
        if isinstance(document, dict):
            return Shape.sequence(document["tokens"], document.get("features", 1))
        return Shape.image(*document) if len(document) == 3 else Shape.vector(document[0])

    @property
    def elements(self) -> int:
        return self.channels * prod(self.places)

    def document(self) -> object:
        if self.kind == "sequence":
            return {"tokens": self.places[0], "features": self.channels}
        return [self.channels, *self.places]


@dataclass(frozen=True)
class Atom:
    """A factor of an axis. Atoms of one role are in the order of the output where their keys ascend."""

    role: str
    key: tuple[int, ...]
    size: int

    def split(self, sizes: Sequence[int]) -> list[Atom]:
        return [Atom(self.role, (*self.key, index), size) for index, size in enumerate(sizes)]


Dims = tuple[tuple[Atom, ...], ...]
Part = tuple[tuple[Atom, ...], int, int, int]  # atoms, and where in them it starts, how long it is, and its step


@dataclass(frozen=True)
class Base:
    """The output of a layer."""

    layer: str
    shape: Shape


@dataclass(eq=False)
class View:
    """A tensor whose elements are those of a layer's output, or a part of them."""

    base: Base
    dims: Dims
    name: str = ""  # of the operator that made it
    parts: tuple[Part, ...] = ()  # what was cut out, one cut after the other
    moved: int = 0  # tells movements apart that atoms do not show; 0 where there is none
    ops: tuple[str, ...] = ()  # arithmetic of single elements that has no layer yet
    weights: tuple[str, ...] = ()  # parameters in this arithmetic
    made: dict[str, View] = field(default_factory=dict, repr=False)  # what it became, or was before its padding

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(prod(atom.size for atom in dim) for dim in self.dims)

    @property
    def root(self) -> tuple[object, ...]:
        """Equal for tensors of the same elements, but for pending arithmetic."""
        return self.base, self.dims, self.parts, self.moved

    def but(self, **changes: Any) -> View:
        return replace(self, made={}, **changes)

    def atoms(self, role: str) -> list[Atom]:
        return [atom for dim in self.dims for atom in dim if atom.role == role]

    def roles(self) -> list[str] | None:
        """The role of each dimension; the first may have places beside samples. None if they are mixed."""
        found = []
        for index, dim in enumerate(self.dims):
            roles = {atom.role for atom in dim if atom.size > 1}
            if index == 0 and FEATURES not in roles:
                roles = {SAMPLES} if SAMPLES in {atom.role for atom in dim} or not roles else roles
            if len(roles) > 1:
                return None
            found.append(roles.pop() if roles else next(iter(atom.role for atom in dim), PLACES))
        return found

    def is_whole(self) -> bool:
        """Whether each axis is one dimension, and nothing was cut or moved."""
        atoms = [[atom for atom in dim if atom.size > 1] or list(dim[:1]) for dim in self.dims]
        return not self.parts and not self.moved and all(
            len(dim) <= 1 and all(len(atom.key) == 1 for atom in dim) for dim in atoms)

    def permute(self, order: Sequence[int], name: str) -> View:
        return self.but(dims=tuple(self.dims[axis] for axis in order), name=name)

    def reshape(self, sizes: Sequence[int], name: str) -> View:
        """The same elements in other dimensions. Raises NoLayer if atoms do not divide."""
        sizes = list(sizes)
        if tuple(sizes) == self.sizes:
            return self
        pool = [atom for dim in self.dims for atom in dim]
        dims = []
        for index, size in enumerate(sizes):
            dim: list[Atom] = []
            left = size
            while pool and (left > 1 or pool[0].size == 1):
                atom = pool[0]
                # A dimension of 1 takes one atom of 1, so that those behind it get theirs.
                if left == 1 and (dim or size > 1) and index + 1 < len(sizes):
                    break
                if left % atom.size == 0:
                    dim.append(pool.pop(0))
                    left //= atom.size
                elif atom.size % left == 0:
                    first, second = atom.split([left, atom.size // left])
                    dim.append(first)
                    pool[0], left = second, 1
                else:
                    raise NoLayer(f"of {listed(self.sizes)} to {listed(sizes)}")
            if left != 1:
                raise NoLayer(f"of {listed(self.sizes)} to {listed(sizes)}")
            dims.append(tuple(dim))
        return self.but(dims=tuple(dims), name=name)

    def cut(self, axis: int, start: int, length: int, step: int, name: str) -> View:
        """A part of a dimension. Raises NoLayer if the dimension has places and features, or samples."""
        size = self.sizes[axis]
        if length == size and step == 1:
            return self
        dim = [atom for atom in self.dims[axis] if atom.size > 1]
        if len(dim) > 1 and step == 1 and start % (size // dim[0].size) == 0 and length % (size // dim[0].size) == 0:
            inner = size // dim[0].size  # whole blocks of the first atom
            kept = [replace(dim[0], size=length // inner), *dim[1:]]
            part: Part = ((dim[0],), start // inner, length // inner, step)
        elif len({atom.role for atom in dim}) == 1 and dim[0].role != SAMPLES:
            kept, part = [replace(dim[0], size=length)], (tuple(dim), start, length, step)
        else:
            raise NoLayer(f"of a part of {listed(self.sizes)}")
        dims = (*self.dims[:axis], tuple(kept), *self.dims[axis + 1:])
        # Which of several atoms are in a part that cuts through them is not followed.
        moved = self.moved or (-1 if len(part[0]) > 1 else 0)
        return self.but(dims=dims, parts=(*self.parts, part), moved=moved, name=name)

    def ordered(self, roles: Sequence[str]) -> bool:
        """Whether places and features stand in the layer's order, where dimensions have these roles."""
        if self.moved:
            return False
        places: list[tuple[int, ...]] = []
        features: list[tuple[int, ...]] = []
        for role, dim in zip(roles, self.dims):
            for atom in dim:
                if atom.size > 1 and atom.role != SAMPLES:
                    if atom.role != (PLACES if role == SAMPLES else role):
                        return False
                    (places if atom.role == PLACES else features).append(atom.key)
        return places == sorted(places) and features == sorted(features)


def _axes(shape: Shape, samples: int) -> tuple[Atom, list[Atom], Atom]:
    places = [Atom(PLACES, (index,), size) for index, size in enumerate(shape.places)]
    return Atom(SAMPLES, (0,), samples), places, Atom(FEATURES, (0,), shape.channels)


def fresh(layer: str, shape: Shape, sizes: Sequence[int], roles: Sequence[str], samples: int) -> View:
    """The output of a layer, as a tensor whose dimensions have these sizes and roles."""
    batch, places, features = _axes(shape, samples)
    base = Base(layer, shape)
    wanted = {PLACES: [], FEATURES: []}  # type: dict[str, list[int]]
    first = sizes[0] // samples if roles and roles[0] == SAMPLES else 1
    if first > 1:
        wanted[PLACES].append(first)
    for size, role in zip(sizes, roles):
        if role != SAMPLES:
            wanted[role].append(size)
    by_role = {
        role: iter(View(base, tuple((atom,) for atom in atoms)).reshape(wanted[role], "").dims)
        for role, atoms in ((PLACES, places), (FEATURES, [features])) if wanted[role]}
    dims = []
    for role in roles:
        if role == SAMPLES:
            dims.append((batch, *(next(by_role[PLACES]) if first > 1 else ())))
        else:
            dims.append(next(by_role[role]))
    return View(base, tuple(dims))
