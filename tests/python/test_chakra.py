"""Chakra execution traces: what is written is read back, and takes as long as the iteration that it is of."""

import gzip
import random

import numpy as np
import pytest

import paceline

pytest.importorskip("google.protobuf")
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
