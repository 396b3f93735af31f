"""The package's answers are the command's: the same documents, to the last digit."""

import math
import random

import numpy as np
import pytest

import paceline

JOB = ("resnet50", "jizhi-p40")
OPTIONS = ("--model", "resnet50", "--cluster", "jizhi-p40")


def test_the_table_of_the_readme(readme):
    table = paceline.predict(*JOB, 1024)
    assert f"```console\n$ paceline predict --model resnet50 --cluster jizhi-p40 --ranks 1024\n{table}```" in readme


def test_a_prediction_is_the_documents(document):
    table = paceline.predict(*JOB, 64, batch=32, strategy=["ring", "hybrid"], wire=["fp16", "fp32"],
                             theta="8 MiB", accumulate=2)
    assert table.document == document(
        "predict", *OPTIONS, "--ranks", 64, "--batch", 32, "--strategy", "ring,hybrid", "--wire",
        "fp16,fp32", "--theta", "8 MiB", "--accumulate", 2)


def test_random_jobs_are_the_documents(document):
    draw = random.Random(20181028)
    for _ in range(8):
        network = draw.choice(["resnet50", "alexnet", "vgg16", "bert-base"])
        cluster = draw.choice(["jizhi-p40", "aws-p3-16xlarge", "goyal-p100"])
        ranks, batch = draw.choice([1, 2, 8, 24, 64]), draw.randint(1, 40)
        precision, others = draw.choice(["fp32", "mixed"]), draw.random() < 0.3
        table = paceline.predict(network, cluster, ranks, batch=batch, precision=precision,
                                 others=others)
        words = ["predict", "--model", network, "--cluster", cluster, "--ranks", ranks, "--batch",
                 batch, "--precision", precision] + ["--others"] * others
        assert table.document == document(*words)


def test_a_table_is_an_array():
    table = paceline.predict(*JOB, 1024)
    rows = table.table
    assert len(rows) == len(table) and list(rows["name"]) == [row.name for row in table]
    assert np.all(rows["iteration_low_s"] <= rows["iteration_s"])
    assert np.all(rows["iteration_s"] <= rows["iteration_high_s"])
    ours = [row.iteration_s for row in table if row.name != "nccl"]
    assert table.best.iteration_s == min(ours)
    assert rows["iteration_s"].dtype == np.float64 and rows["fits_memory"].dtype == bool
    for row in table:
        assert math.isclose(sum(row.critical_path_s.values()), row.iteration_s, rel_tol=1e-6)


def test_rows_by_name():
    table = paceline.predict(*JOB, 64, strategy=["ring", "fused-ring"], wire=["fp16", "fp32"])
    assert table["ring"].wire_type == "fp16"
    assert table.row("ring", "fp32").wire_type == "fp32"
    with pytest.raises(KeyError):
        table.row("hybrid")


def test_stragglers_and_sensitivity(document):
    table = paceline.predict(*JOB, 16, strategy="ring", slow_rank={3: 2, 5: 1.5}, spread="log-normal:0.05",
                             iterations=100, seed=7, sensitivity=True)
    assert table.document == document(
        "predict", *OPTIONS, "--ranks", 16, "--strategy", "ring", "--slow-rank", "3=2,5=1.5",
        "--spread", "log-normal:0.05", "--iterations", 100, "--seed", 7, "--sensitivity")


def test_a_curve(document):
    curve = paceline.scale(*JOB, [8, 64, 256], strategy=["fused-ring", "hybrid"])
    asked = document("scale", *OPTIONS, "--ranks", "8,64,256", "--strategy", "fused-ring,hybrid")
    assert curve.ranks == [8, 64, 256] and curve.strategies == ["fused-ring", "hybrid"]
    for point, other in zip(curve.points, asked["points"]):
        assert point.document["strategies"] == other["strategies"]
    rows = curve.curve("hybrid")
    assert list(rows["ranks"]) == [8, 64, 256]
    assert list(rows["iteration_s"]) == [p["strategies"][1]["iteration_s"] for p in asked["points"]]
    assert [row.name for row in curve.best] == [p["best"]["name"] for p in asked["points"]]
    assert paceline.scale(*JOB, "8-32", strategy="ring").ranks == [8, 16, 32]
    with pytest.raises(KeyError):
        curve.curve("ring")


def test_tune(document):
    tuned = paceline.tune(*JOB, 64, strategy=["fused-ring", "hybrid"])
    asked = document("tune", *OPTIONS, "--ranks", 64, "--strategy", "fused-ring,hybrid")
    assert tuned.complete and tuned.document == asked
    assert tuned.iteration_s <= min(tuned.strategies["iteration_s"])
    assert list(tuned.buckets["bytes"]) == [bucket["bytes"] for bucket in asked["buckets"]]
    # The plan is a value: predicted as it is, it takes as long.
    again = paceline.predict(*JOB, plan=tuned.plan)
    assert math.isclose(again.best.iteration_s, tuned.iteration_s, rel_tol=1e-9)


def test_time(document):
    times = paceline.time("all", "aws-p3-16xlarge", 16, size=["64KiB", "64MiB"], dtype="fp16")
    assert times.document == document("time", "all", "--cluster", "aws-p3-16xlarge", "--ranks", 16,
                                      "--size", "64KiB,64MiB", "--dtype", "fp16")
    for name in times.names:
        rows = times.times(name)
        assert list(rows["bytes"]) == [2**16, 2**26] and rows["time_s"][0] < rows["time_s"][1]
    assert all(best in times.names for best in times.best)
    with pytest.raises(KeyError):
        times.times("no-such")


def test_verify(document):
    proof = paceline.verify("hierarchical", 24, group=4)
    asked = document("verify", "--schedule", "hierarchical", "--ranks", 24, "--group", 4)
    assert proof and proof.counterexample is None
    for name in ("schedule", "collective", "ranks", "steps", "proved", "chunk_counts", "transfers"):
        assert getattr(proof, name) == asked[name]


def test_every_all_reduce_is_proved():
    for name in paceline.all_reduces():
        assert paceline.verify(name, 8), name
