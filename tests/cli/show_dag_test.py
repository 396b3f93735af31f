"""paceline show dag: the graph of an iteration, as other programs read it."""

import collections
import json
import re
import unittest
import xml.etree.ElementTree as ElementTree

from paceline import run

JOB = ("--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "16", "--strategy", "fused-ring")
SPACE = "{http://graphml.graphdrawing.org/xmlns}"
TASKS = re.compile(r'^(\d+)\s*\[(.*)\];$')
EDGES = re.compile(r'^(\d+)\s*->\s*(\d+)\s*\[(.*)\];$')


def graphml(*words):
    """Tasks by their id, and dependencies, as GraphML has them."""
    result = run("show", "dag", *JOB, *words, "--format", "graphml")
    assert result.returncode == 0, result.stderr
    root = ElementTree.fromstring(result.stdout)
    names = {key.get("id"): key.get("attr.name") for key in root.iter(SPACE + "key")}

    def data(element):
        return {names[entry.get("key")]: entry.text for entry in element.iter(SPACE + "data")}
    tasks = {node.get("id"): data(node) for node in root.iter(SPACE + "node")}
    edges = [(edge.get("source"), edge.get("target"), int(data(edge)["lag"])) for edge in root.iter(SPACE + "edge")]
    return tasks, edges


def dot(*words):
    """The same of DOT."""
    lines = [line for line in run("show", "dag", *JOB, *words).stdout.splitlines()]
    assert lines[0] == "digraph G {" and lines[-1] == "}", lines

    def data(text):
        return {key: value.strip('"') for key, value in re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|[^,\]]+)', text)}
    tasks, edges = {}, []
    for line in lines[1:-1]:
        if edge := EDGES.match(line):
            edges.append((edge[1], edge[2], int(data(edge[3])["lag"])))
        elif task := TASKS.match(line):
            tasks[task[1]] = data(task[2])
        else:
            raise AssertionError(line)
    return tasks, edges


class Dag(unittest.TestCase):
    def test_both_formats_have_the_same_graph(self):
        (of_xml, edges_of_xml), (of_dot, edges_of_dot) = graphml(), dot()
        self.assertEqual([{key: task[key] for key in of_xml["n0"]} for task in of_dot.values()], list(of_xml.values()))
        self.assertEqual(edges_of_dot, [(a[1:], b[1:], lag) for a, b, lag in edges_of_xml])

    def test_the_graph_is_what_predict_times(self):
        tasks, edges = graphml()
        row = json.loads(run("predict", *JOB, "--json").stdout)["strategies"][0]
        kinds = collections.Counter(task["kind"] for task in tasks.values())
        self.assertEqual(kinds["all-reduce"], row["buckets"])
        self.assertEqual(kinds["forward"], kinds["backward"])
        rounding = 0.5e-9 * len(tasks)
        self.assertAlmostEqual(1e-9 * sum(int(task["duration_ns"]) for task in tasks.values() if task["resource"] == "compute stream"), row["compute_s"], delta=rounding)
        critical = 1e-9 * sum(int(task["duration_ns"]) for task in tasks.values() if task["critical"] == "1")
        self.assertAlmostEqual(critical, sum(row["critical_path"].values()), delta=rounding)
        self.assertAlmostEqual(critical, row["iteration_s"], delta=rounding)
        self.assertLessEqual({lag for _, _, lag in edges}, {0, 1, 2})
        self.assertTrue(all(a in tasks and b in tasks for a, b, _ in edges))

    def test_what_is_wrong_is_one_line(self):
        for words, problem in ((("--format", "gml"), "--format: unknown format 'gml'; known: dot, graphml"),
                               (("--model", "resnet50,vgg16"), "several networks or wire types; a DAG has one of each"),
                               (("--strategy", "ring,fused-ring"), "--strategy: 2 strategies; a DAG has one, as in --strategy fused-ring"),
                               (("--batch", "100000"), "--batch: a batch of 100000 does not fit")):
            given = dict(zip(JOB[::2], JOB[1::2])) | dict([words])
            refused = run("show", "dag", *(word for pair in given.items() for word in pair))
            self.assertEqual((refused.returncode, refused.stdout, refused.stderr.count("\n")), (2, "", 1))
            self.assertTrue(refused.stderr.startswith("paceline: " + problem), refused.stderr)


if __name__ == "__main__":
    unittest.main()
