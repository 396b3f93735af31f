"""The package's answers are the command's: the same documents, to the last digit."""

import math
import pickle
import random

import numpy as np
import pytest

import paceline

JOB = ("resnet50", "jizhi-p40")
OPTIONS = ("--model", "resnet50", "--cluster", "jizhi-p40")


def test_the_table_of_the_readme(readme):
    strategies = ["ddp", "horovod", "nccl", "hierarchical-scatter"]
    table = paceline.predict("resnet50", "h200-ndr", nodes=8, strategy=strategies)
    words = f"--model resnet50 --cluster h200-ndr --nodes 8 --strategy {','.join(strategies)}"
    assert f"```console\n$ paceline predict {words}\n{table}```" in readme


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
    assert table.best.iteration_s == min(row.iteration_s for row in table)
    assert rows["iteration_s"].dtype == np.float64 and rows["fits_memory"].dtype == bool
    for row in table:
        assert math.isclose(sum(row.critical_path_s.values()), row.iteration_s, rel_tol=1e-6)


def test_rows_by_name():
    table = paceline.predict(*JOB, 64, strategy=["ring", "fused-ring"], wire=["fp16", "fp32"])
    assert table["ring"].wire_type == "fp16"
    assert table.row("ring", "fp32").wire_type == "fp32"
    assert "ring" in table and "hybrid" not in table
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


def test_a_curve_beside_what_was_measured(document, command):
    curve = paceline.scale(*JOB, [8, 64], strategy="hybrid", measured={8: 1710, 64: "13200 images/s"})
    words = ("scale", *OPTIONS, "--ranks", "8,64", "--strategy", "hybrid", "--measured", "8=1710images/s,64=13200images/s")
    assert curve.document == document(*words) and str(curve) == command(*words)
    assert curve.measured.tolist() == [(8, 1710.0), (64, 13200.0)]
    assert [point.ranks for point in curve] == [8, 64] and len(curve) == 2
    with pytest.raises(paceline.InputError, match="--measured"):
        paceline.scale(*JOB, [8], strategy="hybrid", measured={8: 0})


def test_tune_by_bad_states_of_the_world(document, command):
    words = ("tune", *OPTIONS, "--ranks", 64, "--strategy", "ddp,fused-ring", "--robust", "--seed", 3, "--default",
             "fused-ring", "--why")
    tuned = paceline.tune(*JOB, 64, strategy=["ddp", "fused-ring"], robust=True, seed=3, default="fused-ring", why=True)
    assert tuned.document == document(*words) and str(tuned) == command(*words)
    robust, of = tuned.robust, tuned.document["robust"]
    assert (robust.default, robust.name) == ("fused-ring", of["robust"]["name"])
    assert robust.p95_s == of["robust"]["p95_s"] <= of["best"]["p95_s"]
    assert robust.gain_low <= robust.gain <= robust.gain_high
    assert robust.keeps_default == (robust.gain_low <= 0 <= robust.gain_high)
    # The plan is the one that --plan-out writes: predicted as it is, it takes the stated time.
    stated = robust.default_iteration_s if robust.keeps_default else robust.iteration_s
    assert paceline.predict(*JOB, plan=tuned.plan).best.iteration_s == pytest.approx(stated, rel=1e-9)
    assert paceline.tune(*JOB, 8, strategy="ring", time_limit="0 s").robust is None
    with pytest.raises(paceline.InputError, match="--seed: nothing is sampled"):
        paceline.tune(*JOB, 64, seed=3)


def test_the_other_choices_of_a_tuned_plan():
    tuned = paceline.tune(*JOB, 64, strategy="fused-ring", why=True)
    others = tuned.alternatives
    assert set(others["bucket"]) == set(range(len(tuned.buckets)))
    assert np.allclose(others["iteration_s"], tuned.iteration_s * (1 + others["loss"]), rtol=1e-12)
    for bucket in range(len(tuned.buckets)):
        losses = others["loss"][others["bucket"] == bucket]
        assert np.all(np.diff(losses) >= 0)
    assert "what each bucket would lose" in str(tuned)
    unexplained = paceline.tune(*JOB, 64, strategy="fused-ring")
    assert len(unexplained.alternatives) == 0 and "what each bucket would lose" not in str(unexplained)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, command):
    """The timeline of a replay on two ranks, the second of which is slow."""
    path = tmp_path_factory.mktemp("run") / "run.json"
    command("replay", "--model", "cnn-small", "--cluster", "docs/examples/two-cores.yaml", "--ranks", 2, "--batch", 64,
            "--precision", "fp32", "--strategy", "fused-ring", "--iterations", 3, "--slow-rank", "1=3", "--timeline", path)
    return path


