"""Networks from graphs of other tools: what from_torch and from_onnx have in common."""

import json
from typing import Any, Mapping, Sequence

from .errors import InputError
from .values import Network

__all__ = ["INPUT", "LayerList", "input_of"]

INPUT = "input"  # how layers refer to the network's input
_LONGEST_NAME = 60


def input_of(shape: Sequence[int], is_tokens: bool) -> object:
    """The input of a network document for the shape of one sample. Raises InputError."""
    if is_tokens and len(shape) == 1:
        return {"tokens": shape[0]}
    if not is_tokens and len(shape) in (1, 3):
        return list(shape)
    if not is_tokens and len(shape) == 2:
        return {"tokens": shape[0], "features": shape[1]}
    raise InputError(f"samples of shape {tuple(shape)} are no input of a network; give an image (channels, "
                     "height, width), features, elements x features, or a sequence of whole numbers")


def _shortened(name: str) -> str:
    """A name that is short enough: the first two parts of a longer one, and the last ones that fit."""
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    parts = name.split(".")
    head = ".".join(parts[:2]) + ".." if len(".".join(parts[:2])) <= _LONGEST_NAME // 3 else ""
    tail = name[len(head):]
    while len((head + tail).encode()) > _LONGEST_NAME and "." in tail:
        tail = tail.partition(".")[2]
    cut = head + tail
    while len(cut.encode()) > _LONGEST_NAME:
        cut = cut[1:]
    return cut


class LayerList:
    """The layers of a network as they are found. What has no layer is remembered by its name, so that
    one error lists all of it."""

    def __init__(self, name: str, source: str, sample: object) -> None:
        self.name, self.source, self.sample = name, source, sample
        self.layers: list[dict[str, Any]] = []
        self.names: set[str] = {INPUT}
        self.unknown: dict[str, list[str]] = {}

    def free_name(self, name: str) -> str:
        """A name for a layer that no other has, and that is short enough."""
        cut, count = _shortened(name), 2
        found = cut
        while found in self.names:
            ending = f":{count}"
            found, count = cut[-(_LONGEST_NAME - len(ending)):] + ending, count + 1
        return found

    def add(self, name: str, kind: str, inputs: Sequence[str], **attributes: object) -> str:
        """Adds a layer, and returns its name."""
        name = self.free_name(name)
        self.names.add(name)
        layer = {"name": name, "kind": kind} | attributes
        if len(inputs) == 1 and kind != "tied_linear":
            layer["input"] = inputs[0]
        elif kind == "tied_linear":
            layer["input"], layer["table"] = inputs
        else:
            layer["inputs"] = list(inputs)
        self.layers.append(layer)
        return name

    def insert(self, after: str, name: str, kind: str, **attributes: object) -> str:
        """Adds a layer behind one that is there already, which it reads, and returns its name."""
        found = self.add(name, kind, [after], **attributes)
        place = next((index + 1 for index, layer in enumerate(self.layers) if layer["name"] == after), 0)
        self.layers.insert(place, self.layers.pop())
        return found

    def rename(self, layer: str, name: str) -> str:
        """Gives the layer that was added last another name, if that is free."""
        found = self.free_name(name)
        self.names.discard(layer)
        self.names.add(found)
        self.layers[-1]["name"] = found
        return found

    def drop_last(self) -> None:
        """Takes away the layer that was added last."""
        self.names.discard(self.layers.pop()["name"])

    def refuse(self, operator: str, where: str) -> None:
        """Remembers an operator that has no layer."""
        self.unknown.setdefault(operator, []).append(where)

    def check(self) -> None:
        """Raises one InputError that lists the operators that have no layer."""
        if not self.unknown:
            return
        listed = ", ".join(f"{operator} ({places[0]}{f' and {len(places) - 1} more' if len(places) > 1 else ''})"
                           for operator, places in sorted(self.unknown.items()))
        raise InputError(f"{self.source}: operators that have no layer: {listed}; docs/python.md lists those "
                         "that have one", self.source)

    def network(self, parameters: Mapping[str, int], stored_sample: str | None) -> Network:
        """The network, which must have all parameters. Raises InputError."""
        self.check()
        lines = [f"network: {json.dumps(self.name)}", f"input: {json.dumps(self.sample)}"]
        if stored_sample:
            lines.append(f"stored_sample: {stored_sample}")
        lines.append("layers:")
        lines += [f"  - {json.dumps(layer)}" for layer in self.layers]
        network = Network.from_yaml("\n".join(lines) + "\n", self.source)
        missing = sum(parameters.values()) - network.parameters
        if missing:
            raise InputError(f"{self.source}: its parameters are {sum(parameters.values())}, and those of its "
                             f"layers {network.parameters}; {self._unread(parameters)}", self.source)
        return network

    def _unread(self, parameters: Mapping[str, int]) -> str:
        """Which parameters no layer has, by their names."""
        unread = [name for name in parameters if name.rsplit(".", 1)[0] not in self.names]
        if not unread:
            return "a parameter has another size than in its layer"
        more = f" and {len(unread) - 3} more" if len(unread) > 3 else ""
        return f"no layer has {', '.join(unread[:3])}{more}"
