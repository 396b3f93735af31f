"""Plans as the settings of FSDP2, DeepSpeed, Megatron-LM, torchtitan and NeMo, end to end: each file is read by
another reader (a Python interpreter, json, argparse, tomllib, yaml), which finds the axes, the batches and the
sharding of the plan again, and what a framework cannot be told is a warning.
"""

import argparse
import json
import pathlib
import re
import sys
import tempfile
import tomllib
import types
import unittest

try:
    import yaml
except ImportError:
    yaml = None

from paceline import CommandTest, run

FORMATS = ("fsdp2", "deepspeed", "megatron", "torchtitan", "nemo")
LLAMA = ("--model", "llama-3-8b", "--cluster", "h100-ndr", "--ranks", "64", "--batch", "1", "--accumulate", "4", "--recompute", "full")
MESH = ("--model", "llama-3-70b", "--cluster", "h100-ndr", "--ranks", "256", "--tensor", "8", "--pipeline", "4", "--chunks", "5", "--batch", "1",
        "--accumulate", "32", "--recompute", "full")
EXPERTS = ("--model", "mixtral-8x7b", "--cluster", "h200-ndr", "--ranks", "64", "--batch", "1", "--accumulate", "8", "--expert", "8", "--precision", "fp8")


class Recorded(types.ModuleType):
    """A module of which every name is a function that records its call."""

    calls = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("float32", "bfloat16"):
            return name

        def call(*words, **named):
            Recorded.calls.append((name, words, named))
            return (name, words)

        return call


