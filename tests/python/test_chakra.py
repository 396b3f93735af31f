"""Chakra execution traces: what is written is read back, and takes as long as the iteration that it is of."""

import gzip
import heapq
import pathlib
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest

import paceline

pytest.importorskip("google.protobuf")
from google.protobuf.internal.decoder import _DecodeVarint32  # noqa: E402
from google.protobuf.internal.encoder import _VarintBytes  # noqa: E402

Trace = paceline.ExecutionTrace


def timeline_of(strategy, ranks=64, network="alexnet", **settings):
    return paceline.predict(network, "jizhi-p40", ranks, strategy=strategy, **settings)[strategy].timeline()


@pytest.mark.parametrize("strategy", ["ring", "fused-ring", "hierarchical", "hybrid", "no-overlap"])
@pytest.mark.parametrize("network", ["alexnet", "resnet50"])
def test_a_trace_takes_as_long_as_its_iteration(strategy, network):
    timeline = timeline_of(strategy, network=network)
    trace = Trace.of(timeline)
    first = timeline.events[timeline.events["iteration"] == 0]
    span = (first["start_s"] + first["duration_s"]).max() - first["start_s"].min()
    # The dependencies alone, without the times at which tasks started, give the time of the iteration.
    assert trace.length_s == pytest.approx(span, rel=1e-6)
    assert len(trace.nodes) == len(first)
    assert list(trace.collectives["bytes"]) == list(timeline.buckets["bytes"])


def test_what_is_written_is_read_back(tmp_path):
    trace = Trace.of(timeline_of("hybrid"))
    trace.save(tmp_path / "trace.0.et")
    (tmp_path / "packed.et").write_bytes(gzip.compress((tmp_path / "trace.0.et").read_bytes()))
    for name in ("trace.0.et", "packed.et"):
        again = Trace.load(tmp_path / name)
        assert again.version == trace.version and again.length_s == trace.length_s
        for field in ("id", "name", "type", "duration_s", "collective"):
            assert list(again.nodes[field]) == list(trace.nodes[field])
        assert np.allclose(again.nodes["start_s"], trace.nodes["start_s"], atol=5e-7)
        assert again.dependencies.tolist() == trace.dependencies.tolist()


def message(*fields):
    """A message of fields (number, whole number or bytes), written by hand and behind its length."""
    def number(value):
        text = bytearray()
        while value > 127:
            text.append(value & 127 | 128)
            value >>= 7
        return bytes(text + bytes([value]))

    body = b"".join(number(key << 3) + number(value) if isinstance(value, int)
                    else number(key << 3 | 2) + number(len(value)) + value for key, value in fields)
    return number(len(body)) + body


def attribute(name, value):
    return message((1, name.encode()), (9, value))[1:]


def test_a_trace_of_another_writer(tmp_path):
    # The bytes of the public schema: a computation of 7 us, and an all-gather of 1 MB after it.
    path = tmp_path / "other.et"
    path.write_bytes(message((1, b"0.0.4")) + message((1, 5), (2, b"matmul"), (3, 4), (6, 10), (7, 7)) +
                     message((1, 9), (2, b"gather"), (3, 7), (5, b"\x05"), (7, 100),
                             (10, attribute("comm_type", 2)), (10, attribute("comm_size", 10**6))))
    trace = Trace.load(path)
    assert trace.nodes["type"].tolist() == ["comp", "comm_coll"]
    assert trace.collectives["collective"].tolist() == ["all_gather"] and trace.collectives["bytes"].tolist() == [1e6]
    assert trace.dependencies.tolist() == [(5, 9, "data")]
    assert trace.length_s == pytest.approx(107e-6)


@pytest.mark.parametrize("text, said", [
    (b"", "empty"),
    (b"\x05ab", "cut off"),
    (b"\xff" * 8, "no length"),
    (message((1, b"1")) + message((1, 1), (5, b"\x07")), "waits for node 7, which is not there"),
    (message((1, b"1")) + message((1, 1), (5, b"\x02")) + message((1, 2), (4, b"\x01")), "in a circle"),
    (message((1, b"1")) + message((1, 1)) + message((1, 1)), "two nodes have one id"),
    (message((1, b"1")) + message((1, 1), (3, 7)), "without a comm_type"),
])
def test_what_is_no_trace(text, said, tmp_path):
    path = tmp_path / "trace.et"
    path.write_bytes(text)
    with pytest.raises(paceline.InputError, match=said) as caught:
        Trace.load(path)
    assert caught.value.file == str(path)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of Protocol Buffers