def test_what_if(recorded, document, command, source):
    cluster = source / "docs/examples/two-cores.yaml"
    words = ("compare", recorded, "--what-if", "without-slowest,bandwidth=2+latency=0.5", "--cluster", cluster)
    asked = paceline.compare(recorded, what_if=["without-slowest", {"bandwidth": 2, "latency": 0.5}], cluster=cluster)
    assert asked.document == document(*words) and str(asked) == command(*words)
    assert asked.answers["name"].tolist() == ["without-slowest", "bandwidth=2+latency=0.5"]
    assert asked.slowest_rank == 1 and asked.ranks["passes_s"][1] > asked.ranks["passes_s"][0]
    assert asked.iteration_s == asked.document["measured_iteration_s"]
    # Values in place of names and files, also after a copy through a file.
    run = paceline.Timeline.load(recorded)
    run.save(recorded.with_name("copy.json"))
    for timeline in (run, recorded.with_name("copy.json"), pickle.loads(pickle.dumps(run))):
        again = paceline.compare(timeline, what_if="without-slowest", cluster=paceline.Cluster.load(cluster),
                                 model=paceline.Network.load("cnn-small"))
        assert again.answers[0] == asked.answers[0]


def test_what_if_with_the_plan_that_ran(recorded, source):
    cluster = source / "docs/examples/two-cores.yaml"
    job = ("cnn-small", cluster, 2)
    plan = paceline.predict(*job, batch=64, precision="fp32", strategy="fused-ring")["fused-ring"].plan
    asked = paceline.compare(recorded, plan=plan, what_if={"bandwidth": 2}, cluster=cluster)
    assert asked.answers[0] == paceline.compare(recorded, what_if="bandwidth=2", cluster=cluster).answers[0]
    other = paceline.predict(*job, batch=64, precision="fp32", strategy="ring")["ring"].plan
    with pytest.raises(paceline.InputError):
        paceline.compare(recorded, plan=other, what_if="bandwidth=2", cluster=cluster)


@pytest.mark.parametrize("asked, said", [
    ({}, "takes a prediction, or what_if"),
    ({"prediction": "p.json", "what_if": "compute=2"}, "and not both"),
    ({"prediction": "run", "engine": "flow"}, "only with what_if"),
    ({"what_if": "compute=2", "nonsense": 1}, "unexpected keyword argument 'nonsense'")])
def test_what_compare_refuses(recorded, asked, said):
    asked = {key: recorded if value == "run" else value for key, value in asked.items()}
    with pytest.raises((TypeError, paceline.InputError), match=said):
        paceline.compare(recorded, **asked)


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


def test_time_against_what_was_measured(document, source):
    file = source / "tests/golden/imports/nccl_tests/2.13-half-two-nodes.txt"
    times = paceline.time("nccl", "aws-p4d-24xlarge", 16, against=file)
    assert times.document == document("time", "nccl", "--cluster", "aws-p4d-24xlarge", "--against", file)
    assert {row["verdict"] for row in times.document["against"]["rows"]} <= {"inside", "slower", "faster"}


def test_verify(document):
    proof = paceline.verify("hierarchical", 24, group=4)
    asked = document("verify", "--schedule", "hierarchical", "--ranks", 24, "--group", 4)
    assert proof and proof.counterexample is None
    for name in ("schedule", "collective", "ranks", "steps", "proved", "chunk_counts", "transfers"):
        assert getattr(proof, name) == asked[name]


def test_every_all_reduce_is_proved():
    for name in paceline.all_reduces():
        assert paceline.verify(name, 8), name


def test_a_cost_is_the_documents(document, command):
    words = ("--epochs", 2, "--dataset", "cifar-10", "--node-price", "10 USD/h")
    cost = paceline.cost("alexnet", "jizhi-p40", 16, epochs=2, dataset="cifar-10", node_price="10 USD/h")
    assert cost.document == document("cost", "--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", 16, *words)
    assert list(cost.table["name"]) == [row["name"] for row in cost.document["strategies"]]
    assert str(cost) == command("cost", "--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", 16, *words, "--wide")
    by_values = paceline.cost(paceline.Network.load("alexnet"), paceline.Cluster.load("jizhi-p40"), nodes=2, epochs=2,
                              dataset="cifar-10", node_price="10 USD/h")
    assert by_values.document == cost.document
    with pytest.raises(paceline.InputError, match="--epochs is missing"):
        paceline.cost("alexnet", "jizhi-p40", 16)


