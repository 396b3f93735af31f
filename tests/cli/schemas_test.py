"""The schemas: each document that the command writes or reads holds to its own, and a document with a key that
is missing, unknown or of another type does not. `paceline show schema` makes those of the documents whose
table is a Document (models/base/document.h); docs/schemas has the others.
"""

import copy
import functools
import json
import os
import random
import re
import struct
import subprocess
import unittest

from page_server import PageServer
from paceline import ENVIRONMENT, EXAMPLES, HANG_S, PACELINE, SOURCE, CommandTest, report_documents, run

try:
    import jsonschema
except ImportError:
    jsonschema = None

DOUBLES = os.environ.get("PACELINE_DOUBLES", "")  # of CUDA's libraries, where they are built
SCHEMAS = SOURCE / "docs" / "schemas"
SHARED = "common.json"  # definitions that several schemas refer to
# Names that are of no JSON document, or of tools of the source tree that nobody installs.
WITHOUT_SCHEMA = {
    "nccl-tuner/1": "is a file of text",
    "sweep/1": "begins the digest of a sweep",
    "sweep_journal/1": "is a line of text",
    "lab/1": "is the report of experiments/lab",
    "collective_benchmark/1": "is of tests/benchmarks",
}
SOURCES = ("models", "simulator", "runtime", "calibration", "experiments", "cli", "tests/benchmarks")
MEASURED = str(SOURCE / "tests" / "golden" / "imports" / "nccl_tests" / "2.13-half-two-nodes.txt")
WRONG = {"wrong": [None]}  # fits nowhere
TWO_CORES = str(EXAMPLES / "two-cores.yaml")
LITTLE = ("--model", "cnn-small", "--cluster", TWO_CORES, "--ranks", "2", "--batch", "8", "--precision", "fp32")
JOB = ("--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "64")


def file_of(name):
    return name.replace("/", "-") + ".json"


@functools.lru_cache(maxsize=None)
def made_names():
    """Names of the documents whose schema the command makes: prediction/1."""
    return re.findall(r"^([a-z_-]+/[0-9]+) ", run("show", "schema").stdout, re.MULTILINE)


@functools.lru_cache(maxsize=None)
def schema_of(name):
    if name in made_names():
        return json.loads(run("show", "schema", name).stdout)
    return json.loads((SCHEMAS / file_of(name)).read_text())


def validator(name):
    schema = schema_of(name)
    base = (SCHEMAS / file_of(name)).as_uri()
    return jsonschema.Draft202012Validator(schema, resolver=jsonschema.RefResolver(base, schema))


def header_of(checkpoint):
    bytes_ = checkpoint.read_bytes()
    length = struct.unpack_from("<I", bytes_, 12)[0]
    return json.loads(bytes_[32:32 + length])


class Files(CommandTest):
    def test_every_name_in_the_sources_has_a_schema(self):
        names = set()
        for folder in SOURCES:
            for path in (SOURCE / folder).rglob("*"):
                if path.suffix in (".cc", ".h", ".py", ".cu"):
                    names |= set(re.findall(r'"paceline\.([a-z_-]+/[0-9]+)"', path.read_text(errors="replace")))
        self.assertGreater(len(names), 25)
        made = set(made_names())
        self.assertGreater(len(made), 25)
        files = {path.name for path in SCHEMAS.iterdir()}
        self.assertEqual(made | {name for name in names if file_of(name) in files}, names - set(WITHOUT_SCHEMA))
        self.assertFalse(files & {file_of(name) for name in made})
        self.assertEqual({file_of(name) for name in names - made if name not in WITHOUT_SCHEMA} | {SHARED}, files)
        self.assertLessEqual(set(WITHOUT_SCHEMA), names | {"sweep_journal/1"})

    def test_docs_name_every_schema(self):
        text = (SOURCE / "docs" / "formats.md").read_text()
        for path in SCHEMAS.glob("*-[0-9]*.json"):
            name = re.sub(r"-([0-9]+)$", r"/\1", path.stem)
            self.assertEqual(json.loads(path.read_text())["title"], "paceline." + name)
            self.assertTrue(f"paceline.{name}](schemas/{path.name})" in text or f"paceline.{name}`](schemas/{path.name})" in text, name)
        for name in made_names():
            self.assertEqual(schema_of(name)["title"], "paceline." + name)
            self.assertIn(f"paceline.{name}", text)

    def test_all_are_written_into_a_folder(self):
        self.done(run("show", "schema", "--folder", str(self.folder)))
        self.assertEqual({path.name for path in self.folder.iterdir()}, {file_of(name) for name in made_names()})
        self.assertEqual(json.loads((self.folder / "cost-1.json").read_text()), schema_of("cost/1"))

    def test_unknown_documents_are_refused(self):
        self.refused(run("show", "schema", "predicton/1"), "paceline: unknown document 'predicton/1'; did you mean 'prediction/1'?\n")


@unittest.skipIf(jsonschema is None, "python3-jsonschema is not there")
class Documents(CommandTest):
    def test_every_file_is_a_schema_whose_references_lead_somewhere(self):
        def references(value):
            if isinstance(value, dict):
                yield from (value["$ref"],) if "$ref" in value else ()
                value = list(value.values())
            if isinstance(value, list):
                for inner in value:
                    yield from references(inner)

        for path in sorted(SCHEMAS.iterdir()):
            with self.subTest(path.name):
                schema = json.loads(path.read_text())
                jsonschema.Draft202012Validator.check_schema(schema)
                resolver = jsonschema.RefResolver(path.as_uri(), schema)
                for reference in references(schema):
                    resolver.resolve(reference)
        for name in made_names():
            with self.subTest(name):
                jsonschema.Draft202012Validator.check_schema(schema_of(name))
                self.assertEqual(list(references(schema_of(name))), [])

    def holds(self, document, name=None):
        """The document is as its schema says, and no longer once it is damaged anywhere."""
        name = name or document["schema"].removeprefix("paceline.")
        check = validator(name)
        for error in check.iter_errors(document):
            self.fail(f"{name}: {'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")
        for key in document:
            if key in check.schema["required"]:
                self.assertFalse(check.is_valid({k: v for k, v in document.items() if k != key}), f"{name} without {key}")
            self.assertFalse(check.is_valid({**document, key: WRONG}), f"{name} with a wrong {key}")
        self.assertFalse(check.is_valid({**document, "unexpected": 1}), f"{name} with an unknown key")
        small = shortened(document)
        self.assertTrue(check.is_valid(small), name)
        chance = random.Random(7)
        inner = list(places(small))
        for place in chance.sample(inner, min(len(inner), 40)):
            self.assertFalse(check.is_valid(damaged(small, place)), f"{name} with a wrong value at {place}")
        return name

    def printed(self, *words):
        return json.loads(self.done(run(*words)))

    def test_what_is_predicted(self):
        plan = self.folder / "plan.json"
        timeline = self.folder / "timeline.json"
        for words in (("predict", *JOB, "--plan-out", str(plan), "--timeline", str(timeline)),
                      ("predict", *JOB, "--others"),
                      ("predict", *JOB, "--strategy", "k-fac,horovod,byte-scheduler,kvstore,byteps,multi-ring", "--theta", "2MB"),
                      ("predict", *JOB, "--strategy", "hybrid,nccl", "--sensitivity", "--eta", "1MB", "--group", "8", "--accumulate", "2"),
                      ("predict", *JOB, "--strategy", "ring", "--spread", "log-normal:0.1", "--slow-rank", "3=2", "--backup", "4"),
                      ("predict", "--model", "bert-base,alexnet", *JOB[2:], "--batch", "8", "--strategy", "ring"),
                      ("predict", *LITTLE, "--strategy", "all"),
                      ("scale", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "8,16", "--strategy", "ring,torus-2d"),
                      ("scale", "--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "8", "--strategy", "ring", "--measured", "8=1650images/s"),
                      ("predict", "--model", "gpt2-small", "--cluster", "h200-ndr", "--ranks", "16", "--batch", "2", "--strategy", "zero1", "--tensor", "2", "--pipeline", "2", "--accumulate", "2"),
                      ("tune", "--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "16", "--time-limit", "1 s"),
                      ("tune", "--layouts", "--model", "gpt2-small", "--cluster", "h200-ndr", "--ranks", "16", "--global-batch", "64"),
                      ("time", "all", "--cluster", "h200-ndr", "--ranks", "16", "--size", "8-64KiB"),
                      ("time", "ring", "--cluster", "h200-ndr", "--ranks", "16", "--size", "1MiB", "--measured", "64B=40.5us@16"),
                      ("time", "nccl", "--cluster", "h200-ndr", "--against", MEASURED, "--measured", "64KiB=60us@16"),
                      ("show", "plan", *JOB, "--strategy", "fused-ring,parameter-server,byte-scheduler,nccl"),
                      ("show", "plan", "--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "16", "--strategy", "fused-ring,ring", "--overlap", "double-buffered", "--why"),
                      ("cost", *JOB, "--epochs", "90", "--dataset", "imagenet", "--evaluate", "50000", "--strategy", "fused-ring"),
                      ("cost", "--model", "bert-large", "--cluster", "h200-ndr", "--ranks", "64", "--phases", str(EXAMPLES / "bert-phases.yaml"), "--node-price", "aws-p5en-48xlarge", "--strategy", "fused-ring,nccl"),
                      ("plan-capacity", "--model", "resnet50", "--cluster", "aws-p3-16xlarge,jizhi-p40", "--epochs", "90", "--dataset", "imagenet", "--within", "2h", "--efficiency", "90%")):
            with self.subTest(words=words):
                self.holds(self.printed(*words, "--json"))
        self.holds(json.loads(plan.read_text()))
        self.holds(json.loads(timeline.read_text()), "timeline/1")
        self.holds(self.exported("nccl-config", plan))

    def test_every_threshold_that_is_given_is_in_a_document(self):
        values = {"theta": "2MB", "eta": "1MB", "group": "4", "segments": "8", "rings": "2", "servers": "2", "server-placement": "round-robin", "streams": "2",
                  "horovod": "0.21", "cycle": "2ms", "partition": "2MB", "credit": "8MB", "server-machines": "2", "server-transport": "rdma",
                  "factors-every": "2", "host-copies": None, "reshard-after-forward": "no"}
        job = ("--model", "alexnet", "--cluster", "jizhi-p40", "--ranks", "16",
               "--strategy", "ring,fused-ring,hybrid,double-binary-tree,multi-ring,parameter-server,horovod,byte-scheduler,byteps,kvstore,k-fac,fsdp")
        commands = (("predict", *job), ("scale", *job), ("cost", *job, "--iterations", "10"), ("show", "plan", *job), ("tune", *job, "--time-limit", "0 s"))
        chance = random.Random(5)
        seen = set()
        for draw in range(12):
            names = [name for name in values if chance.random() < 0.5]
            if "servers" in names and "server-machines" in names:
                names.remove(chance.choice(("servers", "server-machines")))
            if draw < 2:  # each is given at least once
                names = [name for name in values if name != ("servers", "server-machines")[draw]]
            command = commands[draw % len(commands)]
            if command[0] == "tune" and "host-copies" in names:
                names.remove("host-copies")
            words = [word for name in names for word in (f"--{name}", values[name]) if word is not None]
            with self.subTest(command=command[0], words=words):
                document = self.printed(*command, *words, "--json")
                self.holds(document)
                keys = {re.sub("_(bytes|s|negotiation)$", "", key).replace("_", "-") for key in document["given_thresholds"]}
                self.assertEqual(keys, set(names))
                seen |= keys
        self.assertEqual(seen, set(values))
        self.assertEqual(len(schema_of("prediction/1")["properties"]["given_thresholds"]["properties"]), len(values))

    def exported(self, form, plan):
        path = self.folder / "exported.json"
        self.done(run("export", str(plan), "--format", form, "--cluster", "jizhi-p40", "--output", str(path)))
        return json.loads(path.read_text())

    def test_what_is_shown_and_proved(self):
        platform = SOURCE / "tests" / "golden" / "platform_fat_tree.xml"
        for words in (("show", "network", "resnet50"), ("show", "network", "bert-base"), ("show", "cluster", "jizhi-p40"), ("show", "cluster", TWO_CORES),
                      ("show", "catalog"), ("doctor",), ("show", "recipes"), ("show", "nccl", "--cluster", "h200-ndr", "--ranks", "64"),
                      ("show", "cluster", str(platform)), ("verify", "--schedule", "ring", "--ranks", "4")):
            with self.subTest(words=words):
                self.holds(self.printed(*words, "--json"))

    def test_a_counterexample_is_a_proof_document(self):
        document = self.printed("verify", "--schedule", "ring", "--ranks", "4", "--json")
        del document["transfers"]
        document.update(proved=False, counterexample={"fault": "race", "step": 1, "rank": 2, "chunk": 3, "chunks": 4, "why": "read while it is replaced"})
        self.holds(document)

    def test_what_runs(self):
        run_file, predicted, checkpoint = (self.folder / name for name in ("run.json", "predicted.json", "checkpoint"))
        self.holds(self.printed("replay", *LITTLE, "--strategy", "ring", "--iterations", "4", "--timeline", str(run_file), "--json"))
        self.holds(json.loads(run_file.read_text()), "timeline/1")
        self.done(run("predict", *LITTLE, "--strategy", "ring", "--timeline", str(predicted)))
        self.holds(self.printed("compare", str(run_file), str(predicted), "--json"))
        self.holds(self.printed("compare", str(run_file), "--cluster", TWO_CORES, "--what-if", "compute=2,bandwidth=2", "--json"))
        self.holds(self.printed("train", "--model", "cnn-small", "--data", "synthetic", "--batch", "32", "--epochs", "1", "--stop-after", "3", "--threads", "1",
                                "--checkpoint", str(checkpoint), "--json"))
        self.holds(header_of(checkpoint))

    def test_what_is_reproduced(self):
        runs = SOURCE / "experiments" / "convergence" / "results.jsonl"
        for words in (("goyal",), ("nccl-tests",), ("all",), ("convergence", "--results", str(runs))):
            with self.subTest(words=words):
                document = self.printed("reproduce", *words, "--json")
                self.holds(document)
            if words == ("all",):
                # All sources once without each mechanism take minutes: their form is put together here.
                summary = {"rows_moved": 1, "summary": document["summary"]}
                self.holds({"schema": "paceline.mechanisms/1", "summary": document["summary"],
                            "without": [{"name": "crowding", "what": "boxes are hot", **summary, "sources": {"goyal": summary}}]})

    def test_what_is_fitted(self):
        report = self.folder / "report.html"
        self.done(run("calibrate", "import", str(SOURCE / "tests/golden/imports/nccl_tests/2.13-half-two-nodes.txt"), "--html", str(report)))
        self.holds(report_documents(report)["result"])

    def test_what_the_page_offers(self):
        try:
            server = PageServer()
        except AssertionError as unavailable:
            self.skipTest(str(unavailable))
        self.addCleanup(server.close)
        self.holds(json.loads(server.get("/choices")[2]))

    def test_engines_that_agree(self):
        result = run("agree", "--ranks", "4", "--schedule", "ring", "--json")
        if "SimGrid" in result.stderr:
            self.skipTest(result.stderr)
        self.holds(json.loads(self.done(result)))

    @unittest.skipUnless(os.path.exists(os.path.join(DOUBLES, "libcudnn.so.9")), "no double of cuDNN is built")
    def test_plans_of_cudnn(self):
        plans = self.folder / "plans.json"
        environment = {**ENVIRONMENT, "LD_LIBRARY_PATH": DOUBLES}
        self.done(subprocess.run([PACELINE, "train", "--model", "cnn-small", "--data", "synthetic", "--batch", "4", "--threads", "1", "--device", "cuda",
                                  "--layer-plans", str(plans), "--stop-after", "1"], capture_output=True, text=True, env=environment, timeout=HANG_S))
        self.holds(json.loads(plans.read_text()))

    def test_files_that_are_shipped(self):
        paths = [*(SOURCE / "calibration" / "profiles").glob("*.json"), EXAMPLES / "profile.json", *(SOURCE / "tests" / "golden").glob("plan_*.json"),
                 *(SOURCE / "runtime" / "network" / "cudnn" / "devices").glob("*.json")]
        self.assertGreater(len(paths), 7)
        for path in paths:
            with self.subTest(path.name):
                self.holds(json.loads(path.read_text()))


def shortened(value):
    """The document with at most three elements of each list, so that damaging it is quick."""
    if isinstance(value, dict):
        return {key: shortened(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shortened(inner) for inner in value[:3]]
    return value


def places(value, at=()):
    """Where there is a value in the document, as keys and indices."""
    if at:
        yield at
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*at, key))


def damaged(document, place):
    document = copy.deepcopy(document)
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = WRONG
    return document


if __name__ == "__main__":
    unittest.main()
