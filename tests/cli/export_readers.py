"""Readers of the files that plans are exported to, each by the rules of the program that takes the file.

They share nothing with what writes the files, and raise ValueError at the first line that breaks a rule.
"""

import collections
import csv
import json
import re
import sys
import types
import unittest.mock
import xml.etree.ElementTree

FUNCTIONS = ("broadcast", "reduce", "allgather", "reducescatter", "allreduce")
ALGORITHMS = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
PROTOCOLS = ("ll", "ll128", "simple")

Rule = collections.namedtuple("Rule", "function ranks nodes least most algorithm protocol channels")


def _check(holds, problem):
    if not holds:
        raise ValueError(problem)


def _whole(text, least, most):
    _check(re.fullmatch(r"0|[1-9]\d*", text) and least <= int(text) <= most, f"{text!r} is not a whole number from {least} to {most}")
    return int(text)


def nccl_tuner(text):
    """The plan's title, the rules, and the constants as {(ranks, nodes, name): value}."""
    _check(text.endswith("\n") and len(text) <= 1 << 20, "the file does not end with a line feed")
    lines = text[:-1].split("\n")
    for line in lines:
        _check(len(line) <= 255 and re.fullmatch(r"[ -~]*", line) and "  " not in line and line == line.strip(), f"{line!r}: no line of the format")
    _check(lines[0] == "paceline.nccl-tuner/1", "this is another schema")
    title, rules, constants, end = None, [], {}, None
    for line in lines[1:]:
        _check(end is None, "something follows the end")
        if line.startswith("#") or not line:
            continue
        word, *fields = line.split(" ")
        if word == "plan":
            _check(title is None and not rules and not constants, "the plan is not named first, once")
            title = line[5:]
        elif word == "rule":
            function, ranks, nodes, least, most, algorithm, protocol, channels = fields
            _check(function in FUNCTIONS and algorithm in ALGORITHMS and protocol in PROTOCOLS, f"{line!r}: an unknown word")
            rules.append(Rule(function, _whole(ranks, 1, 1 << 31), _whole(nodes, 1, 1 << 31), _whole(least, 0, 1 << 62), _whole(most, 0, 1 << 62), algorithm, protocol,
                              None if channels == "keep" else _whole(channels, 1, 64)))
            _check(rules[-1].least <= rules[-1].most, f"{line!r}: no size is in it")
        elif word == "constant":
            ranks, nodes, *name, value = fields
            key = (_whole(ranks, 1, 1 << 31), _whole(nodes, 1, 1 << 31), " ".join(name))
            _check(re.fullmatch(rf"base ({'|'.join(ALGORITHMS)}) ({'|'.join(PROTOCOLS)})|step (nvlink|pci|net) ({'|'.join(ALGORITHMS)}) ({'|'.join(PROTOCOLS)})|"
                                r"(ll-most|ring-ll128-most|tree-ll128-most|tree-most|nvls-tree-most) (volta|ampere|hopper|blackwell) [124]|"
                                r"(volta|ampere|hopper|blackwell) [124] (ll-most|ring-ll128-most|tree-ll128-most|tree-most|nvls-tree-most)", key[2]), f"{line!r}: an unknown name")
            _check(key not in constants and float(value) > 0, f"{line!r}: twice, or not above 0")
            constants[key] = float(value)
        elif word == "end":
            end = _whole(fields[0], 0, 1 << 31)
        else:
            raise ValueError(f"{line!r}: an unknown line")
    _check(title is not None and end == len(rules) + len(constants), "the end does not count the lines")
    keys = [(FUNCTIONS.index(rule.function), rule.ranks, rule.nodes) for rule in rules]
    for (key, rule), (other_key, other) in zip(zip(keys, rules), list(zip(keys, rules))[1:]):
        _check(key < other_key or (key == other_key and rule.most < other.least), f"{other}: out of order, or overlaps")
    return title, rules, constants


def nccl_csv(text):
    """The rules, as ext-tuner/example of NCCL 2.28 reads them: ten fields, comments by '#'."""
    rules = []
    for fields in csv.reader(line for line in text.splitlines() if line and not line.startswith("#")):
        _check(len(fields) == 10, f"{fields}: not ten fields")
        function, least, most, algorithm, protocol, channels, nodes, ranks, pipe_ops, buffers = fields
        _check(function in FUNCTIONS and algorithm in ALGORITHMS and protocol in PROTOCOLS, f"{fields}: an unknown word")
        _check((pipe_ops, buffers) == ("-1", "-1"), f"{fields}: not for every call")
        rules.append(Rule(function, int(ranks), int(nodes), _whole(least, 0, 1 << 62), _whole(most, 0, 1 << 62), algorithm, protocol, int(channels)))
    return rules


def nccl_config(text):
    """The communicators, as (stream, buckets, config)."""
    document = json.loads(text)
    _check(set(document) == {"schema", "plan", "ranks", "communicators"} and document["schema"] == "paceline.nccl-config/1", "this is another schema")
    found = []
    for entry in document["communicators"]:
        _check(set(entry) == {"stream", "buckets", "config"}, f"{entry}: other keys")
        _check(set(entry["config"]) <= {"minCTAs", "maxCTAs", "commName", "splitShare"}, f"{entry}: unknown fields of ncclConfig_t")
        found.append((entry["stream"], entry["buckets"], entry["config"]))
    return found


