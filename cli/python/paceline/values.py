"""Networks, clusters, profiles, plans and timelines. None of them changes once it is made."""

import json
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _core
from .arrays import StructuredArray, structured
from .errors import InputError

__all__ = ["Cluster", "Figure", "Network", "Plan", "Profile", "Timeline"]

PathOrName = str | os.PathLike[str]


def place(value: PathOrName) -> str:
    """The text of a name, or of a path, which then means a file whatever it looks like."""
    return value if isinstance(value, str) else os.path.abspath(os.fspath(value))


def read(path: PathOrName) -> str:
    return _core.read_file(os.fspath(path))


@dataclass(frozen=True)
class Figure:
    """A number with its interval, and what it rests on."""

    value: float
    low: float
    high: float
    unit: str  # as in the names of documents: "s", "bytes_per_s", "1" where there is none
    provenance: str  # measured, calibrated, predicted, datasheet, published or assumed
    source: str
    part: str = ""  # of the cluster
    what: str = ""


@dataclass(frozen=True, eq=False)
class Network:
    """A network as a graph of layers, with what each costs."""

    _value: _core.Network = field(repr=False)
    _document: dict[str, Any] = field(init=False, repr=False)
    name: str = field(init=False)
    parameters: int = field(init=False)

    def __post_init__(self) -> None:
        document = json.loads(self._value.to_json())
        object.__setattr__(self, "_document", document)
        object.__setattr__(self, "name", document["name"])
        object.__setattr__(self, "parameters", document["parameters"])

    def __reduce__(self) -> tuple[Any, ...]:
        return Network.from_yaml, (self.to_yaml(),)

    @staticmethod
    def load(name_or_file: PathOrName) -> "Network":
        """A network of the zoo (``paceline.networks()``), or of a YAML file."""
        return Network(_core.Network.load(place(name_or_file)))

    @staticmethod
    def from_yaml(text: str, file: str = "<text>") -> "Network":
        """A network of a YAML text. ``file`` names the text in errors."""
        return Network(_core.Network.parse(text, file))

    def to_yaml(self) -> str:
        return self._value.to_yaml()

    def save(self, path: PathOrName) -> None:
        """Writes a YAML file that ``load`` and the command read."""
        _core.write_file(os.fspath(path), self.to_yaml())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Network) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self.to_yaml())

    @property
    def document(self) -> dict[str, Any]:
        """The document paceline.network/1."""
        return json.loads(self._value.to_json())  # type: ignore[no-any-return]

    @property
    def forward_flops(self) -> int:
        """Of one sample; a multiply-add is 2."""
        return int(self._document["forward_flops"])

    @property
    def layers(self) -> StructuredArray:
        """name, kind, output, parameters, forward_flops, backward_flops, kept_elements."""
        rows = [row | {"backward_flops": row["data_gradient_flops"] + row["weight_gradient_flops"]}
                for row in self._document["layers"]]
        return structured(rows, {"name": "U", "kind": "U", "output": "U", "parameters": "i8",
                                 "forward_flops": "i8", "backward_flops": "i8",
                                 "kept_elements": "i8"})

    @property
    def gradients(self) -> StructuredArray:
        """name, elements; in the order in which backpropagation produces them."""
        return structured(self._document["gradients"], {"name": "U", "elements": "i8"})


@dataclass(frozen=True, eq=False)
class Cluster:
    """Equal nodes of equal ranks, with what joins them."""

    _value: _core.Cluster = field(repr=False)
    _made: tuple[Any, ...] = field(repr=False)  # the function that makes it again, and its arguments
    _document: dict[str, Any] = field(init=False, repr=False)
    name: str = field(init=False)
    ranks: int = field(init=False)

    def __post_init__(self) -> None:
        document = json.loads(self._value.to_json())
        object.__setattr__(self, "_document", document)
        object.__setattr__(self, "name", document["name"])
        object.__setattr__(self, "ranks", document["ranks"])

    @staticmethod
    def load(name_or_file: PathOrName, placement: str = "") -> "Cluster":
        """A cluster of the catalogue (``paceline.clusters()``), or of a YAML file."""
        name = place(name_or_file)
        return Cluster(_core.Cluster.load(name, placement), (Cluster.load, (name, placement)))

    @staticmethod
    def from_yaml(text: str, file: str = "<text>") -> "Cluster":
        """A cluster of a YAML text. ``file`` names the text in errors."""
        return Cluster(_core.Cluster.parse(text, file), (Cluster.from_yaml, (text, file)))

    def __reduce__(self) -> tuple[Any, ...]:
        return self._made

    @property
    def document(self) -> dict[str, Any]:
        """The document paceline.cluster/1."""
        return json.loads(self._value.to_json())  # type: ignore[no-any-return]

    @property
    def figures(self) -> list[Figure]:
        """Each number of the cluster, with what it rests on."""
        return [Figure(row["value"], row["low"], row["high"], row["unit"], row["provenance"],
                       row["source"], row["part"], row["what"]) for row in self._document["figures"]]


