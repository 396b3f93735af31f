"""What ranks of sharded training keep: the memory of paceline train, beside what docs/training.md says of it."""

import json
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

from paceline import PACELINE

RANKS = 2
BLOCKS, FEATURES, INNER, TOKENS = 8, 512, 1408, 256
BLOCK = 4 * FEATURES**2 + 3 * FEATURES * INNER  # parameters of a block, without norms
PARAMETERS = BLOCKS * BLOCK + 2 * TOKENS * FEATURES
FP32 = 4


def resident(process):
    found = re.search(r"RssAnon:\s+(\d+) kB", pathlib.Path(f"/proc/{process.pid}/status").read_text())
    return int(found.group(1)) * 1024 if found else 0


class Memory(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "config.json").write_text(json.dumps({
            "model_type": "llama", "hidden_size": FEATURES, "intermediate_size": INNER, "num_hidden_layers": BLOCKS,
            "num_attention_heads": 8, "vocab_size": TOKENS, "max_position_embeddings": 32}))
        (self.folder / "text").write_bytes(bytes(range(256)) * 32)

    def bytes_of(self, strategy, tensor=1):
        """The median while iterations run."""
        metrics = self.folder / f"{strategy}-{tensor}.jsonl"
        words = ["train", "--model", "config.json", "--data", "text:text", "--ranks", str(RANKS), "--batch", "1",
                 "--threads", "1", "--strategy", strategy, "--tensor", str(tensor), "--stop-after", "8", "--metrics", metrics.name]
        with subprocess.Popen([PACELINE, *words], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            samples = []
            while process.poll() is None:
                done = metrics.read_text().count('"event":"iteration"') if metrics.exists() else 0
                if 2 < done < 8:
                    samples.append(resident(process))
                time.sleep(0.01)
            error = process.stderr.read()
        self.assertEqual(process.returncode, 0, error)
        self.assertGreater(len(samples), 3)
        return sorted(samples)[len(samples) // 2]

    def test_ranks_keep_what_is_theirs(self):
        replicated, zero1, zero2, fsdp = (self.bytes_of(s) for s in ("fused-ring", "zero1", "zero2", "fsdp"))
        array = FP32 * PARAMETERS * RANKS  # of all ranks together
        unit = FP32 * BLOCK * RANKS
        others = 1 - 1 / RANKS
        # All keep weights, copies of them in the layouts that layers read, gradients and two moments of AdamW.
        self.assertLess(abs((replicated - zero1) / (2 * others * array) - 1), 0.05)
        # Beside own parts, zero2 has the gradients of buckets that are computed or summed: two of 4 MiB, and the largest
        # tensor. Fsdp has those of three units, three that are gathered, and the copies of one.
        self.assertLess(zero2, zero1 - 0.5 * others * array)
        self.assertGreater(replicated - fsdp, (4 * others + 1) * array - 8 * unit)

    def test_ranks_that_share_tensors_keep_their_parts(self):
        """Of weights, their copies, gradients and both moments, which are nearly all that there is, each has its share."""
        whole, parts = self.bytes_of("fused-ring"), self.bytes_of("fused-ring", tensor=RANKS)
        self.assertLess(abs(parts / (whole / RANKS) - 1), 0.05)


if __name__ == "__main__":
    unittest.main()