class Frameworks(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def plan(self, *words):
        path = self.folder / "plan.json"
        path.unlink(missing_ok=True)
        self.done(run("predict", *words, "--plan-out", str(path)))
        return path

    def exported(self, form, *words):
        answer = run("export", str(self.plan(*words)), "--format", form)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout, answer.stderr

    def applied(self, text, blocks):
        """The calls that the script makes for a model of this many blocks."""
        names = ("torch", "torch.distributed", "torch.distributed.device_mesh", "torch.distributed.fsdp", "torch.distributed.algorithms",
                 "torch.distributed.algorithms._checkpoint", "torch.distributed.algorithms._checkpoint.checkpoint_wrapper",
                 "torch.distributed._composable", "torch.distributed._composable.replicate")
        before = {name: sys.modules.get(name) for name in names}
        sys.modules.update({name: Recorded(name) for name in names})
        try:
            Recorded.calls = []
            space = {}
            exec(compile(text, "plan.py", "exec"), space)  # noqa: S102
            space["parallelize"]("model", [f"block {i}" for i in range(blocks)])
            return Recorded.calls
        finally:
            for name, module in before.items():
                if module is None:
                    del sys.modules[name]
                else:
                    sys.modules[name] = module

    def test_fsdp2_shards_each_block_and_the_root(self):
        for words, mesh, is_dropped in ((("--strategy", "fsdp"), (64,), True), (("--strategy", "hsdp", "--group", "8"), (8, 8), True),
                                        (("--strategy", "fsdp", "--reshard-after-forward", "no"), (64,), False),
                                        (("--strategy", "zero2", "--wire", "fp32"), (64,), False)):
            text, _ = self.exported("fsdp2", *LLAMA, *words, "--ignore-memory")
            calls = self.applied(text, 32)
            shards = [call for call in calls if call[0] == "fully_shard"]
            self.assertEqual(len(shards), 33)
            self.assertEqual([call[2]["reshard_after_forward"] for call in shards[:32]], [is_dropped] * 32)
            self.assertEqual(next(call for call in calls if call[0] == "init_device_mesh")[1][1], mesh)
            policy = next(call for call in calls if call[0] == "MixedPrecisionPolicy")[2]
            self.assertEqual(policy, {"param_dtype": "bfloat16", "reduce_dtype": "float32" if "fp32" in words else "bfloat16"})
            self.assertEqual(sum(call[0] == "checkpoint_wrapper" for call in calls), 32)

    def test_units_of_several_blocks_stay_together(self):
        text, _ = self.exported("fsdp2", *LLAMA, "--strategy", "fsdp", "--theta", "1GiB")
        shards = [call for call in self.applied(text, 32) if call[0] == "fully_shard"]
        self.assertLess(len(shards), 32)
        self.assertEqual(len([block for call in shards[:-1] for block in call[1][0]]), 32)

    def test_deepspeed_has_the_stage_and_batches_that_multiply(self):
        for strategy, stage in (("nccl", 0), ("zero1", 1), ("zero2", 2), ("fsdp", 3)):
            text, _ = self.exported("deepspeed", *LLAMA, "--strategy", strategy, "--ignore-memory")
            config = json.loads(text)
            self.assertEqual(config["zero_optimization"]["stage"], stage)
            self.assertEqual(config["train_batch_size"], 64 * config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"])
            self.assertEqual(config["bf16"], {"enabled": True})
        text, _ = self.exported("deepspeed", *LLAMA, "--strategy", "hsdp", "--group", "8")
        self.assertEqual(json.loads(text)["zero_optimization"]["mics_shard_size"], 8)
        text, _ = self.exported("deepspeed", *LLAMA, "--strategy", "zero2", "--offload", "optimizer")
        self.assertEqual(json.loads(text)["zero_optimization"]["offload_optimizer"], {"device": "cpu"})

    def test_megatron_takes_its_arguments(self):
        parser = argparse.ArgumentParser(exit_on_error=False)
        for name in ("tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size", "expert-model-parallel-size",
                     "expert-tensor-parallel-size", "num-virtual-stages-per-pipeline-rank", "micro-batch-size", "global-batch-size", "seq-length",
                     "ddp-bucket-size", "num-distributed-optimizer-instances", "recompute-num-layers"):
            parser.add_argument(f"--{name}", type=int)
        parser.add_argument("--fp8-format", choices=("e4m3", "hybrid"))
        parser.add_argument("--data-parallel-sharding-strategy", choices=("no_shard", "optim", "optim_grads", "optim_grads_params"))
        parser.add_argument("--recompute-granularity", choices=("full", "selective"))
        parser.add_argument("--recompute-method", choices=("uniform", "block"))
        for name in ("sequence-parallel", "tp-comm-overlap", "bf16", "accumulate-allreduce-grads-in-fp32", "overlap-grad-reduce", "overlap-param-gather",
                     "use-distributed-optimizer", "use-megatron-fsdp"):
            parser.add_argument(f"--{name}", action="store_true")
        text, _ = self.exported("megatron", *MESH, "--strategy", "zero1", "--tensor-overlap")
        read = parser.parse_args(text.split())
        self.assertEqual((read.tensor_model_parallel_size, read.pipeline_model_parallel_size, read.num_virtual_stages_per_pipeline_rank), (8, 4, 5))
        self.assertEqual((read.micro_batch_size, read.global_batch_size, read.seq_length), (1, 8 * 32, 8192))
        self.assertTrue(read.sequence_parallel and read.tp_comm_overlap and read.bf16 and read.use_distributed_optimizer)
        self.assertEqual((read.recompute_granularity, read.use_megatron_fsdp), ("full", False))
        text, _ = self.exported("megatron", *EXPERTS, "--strategy", "fsdp")
        read = parser.parse_args(text.split())
        self.assertEqual((read.expert_model_parallel_size, read.fp8_format), (8, "hybrid"))
        self.assertEqual(read.data_parallel_sharding_strategy, "optim_grads_params")

    def test_torchtitan_has_degrees_whose_product_is_the_ranks(self):
        for words, ranks in (((*LLAMA, "--strategy", "hsdp", "--group", "8"), 64), ((*MESH, "--strategy", "zero1"), 256),
                             ((*LLAMA, "--strategy", "fsdp", "--context", "2"), 64), ((*EXPERTS, "--strategy", "fsdp"), 64)):
            text, _ = self.exported("torchtitan", *words)
            config = tomllib.loads(text)
            degrees = config["parallelism"]
            product = 1
            for name in ("data_parallel_replicate", "data_parallel_shard", "tensor_parallel", "context_parallel", "pipeline_parallel"):
                product *= degrees[f"{name}_degree"]
            self.assertEqual(product, ranks, words)
            self.assertEqual(config["activation_checkpoint"]["mode"], "full" if "--recompute" in words else "none")
        config = tomllib.loads(self.exported("torchtitan", *MESH, "--strategy", "zero1")[0])
        self.assertEqual(config["parallelism"]["pipeline_parallel_schedule"], "Interleaved1F1B")
        self.assertEqual(config["training"]["local_batch_size"] * 8, config["training"]["global_batch_size"])

    @unittest.skipIf(yaml is None, "no python3-yaml")
    def test_nemo_has_keys_of_its_recipes(self):
        text, _ = self.exported("nemo", *MESH, "--strategy", "zero1")
        config = yaml.safe_load(text)
        self.assertEqual(config["model"]["virtual_pipeline_model_parallel_size"], 5)
        self.assertEqual(config["train"], {"micro_batch_size": 1, "global_batch_size": 256})
        self.assertEqual((config["mixed_precision"], config["ddp"]["use_distributed_optimizer"]), ("bf16_mixed", True))
        config = yaml.safe_load(self.exported("nemo", *EXPERTS, "--strategy", "zero1")[0])
        self.assertEqual((config["model"]["expert_model_parallel_size"], config["mixed_precision"]), (8, "bf16_with_fp8_current_scaling_mixed"))

    def test_recomputation_is_said_where_the_framework_has_it(self):
        """By value of --recompute: torchtitan's mode and option, Megatron-LM's granularity, and the blocks of FSDP2."""
        for value, torchtitan, megatron, blocks in (("none", ("none", None), None, 0), ("selective", ("none", None), "selective", 0),
                                                    ("per-op", ("selective", "op"), None, 0), ("full", ("full", None), "full", 6),
                                                    ("full:2", ("selective", "2"), None, 3)):
            words = (*LLAMA[:-1], value, "--strategy", "fsdp")
            with self.subTest(value):
                text, warnings = self.exported("torchtitan", *words)
                said = tomllib.loads(text)["activation_checkpoint"]
                self.assertEqual((said["mode"], said.get("selective_ac_option")), torchtitan)
                self.assertEqual("keeps no scores" in warnings, value == "selective")
                text, warnings = self.exported("megatron", *words)
                found = re.search(r"^--recompute-granularity (\w+)$", text, re.M)
                self.assertEqual(found and found[1], megatron)
                self.assertEqual("recompute" in warnings, value in ("per-op", "full:2"))
                text, _ = self.exported("fsdp2", *words)
                self.assertEqual(sum(call[0].endswith("checkpoint_wrapper") for call in self.applied(text, 6)), blocks)

    def test_what_cannot_be_said_is_a_warning(self):
        for form, words, said in (("fsdp2", MESH, "tensor 8: fully_shard is told by the model's own code"), ("deepspeed", MESH, "pipeline 4: DeepSpeed"),
                                  ("torchtitan", LLAMA, "zero1: torchtitan shards by FSDP2"), ("megatron", LLAMA, "the network's own sizes"),
                                  ("nemo", LLAMA, "these keys override")):
            _, warnings = self.exported(form, *words, "--strategy", "zero1", "--ignore-memory")
            self.assertIn(said, warnings)

    def test_what_is_no_plan_of_these_is_refused(self):
        plan = self.plan(*LLAMA, "--strategy", "fsdp")
        for form in ("ddp", "horovod", "nccl-tuner", "msccl"):
            self.refused(run("export", str(plan), "--format", form, *(() if form == "msccl" else ("--cluster", "h100-ndr"))), "says nothing of shards")
        for form in FORMATS:
            self.refused(run("export", str(plan), "--format", form, "--cluster", "h100-ndr"), "--cluster")
        served = self.plan("--model", "resnet50", "--cluster", "jizhi-p40", "--ranks", "16", "--strategy", "k-fac")
        for form in FORMATS:
            self.refused(run("export", str(served), "--format", form), "is no data parallelism of these frameworks")
        document = json.loads(plan.read_text())
        del document["made_for"]
        plan.write_text(json.dumps(document))
        self.refused(run("export", str(plan), "--format", "fsdp2"), "the plan does not say its job")


if __name__ == "__main__":
    unittest.main()
