"""Plans of Paceline in PyTorch's DistributedDataParallel (docs/exports.md).

A plan document (`paceline predict --plan-out plan.json`, schema paceline.plan/1) says which gradients
make a bucket. DDP takes two caps, and makes its buckets again after the first iteration, in the order
in which gradients were ready. So there are two ways:

    plan = paceline_ddp.read_plan("plan.json")
    ddp = paceline_ddp.wrap(model, plan)                     # the plan's buckets, exactly, by a hook
    ddp = paceline_ddp.wrap_with_caps(model, plan)           # DDP's own buckets, as near as caps come
    print("\\n".join(paceline_ddp.differences(ddp, plan)))    # after three iterations: what DDP made

Where caps make DDP's own buckets those of the plan, the hook sends them as they are. Otherwise caps make
buckets that are parts of the plan's, the hook gathers those of a bucket of the plan, and sends the bucket
as soon as it is whole. That costs a copy in and a copy out, and a call of Python for each part.
Everything that a plan says besides (schedules, streams) is the process group's.

Whatever is wrong with a plan is a PlanError of one line. Needs PyTorch 1.13 or later; reading plans
and working out caps need none. Tried with Gloo on CPUs only.
"""

import bisect
import dataclasses
import inspect
import json
import threading
import time

SCHEMA = "paceline.plan/1"
WIRE_TYPES = ("fp32", "fp16", "bf16")
MEBIBYTE = 1024 * 1024
LARGEST_FILE = 16 * MEBIBYTE


class PlanError(ValueError):
    """What is wrong with a plan, or between a plan and a model, in one line."""


def _fail(where, problem):
    text = "".join(c if c.isprintable() else "?" for c in f"{where}: {problem}")
    raise PlanError(text)


@dataclasses.dataclass(frozen=True)
class Gradient:
    name: str
    elements: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """What DDP can use of a plan document."""
    file: str
    network: str
    ranks: int
    wire: str       # of WIRE_TYPES
    overlap: str    # "wait-free", or "none": buckets travel after the whole backward pass
    buckets: tuple  # of tuples of Gradient, in backward order
    notes: tuple    # what DDP cannot be told, a line each

    @property
    def gradients(self):
        return [gradient for bucket in self.buckets for gradient in bucket]


