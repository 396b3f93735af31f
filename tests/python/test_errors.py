"""Errors are exceptions; Ctrl-C works; other threads run; nothing is printed; there is no state."""

import signal
import threading
import time

import numpy as np
import pytest

import paceline


def test_an_error_of_a_file_has_its_line(tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text("network: n\ninput: [3, 8, 8]\nlayers:\n  - {name: a, kind: convolutoin}\n")
    with pytest.raises(paceline.InputError) as caught:
        paceline.Network.load(path)
    assert (caught.value.file, caught.value.line) == (str(path), 4)
    assert "convolution" in caught.value.remedy and "convolutoin" in caught.value.problem
    assert str(caught.value).startswith(f"{path}:4") and isinstance(caught.value, ValueError)


def test_an_error_of_an_argument_names_it(command):
    with pytest.raises(paceline.InputError) as caught:
        paceline.predict("resnet50", "jizhi-p40", 8, theta="4")
    assert caught.value.argument == "theta"
    said = command("predict", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", 8, "--theta", "4",
                   code=2)
    assert said == f"paceline: {caught.value}\n"


@pytest.mark.parametrize("arguments, message", [
    ({"network": "resnet5"}, "did you mean 'resnet50'"),
    ({"cluster": "jizhi"}, "--cluster"),
    ({"ranks": 0}, "--ranks"),
    ({"ranks": 10**9}, "--ranks"),
    ({"strategy": ""}, "--strategy"),
    ({"batch": -1}, "--batch"),
    ({"batch": False}, "--batch"),
    ({"others": 1}, "--others: '1' is neither true nor false"),
    ({"others": "no"}, "--others: 'no' is neither true nor false"),
    ({"plan": "no-such-file.json"}, "no-such-file.json"),
])
def test_wrong_arguments(arguments, message):
    asked = {"network": "resnet50", "cluster": "jizhi-p40", "ranks": 8} | arguments
    with pytest.raises(paceline.InputError, match=message):
        paceline.predict(**asked)


def test_a_flag_of_numpy_is_a_flag():
    flags = np.array([False, True])
    counts = [len(paceline.predict("resnet50", "jizhi-p40", 8, others=flag)) for flag in flags]
    assert counts[0] < counts[1] == len(paceline.predict("resnet50", "jizhi-p40", 8, others=True))


def test_an_unknown_argument_is_a_type_error():
    with pytest.raises(TypeError, match="thetta"):
        paceline.predict("resnet50", "jizhi-p40", 8, thetta="4 MiB")
    with pytest.raises(TypeError):
        paceline.tune("resnet50", "jizhi-p40", 8, backup=1)


def test_what_cannot_be_written_is_a_run_error(tmp_path):
    with pytest.raises(paceline.RunError):
        paceline.Network.load("alexnet").save(tmp_path / "no" / "folder" / "net.yaml")


def test_what_is_not_there_is_unavailable():
    with pytest.raises(paceline.UnavailableError, match="SimGrid"):
        paceline.predict("alexnet", "jizhi-p40", 4, engine="simgrid", strategy="ring")


def test_ctrl_c_stops_a_table():
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(100_000):
            paceline.predict("resnet50", "jizhi-p40", 1024)
    timer.join()


def test_ctrl_c_stops_a_search():
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(100_000):
            paceline.tune("vgg16", "aws-p3-16xlarge", 24, time_limit="100 s")
    timer.join()


def test_other_threads_run_meanwhile():
    done = threading.Event()

    def work():
        for _ in range(3):
            paceline.predict("resnet50", "jizhi-p40", 1024)
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    ticks = 0
    while not done.is_set():
        ticks += 1
        time.sleep(0.001)
    worker.join()
    # While the other thread was in the module, this one went on.
    assert ticks > 50


def test_threads_get_the_same_answers():
    alone = paceline.predict("alexnet", "jizhi-p40", 64).document
    answers = [None] * 4

    def ask(i):
        answers[i] = paceline.predict("alexnet", "jizhi-p40", 64).document

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(answers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(answer == alone for answer in answers)


def test_nothing_is_printed(capfd):
    paceline.predict("alexnet", "jizhi-p40", 64)
    paceline.tune("alexnet", "jizhi-p40", 8, time_limit="0.1 s")
    paceline.time("all", "jizhi-p40", 16, size="64MiB")
    with pytest.raises(paceline.InputError):
        paceline.verify("no-such", 8)
    assert capfd.readouterr() == ("", "")


def test_values_do_not_change():
    network = paceline.Network.load("alexnet")
    with pytest.raises(AttributeError):
        network.name = "other"
    network.document["name"] = "other"
    assert network.document["name"] == "alexnet"