def horovod(text):
    """The variables, by name. A value needs no quotes in a shell, nor in a file of docker's."""
    values = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(r"(HOROVOD_[A-Z0-9_]+)=([A-Za-z0-9._/:-]*)", line)
        _check(match and match[1] not in values, f"{line!r}: no variable, or twice")
        values[match[1]] = match[2]
    return values


class _Ddp:
    """What a script of DDP did: the arguments of its one call, the hook that it registered, and the first bucket's default."""
    def __init__(self):
        self.cap_mb, self.hook, self.first_bytes, self.calls = None, None, 1 << 20, 0


def ddp(text):
    """Runs the lines as Python, with stand-ins for the modules of PyTorch that they import."""
    done = _Ddp()

    class Wrapped:
        def register_comm_hook(self, state, hook):
            _check(state is None and done.hook is None, "one hook, of the whole process group")
            done.hook = hook

    def wrap(model, bucket_cap_mb=None):
        _check(model == "model", "the model comes first")
        done.calls += 1
        done.cap_mb = bucket_cap_mb
        done.first_bytes = modules["torch.distributed"]._DEFAULT_FIRST_BUCKET_BYTES
        return Wrapped()
    names = ["torch", "torch.distributed", "torch.distributed.algorithms", "torch.distributed.algorithms.ddp_comm_hooks", "torch.nn", "torch.nn.parallel"]
    modules = {name: types.ModuleType(name) for name in names}
    for name, module in modules.items():
        module.__path__ = []
        owner, _, last = name.rpartition(".")
        if owner:
            setattr(modules[owner], last, module)
    modules["torch.distributed"]._DEFAULT_FIRST_BUCKET_BYTES = 1 << 20
    modules["torch.nn.parallel"].DistributedDataParallel = wrap
    hooks = types.SimpleNamespace(fp16_compress_hook="fp16", bf16_compress_hook="bf16")
    modules["torch.distributed.algorithms.ddp_comm_hooks"].default_hooks = hooks
    with unittest.mock.patch.dict(sys.modules, modules):
        try:
            exec(compile(text, "ddp.py", "exec"), {"model": "model"})  # pylint: disable=exec-used
        except (SyntaxError, NameError, AttributeError, TypeError, ImportError) as error:
            raise ValueError(f"no script of DDP: {error}") from error
    _check(done.calls == 1, "one call of DistributedDataParallel")
    return done


def ddp_buckets(elements, cap_bytes, first_bytes):
    """The gradients of each bucket that DDP makes of these in backward order: it closes one that holds its cap of FP32 bytes."""
    buckets, held = [0], 0
    for i, count in enumerate(elements):
        buckets[-1] += 1
        held += 4 * count
        if held >= (first_bytes if len(buckets) == 1 else cap_bytes) and i + 1 < len(elements):
            buckets.append(0)
            held = 0
    return buckets


def msccl(text):
    """The attributes of <algo>, once all ranks have run the file and each chunk holds each rank's contribution once.

    Threadblocks run side by side, each its steps in order. A send takes what its chunks hold then, and its
    peer's receive takes the oldest message of that threadblock's pair and channel.
    """
    algo = xml.etree.ElementTree.fromstring(text)
    _check(algo.tag == "algo" and algo.get("coll") == "allreduce" and algo.get("inplace") == "1", "no all-reduce in place")
    ranks, chunks = int(algo.get("ngpus")), int(algo.get("nchunksperloop"))
    gpus = {int(gpu.get("id")): gpu for gpu in algo}
    _check(sorted(gpus) == list(range(ranks)), "ranks are missing")
    held = {rank: [collections.Counter([rank]) for _ in range(chunks)] for rank in gpus}
    wires = collections.defaultdict(collections.deque)
    blocks = []
    for rank, gpu in gpus.items():
        for block in gpu:
            steps = sorted(block, key=lambda step: int(step.get("s")))
            _check([int(step.get("s")) for step in steps] == list(range(len(steps))), "steps are missing")
            blocks.append((rank, block, steps))
    done = {(rank, int(block.get("id"))): 0 for rank, block, _ in blocks}
    moved = True
    while moved:
        moved = False
        for rank, block, steps in blocks:
            me = rank, int(block.get("id"))
            while done[me] < len(steps):
                step = steps[done[me]]
                waits = int(step.get("depid"))
                if waits >= 0 and done[rank, waits] <= int(step.get("deps")):
                    break
                kind, count = step.get("type"), int(step.get("cnt"))
                from_ = range(int(step.get("srcoff")), int(step.get("srcoff")) + count)
                to = range(int(step.get("dstoff")), int(step.get("dstoff")) + count)
                channel = block.get("chan")
                if kind == "s":
                    wires[rank, int(block.get("send")), channel].append([held[rank][c].copy() for c in from_])
                elif kind in ("r", "rrc"):
                    wire = wires[int(block.get("recv")), rank, channel]
                    if not wire:
                        break
                    message = wire.popleft()
                    _check(len(message) == count, f"rank {rank} receives {count} chunks, and {len(message)} come")
                    for chunk, what in zip(to, message):
                        held[rank][chunk] = what + held[rank][chunk] if kind == "rrc" else what
                else:
                    _check(kind == "nop", f"a step of type {kind!r}")
                done[me] += 1
                moved = True
    _check(all(done[rank, int(block.get("id"))] == len(steps) for rank, block, steps in blocks), "threadblocks wait for one another forever")
    _check(not any(wires.values()), "messages are left over")
    everyone = collections.Counter(range(ranks))
    _check(all(chunk == everyone for of_rank in held.values() for chunk in of_rank), "a chunk is not the sum of all ranks' contributions")
    return algo.attrib