def read_plan(path):
    """Reads a plan document. Raises PlanError for what is none, or cannot run in DDP."""
    file = str(path)
    try:
        with open(path, "rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        _fail(file, f"cannot be read: {error.strerror}")
    if len(data) > LARGEST_FILE:
        _fail(file, "is larger than 16 MiB")
    try:
        return parse_plan(data.decode("utf-8"), file)
    except UnicodeDecodeError:
        _fail(file, "is not UTF-8")


def parse_plan(text, file="the plan"):
    """The plan in the text of a document; `file` names it in errors."""
    def unique(pairs):
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            _fail(file, "a key is there twice")
        return dict(pairs)

    def not_a_number(word):
        _fail(file, f"{word} is no number of JSON")
    try:
        root = json.loads(text, object_pairs_hook=unique, parse_constant=not_a_number)
    except (json.JSONDecodeError, RecursionError) as error:
        _fail(file, f"this is not JSON: {getattr(error, 'msg', 'nested too deeply')}")

    def get(owner, where, key, kind, least=None):
        if not isinstance(owner, dict) or key not in owner:
            _fail(file, f"{where}{key!r} is missing")
        value = owner[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            _fail(file, f"{where}{key}: not {'a whole number' if kind is int else 'text' if kind is str else 'a list'}")
        if least is not None and value < least:
            _fail(file, f"{where}{key}: {value} is less than {least}")
        return value

    if not isinstance(root, dict) or root.get("schema") != SCHEMA:
        _fail(file, f"not a plan: its schema is not {SCHEMA}")
    wire = get(root, "", "wire_type", str)
    if wire not in WIRE_TYPES:
        _fail(file, f"wire_type: {wire!r} is none of {', '.join(WIRE_TYPES)}")
    overlap = get(root, "", "overlap", str)
    if overlap not in ("wait-free", "none"):
        _fail(file, f"overlap: DDP has no {overlap!r}; make a plan with wait-free or none")
    all_reduces = get(root, "", "all_reduces", list)
    buckets, seen, used = [], set(), set()
    for i, entry in enumerate(get(root, "", "buckets", list)):
        where = f"buckets[{i}]."
        number = get(entry, where, "all_reduce", int, 0)
        if number >= len(all_reduces):
            _fail(file, f"{where}all_reduce: there is no all-reduce {number}")
        used.add(number)
        if "part" in entry:
            _fail(file, f"{where}part: DDP cannot send a part of a gradient")
        bucket = []
        for j, gradient in enumerate(get(entry, where, "gradients", list)):
            place = f"{where}gradients[{j}]."
            name = get(gradient, place, "name", str)
            if name in seen:
                _fail(file, f"{place}name: gradient {name!r} is in the buckets twice")
            seen.add(name)
            bucket.append(Gradient(name, get(gradient, place, "elements", int, 1)))
        if not bucket:
            _fail(file, f"{where}gradients: this bucket has no gradient")
        buckets.append(tuple(bucket))
    if not buckets:
        _fail(file, "buckets: there is none")
    notes = []
    for number in sorted(used):
        what = all_reduces[number]
        name = what.get("algorithm") or what.get("library") if isinstance(what, dict) else None
        if name is None:
            _fail(file, f"all_reduces[{number}]: DDP has no servers and no owners of layers")
        if name not in ("nccl", "ring"):
            notes.append(f"{name}: the process group takes its own all-reduce")
    streams = get(root, "", "streams", int, 1)
    if streams > 1:
        notes.append(f"{streams} streams: how many buckets travel at once is the process group's")
    if "dispatch" in root:
        notes.append("the plan is of another system, which waits before it sends: DDP does not")
    return Plan(file, get(root, "", "network", str), get(root, "", "ranks", int, 1), wire, overlap, tuple(buckets), tuple(notes))


def match(plan, parameters):
    """The name of the parameter of each gradient of the plan, in the plan's order.

    `parameters` are the model's (name, number of elements) in the order in which it registered those
    that need a gradient. Where they are named as the plan's gradients, names decide. Otherwise a
    gradient of the plan is the last parameter of its size that no gradient before it is: gradients of
    one size keep their order, which is backward. Raises PlanError where the two do not fit.
    """
    left = dict(parameters)
    if len(left) < len(parameters):
        raise PlanError("two parameters of the model have one name")
    if all(gradient.name in left for gradient in plan.gradients):
        chosen = [gradient.name for gradient in plan.gradients]
    else:
        of_size = {}
        for name, elements in parameters:
            of_size.setdefault(elements, []).append(name)
        chosen = []
        for gradient in plan.gradients:
            names = of_size.get(gradient.elements)
            if not names:
                _fail(plan.file, f"gradient {gradient.name!r} has {gradient.elements} elements, and no parameter of the model that is left has so many")
            chosen.append(names.pop())
    for gradient, name in zip(plan.gradients, chosen):
        if left.pop(name) != gradient.elements:
            _fail(plan.file, f"gradient {gradient.name!r} has {gradient.elements} elements, and {dict(parameters)[name]} in the model")
    if left:
        _fail(plan.file, f"parameter {next(iter(left))!r} of the model is in no bucket")
    return chosen


def assigned(sizes, limits):
    """The buckets that DDP makes of gradients of these bytes, in their order: a bucket is closed as soon
    as it holds its limit or more; the last limit counts for all buckets that have none of their own.
    (compute_bucket_assignment_by_size of torch/csrc/distributed/c10d/reducer.cpp, for one type.)
    Returns how many gradients each holds.
    """
    counts, held, in_bucket = [], 0, 0
    for size in sizes:
        held += size
        in_bucket += 1
        if held >= limits[min(len(counts), len(limits) - 1)]:
            counts.append(in_bucket)
            held = in_bucket = 0
    if in_bucket:
        counts.append(in_bucket)
    return counts


def _ends(counts):
    ends, total = set(), 0
    for count in counts:
        total += count
        ends.add(total)
    return ends


@dataclasses.dataclass(frozen=True)
class Caps:
    """The two caps of DDP, in bytes, and how near its buckets come to the plan's."""
    first: int
    others: int
    wrong: int     # buckets that would end where none of the plan's does, and the other way round
    buckets: int   # that DDP would make

    @property
    def is_exact(self):
        return self.wrong == 0


def _cuts(plan, element_bytes, one_cap):
    """The caps that are worth trying, by rising size, with the ends of the buckets that DDP makes by them if
    gradients are ready in the plan's order: (first, others, ends)."""
    sizes = [element_bytes * gradient.elements for gradient in plan.gradients]
    wanted = _ends(len(bucket) for bucket in plan.buckets)
    sums = [0]
    for size in sizes:
        sums.append(sums[-1] + size)
    first = sums[min(wanted)]
    # A cap matters where some bucket just reaches it at an end of the plan's.
    caps = sorted({sums[end] - sums[i] for end in wanted for i in range(end)} | {sums[-1]})
    most_tried = 4096
    for cap in [1] + caps[::-(-len(caps) // most_tried)] + [caps[-1]]:
        ends, at, limit = set(), 0, cap if one_cap else first
        while at < len(sizes):
            at = min(bisect.bisect_left(sums, sums[at] + limit, lo=at + 1), len(sizes))
            ends.add(at)
            limit = cap
        yield cap if one_cap else first, cap, ends


def nearest_caps(plan, element_bytes=4, one_cap=False):
    """The caps whose buckets end most often where the plan's do, if gradients are ready in the plan's
    order: the first as the plan's first bucket, and then the best for the others; with `one_cap` one for
    both, as versions of DDP from 2.3 on have it. Of several the largest is taken, which needs the order
    least. A few milliseconds to a second.
    """
    wanted = _ends(len(bucket) for bucket in plan.buckets)
    tried = (Caps(first, others, len(ends ^ wanted), len(ends)) for first, others, ends in _cuts(plan, element_bytes, one_cap))
    return min(tried, key=lambda caps: (caps.wrong, -caps.others))


def refining_caps(plan, element_bytes=4, one_cap=False):
    """The caps that make the fewest buckets of which each is within one of the plan's."""
    wanted = _ends(len(bucket) for bucket in plan.buckets)
    tried = (Caps(first, others, len(ends ^ wanted), len(ends)) for first, others, ends in _cuts(plan, element_bytes, one_cap) if wanted <= ends)
    return min(tried, key=lambda caps: caps.buckets)


def _trainable(module):
    return [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]


def _check_group(plan, group):
    import torch.distributed as distributed
    ranks = distributed.get_world_size(group)
    if ranks != plan.ranks:
        _fail(plan.file, f"the plan is for {plan.ranks} ranks, and the process group has {ranks}")


def _matched(plan, module):
    trainable = _trainable(module)
    types = {parameter.dtype for _, parameter in trainable}
    devices = {parameter.device for _, parameter in trainable}
    if len(types) != 1 or len(devices) != 1:
        raise PlanError("the model's parameters are of several types or on several devices: DDP would not put them into one bucket")
    names = match(plan, [(name, parameter.numel()) for name, parameter in trainable])
    of_name = dict(trainable)
    return [of_name[name] for name in names]


def _construct(module, arguments, first):
    """DDP with that cap of the first bucket, which older versions have in a variable of a module only."""
    import torch.distributed as distributed
    from torch.nn.parallel import DistributedDataParallel
    before = distributed._DEFAULT_FIRST_BUCKET_BYTES
    distributed._DEFAULT_FIRST_BUCKET_BYTES = first
    try:
        return DistributedDataParallel(module, **arguments)
    finally:
        distributed._DEFAULT_FIRST_BUCKET_BYTES = before


def _has_one_cap(constructor):
    return inspect.signature(constructor).parameters["bucket_cap_mb"].default is None


def caps_as_arguments(plan, constructor, element_bytes=4):
    """The arguments of DDP's constructor that come nearest to the plan, and the caps that they are.

    Versions with bucket_cap_mb_list take the size of each bucket, exactly. (That was tried with a
    stand-in for such a constructor only.)
    """
    parameters = inspect.signature(constructor).parameters
    if "bucket_cap_mb_list" in parameters:
        sizes = [element_bytes * sum(gradient.elements for gradient in bucket) for bucket in plan.buckets]
        return {"bucket_cap_mb_list": [size / MEBIBYTE for size in sizes]}, Caps(sizes[0], sizes[-1], 0, len(sizes))
    caps = nearest_caps(plan, element_bytes, _has_one_cap(constructor))
    return {"bucket_cap_mb": caps.others / MEBIBYTE}, caps


def wrap_with_caps(module, plan, **arguments):
    """DDP whose own buckets come as near to the plan's as its caps allow. Arguments are DDP's."""
    from torch.nn.parallel import DistributedDataParallel
    _check_group(plan, arguments.get("process_group"))
    parameters = _matched(plan, module)
    caps_arguments, caps = caps_as_arguments(plan, DistributedDataParallel, parameters[0].element_size())
    ddp = _construct(module, {**arguments, **caps_arguments}, caps.first)
    ddp.paceline_caps = caps
    return ddp


@dataclasses.dataclass
class Travel:
    """When a bucket was whole, and when its sum was there: seconds of time.perf_counter()."""
    bucket: int
    ready: float
    done: float = 0.0


class _Bucket:
    def __init__(self, number, parameters):
        self.number, self.parameters = number, parameters
        self.flat = None     # on the wire, where gradients are gathered
        self.whole = None    # DDP's buffer on the wire, where DDP's bucket is this one
        self.places = {}     # where each parameter's gradient begins, by id
        self.arrived = 0
        self.readers = []    # (hand-over, gradient, parameter)
        at = 0
        for parameter in parameters:
            self.places[id(parameter)] = at
            at += parameter.numel()
        self.elements = at


class _HandOver:
    """A bucket of DDP on its way: its future completes with the last of the plan's buckets that it
    has gradients in."""

    def __init__(self, buffer, future):
        self.buffer, self.future, self.open = buffer, future, set()


class PlanHook:
    """Runs the plan's buckets on the gradients that DDP hands over, whatever DDP's own buckets are.

    All ranks send their buckets in the same order, for DDP hands gradients over in the same order on
    all ranks. `travels` has those of the last backward pass, where `record` is set.
    """

    def __init__(self, plan, parameters, group=None, record=False):
        import torch
        self.plan, self.group, self.record = plan, group, record
        self.ranks = plan.ranks
        wire = {"fp32": parameters[0].dtype, "fp16": torch.float16, "bf16": torch.bfloat16}[plan.wire]
        self.wire = wire
        self.buckets, self.bucket_of = [], {}
        begin = 0
        for number, gradients in enumerate(plan.buckets):
            bucket = _Bucket(number, parameters[begin:begin + len(gradients)])
            begin += len(gradients)
            self.buckets.append(bucket)
            for parameter in bucket.parameters:
                self.bucket_of[id(parameter)] = bucket
        self.travels = []
        self.sent_as_they_are = 0  # buckets of DDP that were the plan's
        self._waiting = []   # whole, while the plan sends after the backward pass
        self._whole = 0
        self._lock = threading.Lock()

    def __call__(self, state, bucket):
        import torch
        buffer, parameters = bucket.buffer(), bucket.parameters()
        future = torch.futures.Future(devices=[buffer.device]) if buffer.is_cuda else torch.futures.Future()
        hand_over = _HandOver(buffer, future)
        first = self.bucket_of[id(parameters[0])]
        if buffer.dtype == self.wire and len(parameters) == len(first.parameters) and all(self.bucket_of[id(p)] is first for p in parameters):
            first.whole = buffer
            first.readers = [(hand_over, None, 0)]
            hand_over.open.add(first.number)
            self.sent_as_they_are += 1
            self._send_when_due(first)
            return future
        whole = []
        for parameter, gradient in zip(parameters, bucket.gradients()):
            mine = self.bucket_of[id(parameter)]
            if mine.flat is None:
                mine.flat = torch.empty(mine.elements, dtype=self.wire, device=buffer.device)
            at = mine.places[id(parameter)]
            mine.flat[at:at + parameter.numel()].copy_(gradient.reshape(-1))
            mine.readers.append((hand_over, gradient, at))
            hand_over.open.add(mine.number)
            mine.arrived += 1
            if mine.arrived == len(mine.parameters):
                whole.append(mine)
        for mine in whole:
            self._send_when_due(mine)
        return future

    def _send_when_due(self, bucket):
        if self._whole == 0:
            self.travels = []
        self._whole += 1
        self._waiting.append((bucket, time.perf_counter()))
        if self.plan.overlap == "none" and self._whole < len(self.buckets):
            return
        due, self._waiting = self._waiting, []
        if self._whole == len(self.buckets):
            self._whole = 0
        for ready_bucket, ready in due:
            self._send(ready_bucket, ready)

    def _send(self, bucket, ready):
        import torch.distributed as distributed
        readers, bucket.readers, bucket.arrived = bucket.readers, [], 0
        wire, bucket.whole = (bucket.flat if bucket.whole is None else bucket.whole), None
        travel = Travel(bucket.number, ready)
        if self.record:
            self.travels.append(travel)
        wire.div_(self.ranks)
        work = distributed.all_reduce(wire, group=self.group, async_op=True)

        def take(summed):
            try:
                summed.value()
                travel.done = time.perf_counter()
                for _, gradient, at in readers:
                    if gradient is not None:
                        gradient.copy_(wire[at:at + gradient.numel()].view_as(gradient))
            except Exception as error:  # pylint: disable=broad-except
                self._close(readers, bucket.number, error)
                return
            self._close(readers, bucket.number, None)
        work.get_future().then(take)

    def _close(self, readers, number, error):
        for hand_over in {id(reader[0]): reader[0] for reader in readers}.values():
            with self._lock:
                hand_over.open.discard(number)
                is_last = not hand_over.open or error is not None
            if not is_last or hand_over.future.done():
                continue
            if error is None:
                hand_over.future.set_result(hand_over.buffer)
            else:
                hand_over.future.set_exception(error)


def wrap(module, plan, record=False, one_by_one=False, **arguments):
    """DDP that sends the plan's buckets, exactly. Arguments are DDP's, but for bucket_cap_mb.
    `record` keeps the times of buckets in ddp.paceline_hook.travels. With `one_by_one` gradients are
    gathered also where caps make DDP's buckets the plan's.
    """
    from torch.nn.parallel import DistributedDataParallel
    if "bucket_cap_mb" in arguments:
        raise PlanError("bucket_cap_mb: the plan says this already")
    group = arguments.get("process_group")
    _check_group(plan, group)
    parameters = _matched(plan, module)
    caps_arguments, caps = caps_as_arguments(plan, DistributedDataParallel, parameters[0].element_size())
    if one_by_one:  # each gradient by itself, as soon as it is there
        caps = Caps(1, 1, 0, len(parameters))
        caps_arguments = {"bucket_cap_mb": 1 / MEBIBYTE}
    elif not caps.is_exact:  # as few calls of the hook as its caps allow
        caps = refining_caps(plan, parameters[0].element_size(), _has_one_cap(DistributedDataParallel))
        caps_arguments = {"bucket_cap_mb": caps.others / MEBIBYTE}
    ddp = _construct(module, {**arguments, **caps_arguments}, caps.first)
    ddp.paceline_hook = PlanHook(plan, parameters, group, record)

    def hook(state, bucket):
        return ddp.paceline_hook(state, bucket)
    ddp.register_comm_hook(None, hook)
    return ddp


def buckets_of(ddp):
    """The buckets that DDP has made: lists of numbers of parameters, in the order in which the model
    registered those that need a gradient. DDP makes them anew after the first iteration, and says so
    from the third on; None before.
    """
    data = ddp._get_ddp_logging_data()
    if not data.get("has_rebuilt_buckets"):
        return None
    return [[int(number) for number in bucket.split()] for bucket in data["rebuilt_per_bucket_param_indices"].split(",")]


def differences(ddp, plan):
    """Where DDP's buckets differ from the plan's, a line each; empty where they are the same. Call it
    after three iterations.
    """
    made = buckets_of(ddp)
    if made is None:
        return ["DDP has not made its buckets anew: run three iterations (and leave find_unused_parameters off)"]
    trainable = _trainable(ddp.module)
    names = match(plan, [(name, parameter.numel()) for name, parameter in trainable])
    number = {name: i for i, (name, _) in enumerate(trainable)}
    wanted, begin = [], 0
    for bucket in plan.buckets:
        wanted.append([number[name] for name in names[begin:begin + len(bucket)]])
        begin += len(bucket)
    if hasattr(ddp, "paceline_hook"):
        at = {i: place for place, bucket in enumerate(wanted) for i in bucket}
        mixed = [bucket for bucket in made if len({at[i] for i in bucket}) > 1]
        return [f"DDP hands over gradients of buckets {', '.join(str(n) for n in sorted({at[i] for i in bucket}))} of the plan at once, for "
                "they were ready in another order: these may leave later than planned (one_by_one=True hands over each by itself)"
                for bucket in mixed]
    lines = []
    if len(made) != len(wanted):
        lines.append(f"DDP has {len(made)} buckets, and the plan {len(wanted)}")

    def size(bucket):
        return sum(trainable[i][1].numel() * trainable[i][1].element_size() for i in bucket)
    for i in range(max(len(made), len(wanted))):
        if i >= len(made) or i >= len(wanted):
            side, bucket = ("the plan", wanted[i]) if i >= len(made) else ("DDP", made[i])
            lines.append(f"bucket {i}: only {side} has it, {len(bucket)} gradients of {size(bucket)} B")
        elif set(made[i]) != set(wanted[i]):
            odd = sorted(set(made[i]) ^ set(wanted[i]))
            example = trainable[odd[0]][0]
            where = "DDP" if odd[0] in made[i] else "the plan"
            lines.append(f"bucket {i}: {len(made[i])} gradients of {size(made[i])} B in DDP, {len(wanted[i])} of {size(wanted[i])} B in the plan; {example} is in {where}'s")
    return lines