def test_damaged_traces_never_crash(tmp_path):
    path, draw = tmp_path / "trace.et", random.Random(3)
    Trace.of(timeline_of("ring", 16)).save(path)
    whole = path.read_bytes()
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 5)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(bytes(data[:draw.randint(1, len(data))]))
        try:
            Trace.load(path).nodes
        except paceline.InputError:
            pass


@pytest.fixture(scope="module")
def chakra(tmp_path_factory):
    """The messages of the public interface as protoc makes them, without the package's tables."""
    if shutil.which("protoc") is None:
        pytest.skip("no protoc")
    folder = tmp_path_factory.mktemp("chakra")
    here = pathlib.Path(__file__).parent
    subprocess.run(["protoc", f"-I{here}", f"--python_out={folder}", here / "chakra.proto"], check=True)
    sys.path.insert(0, str(folder))
    try:
        import chakra_pb2
    finally:
        sys.path.remove(str(folder))
    return chakra_pb2


def read_with(chakra, path):
    """What a reader with the public interface finds: the metadata, and the nodes."""
    data, at, parts = path.read_bytes(), 0, []
    while at < len(data):
        length, at = _DecodeVarint32(data, at)
        parts.append(data[at:at + length])
        at += length
    return chakra.GlobalMetadata.FromString(parts[0]), [chakra.Node.FromString(part) for part in parts[1:]]


def write_with(path, *messages):
    texts = [message.SerializeToString() for message in messages]
    path.write_bytes(b"".join(_VarintBytes(len(text)) + text for text in texts))


@pytest.mark.parametrize("strategy", ["ring", "hybrid", "no-overlap", "k-fac"])
def test_a_reader_with_the_public_interface_finds_the_trace(chakra, tmp_path, strategy):
    trace = Trace.of(timeline_of(strategy, network="resnet50"))
    trace.save(tmp_path / "trace.0.et")
    metadata, nodes = read_with(chakra, tmp_path / "trace.0.et")
    assert metadata.version == trace.version
    types = chakra.NodeType.DESCRIPTOR.values_by_number
    kinds = chakra.CollectiveCommType.DESCRIPTOR.values_by_number
    for node, ours in zip(nodes, trace.nodes, strict=True):
        before = node.SerializeToString()
        node.DiscardUnknownFields()
        assert node.SerializeToString() == before  # no field that the interface has not
        assert (node.id, node.name) == (ours["id"], ours["name"])
        assert types[node.type].name == f"{ours['type']}_node".upper()
        assert node.start_time_micros == round(1e6 * ours["start_s"])
        assert node.duration_micros == round(1e6 * ours["duration_s"])
        attributes = {attribute.name: attribute for attribute in node.attr}
        assert attributes["is_cpu_op"].WhichOneof("value") == "bool_val"
        if ours["collective"]:
            # The types in which both feeders read them.
            assert attributes["comm_type"].WhichOneof("value") == "int64_val"
            assert attributes["comm_size"].WhichOneof("value") == "int64_val"
            assert kinds[attributes["comm_type"].int64_val].name == ours["collective"].upper()
            assert attributes["comm_size"].int64_val == round(ours["bytes"])
            assert not attributes["is_cpu_op"].bool_val  # refused of collectives
        # Loads and stores would be timed anew, by a tensor_size.
        assert node.type in (chakra.COMP_NODE, chakra.COMM_COLL_NODE)
        assert set(node.ctrl_deps) <= set(node.data_deps)