def test_a_notebook_shows_tables():
    table = paceline.predict(*JOB, 8, strategy=["ring", "fused-ring"])
    curve = paceline.scale(*JOB, "8,16", strategy="ring")
    for answer, rows in ((table, 2), (curve, 2)):
        html = answer._repr_html_()
        assert html.count("<tr>") == rows + 1
        assert all(f"<th>{name}</th>" in html for name in answer.table.dtype.names)
    assert list(curve.table["ranks"]) == [8, 16]
    pandas = pytest.importorskip("pandas")
    assert pandas.DataFrame(table.table).equals(table.to_pandas())


def test_help_explains_each_keyword():
    for function in (paceline.predict, paceline.scale, paceline.tune, paceline.cost, paceline.time):
        assert "placement: str | Sequence[int]\n        Which slot" in function.__doc__
    assert "optimizer_states: int\n" in paceline.predict.__doc__


def test_answers_go_to_other_processes():
    table = paceline.predict("alexnet", "jizhi-p40", 16, batch=32)
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(table))))
    assert again.document == table.document
    assert again.text() == table.text()
    assert again.best.plan == table.best.plan
    assert again.best.timeline().period_s == table.best.timeline().period_s
    curve = paceline.scale("alexnet", "jizhi-p40", "8-32")
    copied = pickle.loads(pickle.dumps(curve))
    assert copied.document == curve.document and len(copied) == 3
    assert copied.points[2].best.plan == curve.points[2].best.plan
    assert pickle.loads(pickle.dumps(curve.points[1])).document == curve.points[1].document
    tuning = paceline.tune("alexnet", "jizhi-p40", 16, time_limit="1 s")
    kept = pickle.loads(pickle.dumps(tuning))
    assert (kept.document, kept.plan, kept.text()) == (tuning.document, tuning.plan, tuning.text())
    own = paceline.predict(paceline.Network.load("alexnet"), paceline.Cluster.load("jizhi-p40"), 8)
    assert pickle.loads(pickle.dumps(own)).text() == own.text()


def test_plan_capacity_is_the_command_s(document):
    capacity = paceline.plan_capacity("resnet50", ["aws-p3-16xlarge", "jizhi-p40"], epochs=90, dataset="imagenet", within="2h", nodes="1,2,4")
    words = ["plan-capacity", "--model", "resnet50", "--cluster", "aws-p3-16xlarge,jizhi-p40", "--epochs", "90", "--dataset", "imagenet",
             "--within", "2h", "--nodes", "1,2,4"]
    assert capacity.document == document(*words)
    assert capacity.answer["cluster"] == "aws-p3-16xlarge"
    assert capacity.answer in capacity.front
    assert list(capacity.table["ranks"]) == [c["ranks"] for c in capacity.document["candidates"]]
    with pytest.raises(TypeError, match="unexpected keyword argument 'nope'"):
        paceline.plan_capacity("resnet50", "jizhi-p40", nope=1)
    with pytest.raises(paceline.InputError, match="--within"):
        paceline.plan_capacity("resnet50", "jizhi-p40", within="soon")


def test_export_is_the_command_s(command, tmp_path):
    plan = paceline.predict("alexnet", "jizhi-p40", 16).best.plan
    path = tmp_path / "plan.json"
    plan.save(path)
    printed = command("export", str(path), "--format", "ddp", "--cluster", "jizhi-p40")
    assert paceline.export(path, "ddp", cluster="jizhi-p40") == printed
    assert paceline.export(plan, "ddp", cluster="jizhi-p40") == printed
    with pytest.raises(paceline.InputError, match="--cluster"):
        paceline.export(plan, "ddp")


def test_sweep_is_the_command_s(command, tmp_path):
    path = tmp_path / "sweep.yaml"
    path.write_text("{sweep: little, model: [alexnet], cluster: [jizhi-p40], ranks: [8, 16], strategy: [ring, fused-ring]}\n")
    sweep = paceline.sweep(path)
    assert sweep.csv == command("sweep", str(path))
    assert list(sweep.table["ranks"]) == [8, 8, 16, 16]
    assert sweep.table["iteration_s"].dtype == "f8" and sweep.rows[0]["strategy"] == "ring"
    with pytest.raises(paceline.InputError, match="missing.yaml"):
        paceline.sweep(tmp_path / "missing.yaml")
