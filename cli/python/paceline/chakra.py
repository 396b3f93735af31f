"""Chakra execution traces (MLCommons): read, and written of an iteration's timeline.

A trace is a graph of what one rank computes and sends: messages of Protocol Buffers, each behind its
length, the first of which says the version. Read and written is the part of the schema that says nodes,
their dependencies, times and collectives, with the names, numbers and types of et_def.proto of
mlcommons/chakra, and the attributes that ASTRA-sim's workload layer and both of its feeders look up.
"""

import gzip
import os
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Iterator

import numpy as np

from . import _core
from .arrays import StructuredArray, structured
from .errors import InputError, UnavailableError
from .values import PathOrName, Timeline

__all__ = ["ExecutionTrace"]

_TYPES = ("invalid", "metadata", "mem_load", "mem_store", "comp", "comm_send", "comm_recv", "comm_coll", "storage",
          "batch", "checkpoint")
_COLLECTIVES = ("all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast", "all_to_all",
                "reduce_scatter", "reduce_scatter_block", "barrier")
_VERSION = "0.0.4"
_SECONDS = "paceline.duration_s"  # an attribute of ours: the duration that microseconds round
_MOST_NODES, _MOST_BYTES = 5_000_000, 4 << 30


def _messages() -> dict[str, Any]:
    """The classes of the messages, from the numbers of their fields."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError as error:
        raise UnavailableError(f"the package protobuf is not installed: {error}") from error
    kinds = {"double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7, "bool": 8,
             "string": 9, "bytes": 12, "uint32": 13, "sfixed32": 15, "sfixed64": 16, "sint32": 17, "sint64": 18,
             "enum": 5}
    values = ("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64",
              "sfixed32", "sfixed64", "bool", "string", "bytes")
    # Name, number, type; "*" repeats it.
    schema = {
        "AttributeProto": [("name", 1, "string"), *((f"{kind}_val", 3 + 2 * at, kind)
                                                    for at, kind in enumerate(values))],
        "GlobalMetadata": [("version", 1, "string"), ("attr", 2, "*AttributeProto")],
        "Node": [("id", 1, "uint64"), ("name", 2, "string"), ("type", 3, "enum"), ("ctrl_deps", 4, "*uint64"),
                 ("data_deps", 5, "*uint64"), ("start_time_micros", 6, "uint64"),
                 ("duration_micros", 7, "uint64"), ("attr", 10, "*AttributeProto")],
    }
    file = descriptor_pb2.FileDescriptorProto(name="paceline_chakra.proto", package="ChakraProtoMsg",
                                              syntax="proto3")
    for name, fields in schema.items():
        message = file.message_type.add(name=name)
        if name == "AttributeProto":
            message.oneof_decl.add(name="value")
        for field_name, number, kind in fields:
            entry = message.field.add(name=field_name, number=number, label=3 if kind.startswith("*") else 1)
            if kind.strip("*") in kinds:
                entry.type = kinds[kind.strip("*")]
            else:
                entry.type, entry.type_name = 11, ".ChakraProtoMsg." + kind.strip("*")
            if name == "AttributeProto" and field_name != "name":
                entry.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return {name: factory.GetPrototype(pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}")) for name in schema}


def _length_text(length: int) -> bytes:
    """A number as Protocol Buffers write it: seven bits a byte, the lowest first."""
    text = bytearray()
    while length > 127:
        text.append(length & 127 | 128)
        length >>= 7
    return bytes(text + bytes([length]))


def _parts(data: bytes, file: str) -> Iterator[bytes]:
    """The messages of a text. Raises InputError."""
    at = 0
    while at < len(data):
        length = shift = 0
        while True:
            if at >= len(data) or shift > 28:
                raise InputError(f"{file}: no length of a message at byte {at}; give a Chakra execution trace", file)
            byte = data[at]
            at += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if at + length > len(data):
            raise InputError(f"{file}: a message of {length} bytes at byte {at} is cut off", file)
        yield data[at:at + length]
        at += length


@dataclass(frozen=True)
class _Node:
    id: int
    name: str
    type: str
    start_s: float
    duration_s: float
    collective: str = ""
    bytes: float = np.nan
    control: tuple[int, ...] = ()
    data: tuple[int, ...] = ()
    on_host: bool = False  # beside what the device computes, which is never held up by it


@dataclass(frozen=True, eq=False)
class ExecutionTrace:
    """What one rank computes and sends, and what waits for what."""

    version: str
    _nodes: tuple[_Node, ...] = field(repr=False)

    @staticmethod
    def load(path: PathOrName) -> "ExecutionTrace":
        """Reads a trace, compressed by gzip or not. Raises InputError, also for dependencies on nodes that
        are not there, and for nodes that wait for each other."""
        messages, file = _messages(), os.fspath(path)
        from google.protobuf.message import DecodeError
        try:
            with open(file, "rb") as opened:
                data = opened.read(_MOST_BYTES)
            if data[:2] == b"\x1f\x8b":
                with gzip.open(file, "rb") as unpacked:
                    data = unpacked.read(_MOST_BYTES)
        except (OSError, EOFError) as error:
            raise InputError(f"{file}: it cannot be read: {error}", file) from error
        version: str | None = None
        nodes: list[_Node] = []
        for number, part in enumerate(_parts(data, file)):
            try:
                if version is None:
                    version = messages["GlobalMetadata"].FromString(part).version
                    continue
                node = messages["Node"].FromString(part)
            except DecodeError as error:
                raise InputError(f"{file}: message {number + 1} is no part of a Chakra execution trace: {error}",
                                 file) from error
            if number > _MOST_NODES:
                raise InputError(f"{file}: it has more than {_MOST_NODES} nodes", file)
            nodes.append(_read(node, file))
        if version is None:
            raise InputError(f"{file}: it is empty; give a Chakra execution trace", file)
        trace = ExecutionTrace(version, tuple(nodes))
        trace._ends(file)
        return trace

    @staticmethod
    def of(timeline: Timeline) -> "ExecutionTrace":
        """The first iteration of a timeline: a node for each task, which waits for the one before it on its
        resource and, where it is of a bucket, for the gradients of that bucket."""
        events = timeline.events
        events = np.sort(events[events["iteration"] == events["iteration"].min()],
                         order=["start_s", "duration_s"], kind="stable")
        layers, buckets = timeline.layers, timeline.buckets
        of_bucket = {"wait", "negotiation", "cast", "pack", "all-reduce", "unpack", "reduce-scatter", "all-gather"}
        last_on: dict[tuple[str, int], int] = {}  # resource and stream
        last_of: dict[int, int] = {}  # bucket
        backward: dict[int, int] = {}  # layer
        nodes: list[_Node] = []
        origin = float(events["start_s"][0])
        for number, event in enumerate(events):
            task, index = str(event["task"]), int(event["index"])
            resource = (str(event["resource"]), int(event["stream"]))
            data: set[int] = set()
            kind, collective, size = "comp", "", float("nan")
            name = task if index < 0 else f"{task} {layers[index]}"
            if task in of_bucket and index >= 0:
                bucket = buckets[index]
                name = f"{task} bucket {index} ({bucket['first_gradient']})"
                before = last_of.get(index, backward.get(int(bucket["ready_after"])))
                if before is not None:
                    data.add(before)
                if task in ("all-reduce", "reduce-scatter", "all-gather"):
                    kind, collective, size = "comm_coll", task.replace("-", "_"), float(bucket["bytes"])
                last_of[index] = number
            elif task == "update":
                data |= set(last_of.values()) if index < 0 else {last_of[index]} & set(last_of.values())
                name = task if index < 0 else f"update bucket {index}"
            elif task == "backward":
                backward[index] = number
            control = {last_on[resource]} - data if resource in last_on else set()
            last_on[resource] = number
            nodes.append(_Node(number, name, kind, float(event["start_s"]) - origin, float(event["duration_s"]),
                               collective, size, tuple(sorted(control)), tuple(sorted(data)),
                               kind == "comp" and resource[0] != "compute stream"))
        return ExecutionTrace(_VERSION, tuple(nodes))

    def save(self, path: PathOrName) -> None:
        """Writes the trace. ASTRA-sim reads a file for each rank, PREFIX.RANK.et.

        A control dependency is written as a data dependency, too: Chakra's own feeder waits for those
        alone. What is no computation of the device has is_cpu_op, so that a simulator which runs one
        operator of the device at a time runs it beside them."""
        messages = _messages()
        parts = [messages["GlobalMetadata"](version=self.version)]
        for node in self._nodes:
            message = messages["Node"](
                id=node.id, name=node.name, type=_TYPES.index(node.type), ctrl_deps=node.control,
                data_deps=sorted({*node.data, *node.control}), start_time_micros=round(1e6 * node.start_s),
                duration_micros=round(1e6 * node.duration_s))
            message.attr.add(name="is_cpu_op", bool_val=node.on_host)
            message.attr.add(name=_SECONDS, double_val=node.duration_s)
            if node.collective:
                message.attr.add(name="comm_type", int64_val=_COLLECTIVES.index(node.collective))
                message.attr.add(name="comm_size", int64_val=round(node.bytes))
            parts.append(message)
        texts = [part.SerializeToString() for part in parts]
        _core.write_file(os.fspath(path), b"".join(_length_text(len(text)) + text for text in texts))

    @property
    def nodes(self) -> StructuredArray:
        """id, name, type, start_s, duration_s, collective, bytes (of the collective; else NaN)."""
        return structured([vars(node) for node in self._nodes],
                          {"id": "i8", "name": "U", "type": "U", "start_s": "f8", "duration_s": "f8",
                           "collective": "U", "bytes": "f8"})

    @property
    def dependencies(self) -> StructuredArray:
        """before, after (ids), kind ("data" or "control")."""
        rows = [{"before": before, "after": node.id, "kind": kind} for node in self._nodes
                for kind, all_before in (("data", node.data), ("control", node.control)) for before in all_before]
        return structured(rows, {"before": "i8", "after": "i8", "kind": "U"})

    @property
    def collectives(self) -> StructuredArray:
        """The nodes that are collectives."""
        nodes = self.nodes
        chosen: StructuredArray = nodes[nodes["collective"] != ""]
        return chosen

    @property
    def length_s(self) -> float:
        """How long the trace takes where each node starts as soon as those that it waits for are done: its
        longest path."""
        return max(self._ends("the trace").values(), default=0.0)

    def _ends(self, file: str) -> dict[int, float]:
        """When each node ends. Raises InputError for a graph that has no order."""
        nodes = {node.id: node for node in self._nodes}
        if len(nodes) != len(self._nodes):
            raise InputError(f"{file}: two nodes have one id", file)
        after: dict[int, list[int]] = {identity: [] for identity in nodes}
        waits = {}
        for node in self._nodes:
            before = {*node.data, *node.control}
            for other in before:
                if other not in nodes:
                    raise InputError(f"{file}: node {node.id} waits for node {other}, which is not there", file)
                after[other].append(node.id)
            waits[node.id] = len(before)
        ready, starts, ends = deque(i for i, count in waits.items() if count == 0), dict.fromkeys(nodes, 0.0), {}
        while ready:
            identity = ready.popleft()
            ends[identity] = starts[identity] + nodes[identity].duration_s
            for other in after[identity]:
                starts[other] = max(starts[other], ends[identity])
                waits[other] -= 1
                if waits[other] == 0:
                    ready.append(other)
        if len(ends) != len(nodes):
            raise InputError(f"{file}: nodes wait for each other in a circle", file)
        return ends


def _read(node: Any, file: str) -> _Node:
    """A node of a message. Raises InputError."""
    attributes: dict[str, Any] = {}
    for attribute in node.attr:
        which = attribute.WhichOneof("value")
        attributes[attribute.name] = getattr(attribute, which) if which else None
    kind = _TYPES[node.type] if 0 <= node.type < len(_TYPES) else "invalid"
    collective, size = "", float("nan")
    if kind == "comm_coll":
        number = attributes.get("comm_type")
        if not isinstance(number, int) or not 0 <= number < len(_COLLECTIVES):
            raise InputError(f"{file}: node {node.id} is a collective without a comm_type that is known", file)
        collective = _COLLECTIVES[number]
    if isinstance(attributes.get("comm_size"), (int, float)):
        size = float(attributes["comm_size"])
    seconds = attributes.get(_SECONDS)
    if not isinstance(seconds, float) or not 0 <= seconds < 1e9:
        seconds = 1e-6 * node.duration_micros
    # What is in both lists is an order, which save() writes twice.
    control = set(node.ctrl_deps)
    return _Node(node.id, node.name, kind, 1e-6 * node.start_time_micros, seconds, collective, size,
                 tuple(sorted(control)), tuple(sorted(set(node.data_deps) - control)),
                 attributes.get("is_cpu_op") is True)