def replayed_micros(chakra, nodes):
    """How long a simulator takes that waits for data dependencies alone, as Chakra's feeder does, and
    runs one operator of the device, one of the host and one collective at a time, the first of those that
    are ready first."""
    waits = {node.id: set(node.data_deps) for node in nodes}
    of = {node.id: node for node in nodes}
    after = {identity: [i for i, before in waits.items() if identity in before] for identity in waits}
    ready = sorted(identity for identity, before in waits.items() if not before)
    busy, running, now = set(), [], 0

    def resource(node):
        if node.type == chakra.COMM_COLL_NODE:
            return "network"
        return "host" if any(a.name == "is_cpu_op" and a.bool_val for a in node.attr) else "device"

    while ready or running:
        for identity in sorted(ready):
            if resource(of[identity]) not in busy:
                busy.add(resource(of[identity]))
                heapq.heappush(running, (now + of[identity].duration_micros, identity))
                ready.remove(identity)
        now, identity = heapq.heappop(running)
        busy.remove(resource(of[identity]))
        for other in after[identity]:
            waits[other].remove(identity)
            if not waits[other]:
                ready.append(other)
    return now


@pytest.mark.parametrize("strategy", ["ring", "fused-ring", "hybrid", "no-overlap", "k-fac"])
def test_a_simulator_of_one_operator_at_a_time_takes_as_long(chakra, tmp_path, strategy):
    trace = Trace.of(timeline_of(strategy, network="resnet50"))
    trace.save(tmp_path / "trace.0.et")
    _, nodes = read_with(chakra, tmp_path / "trace.0.et")
    # Each node of the longest path may be rounded by half a microsecond.
    assert abs(1e-6 * replayed_micros(chakra, nodes) - trace.length_s) < 0.5e-6 * len(nodes)
    assert 0.5e-6 * len(nodes) < 0.01 * trace.length_s


def test_a_file_of_a_writer_with_the_public_interface(chakra, tmp_path):
    draw = random.Random(20181028)
    kinds = chakra.CollectiveCommType.DESCRIPTOR.values_by_number
    fields = ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64")
    messages, expected = [chakra.GlobalMetadata(version="0.0.4")], []
    messages[0].attr.add(name="schema").string_val = "1.0.2-chakra.0.0.4"
    for identity in range(1, 200):
        node = chakra.Node(id=7 * identity, name=f"node {identity}", duration_micros=draw.randrange(1000))
        node.data_deps.extend(7 * i for i in draw.sample(range(1, identity), min(2, identity - 1)))
        node.inputs.values, node.inputs.shapes = "[1, [2, 3]]", "[[], [2]]"
        node.attr.add(name="is_cpu_op", bool_val=draw.random() < 0.5)
        node.attr.add(name="involved_dim").bool_list.values.extend([True, False])
        node.attr.add(name="cube", doc_string="unread").int64_list.values.extend([1, -2])
        node.attr.add(name="raw", bytes_val=b"\xff\x00")
        collective, size = "", np.nan
        node.type = draw.choice([chakra.COMP_NODE, chakra.METADATA_NODE, chakra.COMM_COLL_NODE, chakra.CHECKPOINT_NODE])
        if node.type == chakra.COMM_COLL_NODE:
            kind, size = draw.randrange(len(kinds)), draw.randrange(1 << 30)
            collective = kinds[kind].name.lower()
            # A writer chooses the type of a whole number.
            node.attr.add(name="comm_type", **{f"{draw.choice(fields)}_val": kind})
            node.attr.add(name="comm_size", **{f"{draw.choice(fields)}_val": size})
        messages.append(node)
        expected.append((node.id, node.name, chakra.NodeType.Name(node.type).removesuffix("_NODE").lower(),
                         collective, size, node.duration_micros))
    write_with(tmp_path / "other.et", *messages)
    trace = Trace.load(tmp_path / "other.et")
    assert trace.version == "0.0.4"
    for ours, (identity, name, kind, collective, size, micros) in zip(trace.nodes, expected, strict=True):
        assert (ours["id"], ours["name"], ours["type"], ours["collective"]) == (identity, name, kind, collective)
        assert ours["bytes"] == size or np.isnan(size) and np.isnan(ours["bytes"])
        assert ours["duration_s"] == pytest.approx(1e-6 * micros)
    assert {(r["before"], r["after"]) for r in trace.dependencies} == \
        {(before, node.id) for node in messages[1:] for before in node.data_deps}