@dataclass(frozen=True, eq=False)
class Profile:
    """Calibrated figures of a cluster and its devices."""

    _value: _core.Profile = field(repr=False)
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", json.loads(self._value.to_json())["name"])

    def __reduce__(self) -> tuple[Any, ...]:
        return Profile.from_json, (self._value.to_json(),)

    @staticmethod
    def load(name_or_file: PathOrName) -> "Profile":
        """A profile that ships (``paceline.profiles()``), or of a JSON file."""
        value = _core.Profile.load(place(name_or_file)) if name_or_file else None
        if value is None:
            raise InputError("no profile is named; give a name or a file")
        return Profile(value)

    @staticmethod
    def from_json(text: str, file: str = "<text>") -> "Profile":
        """A profile of a document paceline.profile/1. ``file`` names the text in errors."""
        return Profile(_core.Profile.parse(text, file))

    @property
    def document(self) -> dict[str, Any]:
        """The document paceline.profile/1."""
        return json.loads(self._value.to_json())  # type: ignore[no-any-return]

    def save(self, path: PathOrName) -> None:
        _core.write_file(os.fspath(path), self._value.to_json() + "\n")


@dataclass(frozen=True, eq=False)
class Plan:
    """How gradients travel: buckets, and an all-reduce for each."""

    _value: _core.Plan = field(repr=False)
    _document: dict[str, Any] = field(init=False, repr=False)
    strategy: str = field(init=False)
    ranks: int = field(init=False)
    network: str = field(init=False)

    def __post_init__(self) -> None:
        document = json.loads(self._value.to_json())
        object.__setattr__(self, "_document", document)
        for name in ("strategy", "ranks", "network"):
            object.__setattr__(self, name, document[name])

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan.from_json, (self._value.to_json(),)

    @staticmethod
    def load(path: PathOrName) -> "Plan":
        """The plan of a file that ``save`` or --plan-out of the command wrote."""
        return Plan.from_json(read(path), os.fspath(path))

    @staticmethod
    def from_json(text: str, file: str = "<text>") -> "Plan":
        """The plan of a document paceline.plan/1. ``file`` names the text in errors."""
        return Plan(_core.Plan.parse(text, file))

    def save(self, path: PathOrName) -> None:
        """Writes a file that --plan of predict, train and replay reads."""
        _core.write_file(os.fspath(path), self._value.to_json() + "\n")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value.to_json())

    @property
    def document(self) -> dict[str, Any]:
        """The document paceline.plan/1."""
        return json.loads(self._value.to_json())  # type: ignore[no-any-return]

    @property
    def buckets(self) -> StructuredArray:
        """first_gradient, gradients, elements, all_reduce; in backward order."""
        schedules = self._document["all_reduces"]
        rows = []
        for bucket in self._document["buckets"]:
            gradients = bucket["gradients"]
            schedule = schedules[bucket["all_reduce"]]
            rows.append({"first_gradient": gradients[0]["name"], "gradients": len(gradients),
                         "elements": sum(g["elements"] for g in gradients),
                         "all_reduce": schedule.get("algorithm") or next(iter(schedule.values()))})
        return structured(rows, {"first_gradient": "U", "gradients": "i8", "elements": "i8",
                                 "all_reduce": "U"})


_TASKS_OF_LAYERS = ("forward", "backward", "factor a", "factor g", "invert", "precondition")
_EVENT = [("task", "U32"), ("resource", "U32"), ("stream", "i8"), ("index", "i8"),
          ("iteration", "i8"), ("start_s", "f8"), ("duration_s", "f8")]


@dataclass(frozen=True, eq=False)
class Timeline:
    """Which task ran when, on which resource: of a prediction, or of a run."""

    _value: _core.Timeline = field(repr=False)
    title: str = field(init=False)
    provenance: str = field(init=False)  # "predicted" or "measured"
    period_s: float = field(init=False)
    name: str = "<timeline>"  # in errors
    _text: str = field(default="", repr=False)  # that it was read of, which says more of a run

    def __reduce__(self) -> tuple[Any, ...]:
        return Timeline.from_chrome_trace, (self.to_chrome_trace(), self.name)

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self._value.title)
        object.__setattr__(self, "provenance", self._value.provenance)
        object.__setattr__(self, "period_s", self._value.period)

    @staticmethod
    def load(path: PathOrName) -> "Timeline":
        """The timeline of a file that --timeline of predict, train or replay wrote."""
        return Timeline.from_chrome_trace(read(path), os.fspath(path))

    @staticmethod
    def from_chrome_trace(text: str, file: str = "<timeline>") -> "Timeline":
        return Timeline(_core.Timeline.parse(text, file), file, text)

    def to_chrome_trace(self) -> str:
        """JSON that Perfetto opens (schema paceline.timeline/1); what was read, where it was."""
        return self._text or self._value.to_json()

    def save(self, path: PathOrName) -> None:
        _core.write_file(os.fspath(path), self.to_chrome_trace())

    @property
    def network(self) -> str:
        return self._value.network

    @property
    def strategy(self) -> str:
        return self._value.strategy

    @property
    def ranks(self) -> int:
        return self._value.ranks

    @property
    def rank(self) -> int:
        """The rank whose tasks they are."""
        return self._value.rank

    @property
    def layers(self) -> list[str]:
        return self._value.layers()

    @property
    def buckets(self) -> StructuredArray:
        """first_gradient, gradients, ready_after (a layer's index), bytes, all_reduce."""
        fields = ("first_gradient", "gradients", "ready_after", "bytes", "all_reduce")
        return structured([dict(zip(fields, bucket)) for bucket in self._value.buckets()],
                          dict(zip(fields, ("U", "i8", "i8", "f8", "U"))))

    @property
    def events(self) -> StructuredArray:
        """task, resource, stream, index (of a layer or a bucket; -1: all), iteration, start_s,
        duration_s."""
        return np.array(self._value.events(), dtype=_EVENT)
