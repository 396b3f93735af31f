"""Networks, clusters, profiles, plans and timelines as values."""

import copy
import json
import pickle

import numpy as np
import pytest

import paceline


def test_networks_of_the_zoo_and_their_documents(document):
    for name in paceline.networks():
        network = paceline.Network.load(name)
        shown = document("show", "network", name)
        assert network.document == shown and network.parameters == shown["parameters"]
        assert network.layers["parameters"].sum() == network.gradients["elements"].sum() == network.parameters
        assert network.layers["forward_flops"].sum() == network.forward_flops
        assert paceline.Network.from_yaml(network.to_yaml()) == network


def test_clusters_of_the_catalogue_and_their_documents(document):
    for name in paceline.clusters():
        cluster = paceline.Cluster.load(name)
        assert cluster.document == document("show", "cluster", name)
        assert cluster.ranks == cluster.document["ranks"]
        for figure in cluster.figures:
            assert figure.low <= figure.value <= figure.high and figure.source


def test_a_prediction_of_values(tmp_path):
    network, cluster = paceline.Network.load("alexnet"), paceline.Cluster.load("jizhi-p40")
    profile = paceline.Profile.load("jizhi-p40")
    by_name = paceline.predict("alexnet", "jizhi-p40", 32, strategy="ring")
    assert paceline.predict(network, cluster, 32, strategy="ring").document == by_name.document
    assert paceline.predict(network, cluster, 32, strategy="ring", profile=profile).document == by_name.document
    network.save(tmp_path / "net.yaml")
    assert paceline.predict(tmp_path / "net.yaml", cluster, 32, strategy="ring").document == by_name.document
    without = paceline.predict(network, cluster, 32, strategy="ring", profile=None)
    assert without.document["profile"] is None and by_name.document["profile"] == "jizhi-p40"


def test_a_network_and_a_cluster_of_ones_own(source):
    text = (source / "docs/examples/tiny-net.yaml").read_text()
    network = paceline.Network.from_yaml(text)
    cluster = paceline.Cluster.from_yaml((source / "docs/examples/lab.yaml").read_text())
    table = paceline.predict(network, cluster, 2, batch=8, strategy="ring")
    by_file = paceline.predict(source / "docs/examples/tiny-net.yaml",
                               source / "docs/examples/lab.yaml", 2, batch=8, strategy="ring")
    assert table.document == by_file.document


def test_placement_is_of_the_cluster(document):
    table = paceline.predict("alexnet", paceline.Cluster.load("jizhi-p40"), 16, strategy="ring",
                             placement="round-robin")
    assert table.document == document("predict", "--model", "alexnet", "--cluster", "jizhi-p40", "--ranks",
                                      16, "--strategy", "ring", "--placement", "round-robin")


def test_plans_travel_between_the_package_and_the_command(tmp_path, document):
    row = paceline.predict("alexnet", "jizhi-p40", 16, strategy="hybrid").best
    row.plan.save(tmp_path / "plan.json")
    assert paceline.Plan.load(tmp_path / "plan.json") == row.plan
    shown = document("predict", "--model", "alexnet", "--cluster", "jizhi-p40", "--plan", tmp_path / "plan.json")
    assert shown["strategies"][0]["iteration_s"] == row.iteration_s
    buckets, network = row.plan.buckets, paceline.Network.load("alexnet")
    assert buckets["gradients"].sum() == len(network.gradients)
    assert buckets["elements"].sum() == network.parameters


def test_timelines(tmp_path, command):
    row = paceline.predict("alexnet", "jizhi-p40", 16, strategy="ring").best
    timeline = row.timeline()
    command("predict", "--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", 16, "--strategy", "ring",
            "--timeline", tmp_path / "t.json")
    assert timeline.to_chrome_trace() == (tmp_path / "t.json").read_text()
    again = paceline.Timeline.load(tmp_path / "t.json")
    assert again.title == timeline.title and again.provenance == "predicted"
    events = timeline.events
    assert set(events["task"]) >= {"forward", "backward", "all-reduce", "update"}
    assert np.allclose(again.events["start_s"], events["start_s"], atol=1e-9)
    assert timeline.period_s == pytest.approx(row.iteration_s, rel=1e-9)
    for resource in set(events["resource"]):
        for stream in set(events["stream"]):
            track = np.sort(events[(events["resource"] == resource) & (events["stream"] == stream)],
                            order=["start_s", "duration_s"])
            ends = track["start_s"] + track["duration_s"]
            assert np.all(ends[:-1] <= track["start_s"][1:] + 1e-9)
    assert len(timeline.buckets) == row.document["buckets"]


def test_compare_is_the_commands(tmp_path, source, document):
    lab = source / "docs/examples/two-cores.yaml"
    common = ["--model", source / "docs/examples/tiny-net.yaml", "--cluster", lab, "--ranks", 2, "--strategy",
              "ring", "--batch", 2, "--precision", "fp32"]
    paths = tmp_path / "run.json", tmp_path / "prediction.json"
    document("predict", *common, "--timeline", paths[1])
    document("replay", *common, "--iterations", 3, "--timeline", paths[0])
    comparison = paceline.compare(*paths)
    assert comparison.document == document("compare", *paths)
    assert comparison.parts["difference_s"].sum() == pytest.approx(comparison.iteration["difference_s"], rel=1e-6)
    assert set(comparison.layers["direction"]) == {"forward", "backward"}
    run = paceline.Timeline.load(paths[0])
    assert paceline.compare(run, paths[1]).document["iteration"] == comparison.document["iteration"]
    with pytest.raises(paceline.InputError, match="run"):
        paceline.compare(paths[1], paths[0])


def test_documents_of_profiles(tmp_path):
    for name in paceline.profiles():
        profile = paceline.Profile.load(name)
        profile.save(tmp_path / "profile.json")
        assert json.loads((tmp_path / "profile.json").read_text()) == profile.document
        assert paceline.Profile.load(tmp_path / "profile.json").document == profile.document


def test_values_travel_to_other_processes():
    """As multiprocessing sends them."""
    row = paceline.predict("alexnet", "jizhi-p40", 32, strategy="ring")["ring"]
    values = [paceline.Network.load("alexnet"), paceline.Cluster.load("jizhi-p40"), row.plan, row.timeline(),
              paceline.Cluster.load("jizhi-p40", placement="round-robin"), paceline.Profile.load("jizhi-p40")]
    for value in values:
        for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
            if isinstance(value, paceline.Timeline):
                # A file has whole nanoseconds.
                assert np.allclose(again.events["start_s"], value.events["start_s"], rtol=0, atol=1e-9)
                assert again.events[["task", "index"]].tolist() == value.events[["task", "index"]].tolist()
            else:
                assert again.document == value.document
