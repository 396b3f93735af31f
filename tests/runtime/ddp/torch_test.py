#!/usr/bin/env python3
"""paceline_ddp in PyTorch's DistributedDataParallel, over Gloo between 2 to 4 processes of this host.

Exit code 77 where no Python of this machine has PyTorch (python3-torch).
"""

import multiprocessing
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import traceback
import unittest

if os.environ.get("PACELINE_TORCH") != "1":
    for python in (sys.executable, "/usr/bin/python3"):
        look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
        if subprocess.run([python, "-c", look], capture_output=True, check=False).returncode == 0:
            os.environ["PACELINE_TORCH"] = "1"
            os.execv(python, [python, *sys.argv])
    print("skipped: no Python here has PyTorch (python3-torch)")
    sys.exit(77)

sys.path.insert(0, os.environ["PACELINE_DDP"])
import torch  # noqa: E402
import torch.distributed as distributed  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import paceline_ddp  # noqa: E402
from plans import cut, document  # noqa: E402

HANG_S = 120


def make_model():
    torch.manual_seed(3)
    nn = torch.nn
    return nn.Sequential(nn.Linear(20, 50), nn.ReLU(), nn.Linear(50, 400), nn.ReLU(), nn.Linear(400, 30), nn.ReLU(), nn.Linear(30, 7))


def gradients_of(model):
    """Names and elements in the order in which autograd has them: the bias of a layer before its weight."""
    return [(name, parameter.numel()) for name, parameter in reversed(list(model.named_parameters()))]


def plan_of(counts, ranks, **changes):
    return paceline_ddp.parse_plan(document(cut(gradients_of(make_model()), counts), ranks=ranks, **changes), "p.json")


def trained(ddp, steps=4):
    """Parameters after so many steps with data that differ by rank."""
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    draw = torch.Generator().manual_seed(100 + distributed.get_rank())
    for _ in range(steps):
        images = torch.randn(6, 20, generator=draw)
        optimizer.zero_grad()
        ddp(images).square().mean().backward()
        optimizer.step()
    return torch.cat([parameter.detach().reshape(-1) for parameter in ddp.module.parameters()])


def _rank(function, rank, ranks, file, results):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    try:
        distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=ranks)
        results.put((rank, function(ranks), None))
        distributed.barrier()
    except Exception:  # pylint: disable=broad-except
        results.put((rank, None, traceback.format_exc()))
    results.close()
    results.join_thread()
    os._exit(0)  # Gloo's threads do not outlive a fork's interpreter well


def on_ranks(ranks, function):
    """What the function returns on each of so many processes; it takes the number of them."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [context.Process(target=_rank, args=(function, rank, ranks, pathlib.Path(folder) / "store", results)) for rank in range(ranks)]
        for process in processes:
            process.start()
        try:
            outcomes = sorted((results.get(timeout=HANG_S) for _ in processes), key=lambda outcome: outcome[0])
        except queue.Empty:
            outcomes = [(0, None, f"a rank said nothing for {HANG_S} s")]
        for process in processes:
            process.join(10 if all(problem is None for _, _, problem in outcomes) else 0)
            process.kill()
            process.join()
    for _, _, problem in outcomes:
        if problem:
            raise AssertionError(problem)
    return [outcome for _, outcome, _ in outcomes]


# What runs on each rank stands here, for fork to find it.

def train_by_plan_and_by_ddp(ranks):
    outcomes = {}
    outcomes["ddp"] = trained(DistributedDataParallel(make_model())).tolist()
    for counts in ((8,), (1,) * 8, (3, 4, 1), (2, 1, 1, 4)):  # caps say all but the last
        for overlap in ("wait-free", "none"):
            for view, one_by_one in ((False, False), (True, True)) if overlap == "none" else ((True, False), (False, True)):
                ddp = paceline_ddp.wrap(make_model(), plan_of(counts, ranks, overlap=overlap), record=True, one_by_one=one_by_one, gradient_as_bucket_view=view)
                outcomes[str((counts, overlap, view, one_by_one))] = trained(ddp).tolist()
                hook = ddp.paceline_hook
                # The first of four iterations has DDP's one bucket; in the others they are as they are planned, but
                # for the last of (2, 1, 1, 4), of which caps that keep the others apart make four.
                whole = sum(count == 1 for count in counts) if one_by_one else 3 if counts == (2, 1, 1, 4) else len(counts)
                expected = 3 * whole
                expected += 1 if counts == (8,) else 0
                if counts == (1,) * 8:
                    expected = 3 * 8
                assert hook.sent_as_they_are == expected, (counts, one_by_one, hook.sent_as_they_are)
                sent = sorted((travel.ready, travel.bucket) for travel in hook.travels)
                assert [bucket for _, bucket in sent] == list(range(len(counts))), sent
                assert all(travel.done >= travel.ready for travel in hook.travels)
                assert [bucket.elements for bucket in hook.buckets] == [sum(g.elements for g in b) for b in hook.plan.buckets]
                assert paceline_ddp.differences(ddp, hook.plan) == []
    return outcomes


def train_on_narrow_wires(ranks):
    exact = trained(DistributedDataParallel(make_model()))
    ddp = paceline_ddp.wrap(make_model(), plan_of((3, 4, 1), ranks, wire="fp16"))
    narrow = trained(ddp)
    assert ddp.paceline_hook.sent_as_they_are == 0
    return (exact - narrow).abs().max().item(), exact.abs().max().item()


def count_buckets_on_the_wire(ranks):
    """What travels: sizes of the all-reduces of one step, as torch.distributed is asked for them."""
    sizes = []
    original = distributed.all_reduce

    def counted(tensor, *arguments, **named):
        sizes.append(tensor.numel())
        return original(tensor, *arguments, **named)
    plan = plan_of((3, 4, 1), ranks)
    ddp = paceline_ddp.wrap(make_model(), plan)
    trained(ddp, 2)
    distributed.all_reduce = counted
    trained(ddp, 1)
    distributed.all_reduce = original
    return sizes


def compare_ddps_buckets(ranks):
    """DDP's own buckets as it says that it made them, for random plans and the caps nearest to them."""
    import random
    draw = random.Random(5)
    lines, exact = [], 0
    gradients = gradients_of(make_model())
    for _ in range(12):
        if draw.random() < 0.5:
            counts = paceline_ddp.assigned([4 * elements for _, elements in gradients], [draw.randint(1, 60000), draw.randint(1, 60000)])
        else:
            ends = sorted({8, *(draw.randint(1, 8) for _ in range(3))})
            counts = [end - begin for begin, end in zip([0, *ends], ends)]
        plan = plan_of(counts, ranks)
        ddp = paceline_ddp.wrap_with_caps(make_model(), plan)
        assert paceline_ddp.differences(ddp, plan)[0].startswith("DDP has not made its buckets anew")
        trained(ddp, 3)
        caps = ddp.paceline_caps
        made = paceline_ddp.buckets_of(ddp)
        expected = paceline_ddp.assigned([4 * elements for _, elements in gradients], [caps.first, caps.others])
        assert [len(bucket) for bucket in made] == expected, (made, expected)
        different = paceline_ddp.differences(ddp, plan)
        assert bool(different) == (not caps.is_exact), (different, caps)
        exact += caps.is_exact
        lines += different
    return exact, lines


class TwoHeads(torch.nn.Module):
    """The layers that are registered first are used last, so that gradients are ready in another order than
    they are registered in, backward."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.last, self.first = torch.nn.Linear(30, 7), torch.nn.Linear(20, 30)

    def forward(self, x):
        return self.last(self.first(x))


def meet_another_order(ranks):
    # Backward order of registration: first.bias, first.weight, last.bias, last.weight.
    plan = paceline_ddp.parse_plan(document([[("first.bias", 30), ("first.weight", 600), ("last.bias", 7)], [("last.weight", 210)]], ranks=ranks), "p.json")
    by_ddp = trained(DistributedDataParallel(TwoHeads()))
    told = []
    for one_by_one in (False, True):
        ddp = paceline_ddp.wrap(TwoHeads(), plan, record=True, one_by_one=one_by_one)
        torch.testing.assert_close(trained(ddp), by_ddp, rtol=0, atol=0)
        told.append(paceline_ddp.differences(ddp, plan))
        assert sorted(travel.bucket for travel in ddp.paceline_hook.travels) == [0, 1]
    caps = paceline_ddp.wrap_with_caps(TwoHeads(), plan)
    trained(caps, 3)
    return told, paceline_ddp.differences(caps, plan)


class HandedOver:
    """A bucket of DDP, made by hand: gradients of these parameters side by side in one buffer."""

    def __init__(self, parameters, value):
        self._parameters = parameters
        self._buffer = torch.arange(sum(parameter.numel() for parameter in parameters), dtype=torch.float32) + value
        self._gradients, at = [], 0
        for parameter in parameters:
            self._gradients.append(self._buffer[at:at + parameter.numel()].view_as(parameter))
            at += parameter.numel()

    def buffer(self):
        return self._buffer

    def parameters(self):
        return self._parameters

    def gradients(self):
        return self._gradients


def meet_mixed_buckets(ranks):
    """Buckets of DDP as large as the plan's, with gradients of two of them each."""
    plan = paceline_ddp.parse_plan(document([[("a", 2), ("b", 3)], [("c", 2), ("d", 3)]], ranks=ranks), "p.json")
    a, b, c, d = (torch.nn.Parameter(torch.zeros(elements)) for elements in (2, 3, 2, 3))
    hook = paceline_ddp.PlanHook(plan, [a, b, c, d])
    rank = distributed.get_rank()
    mixed = [HandedOver([a, d], 10.0 * rank), HandedOver([c, b], 100.0 * rank)]
    futures = [hook(None, bucket) for bucket in mixed]
    assert hook.sent_as_they_are == 0
    mean = sum(range(ranks)) / ranks
    for future, value in zip(futures, (10 * mean, 100 * mean)):
        torch.testing.assert_close(future.wait(), torch.arange(5, dtype=torch.float32) + value)
    whole = HandedOver([c, d], rank)
    torch.testing.assert_close(hook(None, HandedOver([a, b], rank)).wait(), torch.arange(5, dtype=torch.float32) + mean)
    assert hook(None, whole).wait() is not None and hook.sent_as_they_are == 2
    return True


def refuse(ranks):
    problems = []
    cases = [(plan_of((8,), ranks + 1), {}), (plan_of((8,), ranks), {"bucket_cap_mb": 25}),
             (paceline_ddp.parse_plan(document([[("w", 3)]], ranks=ranks), "p.json"), {})]
    for plan, arguments in cases:
        for wrap in (paceline_ddp.wrap, paceline_ddp.wrap_with_caps):
            if arguments and wrap is paceline_ddp.wrap_with_caps:
                continue
            try:
                wrap(make_model(), plan, **arguments)
            except paceline_ddp.PlanError as error:
                problems.append(str(error))
    try:
        paceline_ddp.wrap(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2).double()), plan_of((8,), ranks))
    except paceline_ddp.PlanError as error:
        problems.append(str(error))
    return problems


class Ddp(unittest.TestCase):
    def test_training_by_a_plan_gives_ddps_weights(self):
        for ranks in (2, 4):
            outcomes = on_ranks(ranks, train_by_plan_and_by_ddp)
            for rank in range(ranks):
                self.assertEqual(outcomes[rank], outcomes[0])
            for name, weights in outcomes[0].items():
                if ranks == 2:  # one addition, in whichever order
                    self.assertEqual(weights, outcomes[0]["ddp"], name)
                else:           # sums of four, in the order of Gloo's ring, which hangs on the size
                    torch.testing.assert_close(torch.tensor(weights), torch.tensor(outcomes[0]["ddp"]), rtol=1e-4, atol=1e-6)

    def test_halves_on_the_wire_are_near(self):
        for difference, largest in on_ranks(2, train_on_narrow_wires):
            self.assertGreater(difference, 0)
            self.assertLess(difference, 1e-3 * largest)

    def test_what_travels_are_the_plans_buckets(self):
        for sizes in on_ranks(3, count_buckets_on_the_wire):
            self.assertEqual(sizes, [sum(gradient.elements for gradient in bucket) for bucket in plan_of((3, 4, 1), 3).buckets])

    def test_ddps_own_buckets_are_those_that_caps_promise(self):
        for exact, lines in on_ranks(2, compare_ddps_buckets):
            self.assertGreater(exact, 3)
            self.assertGreater(len(lines), 3)
            self.assertTrue(all("\n" not in line for line in lines))

    def test_gradients_come_back_to_where_they_came_from(self):
        self.assertEqual(on_ranks(3, meet_mixed_buckets), [True] * 3)

    def test_another_order_of_gradients_is_said_and_sent_right(self):
        for (by_caps, one_by_one), own in on_ranks(2, meet_another_order):
            self.assertEqual(len(by_caps), 1)
            self.assertIn("DDP hands over gradients of buckets 0, 1 of the plan at once", by_caps[0])
            self.assertEqual(one_by_one, [])
            self.assertTrue(own)

    def test_what_does_not_fit_is_refused_in_one_line(self):
        for problems in on_ranks(2, refuse):
            self.assertEqual(len(problems), 6)
            for problem, expected in zip(problems, ("the plan is for 3 ranks, and the process group has 2",) * 2 + ("bucket_cap_mb: the plan says this already",)
                                         + ("gradient 'w' has 3 elements",) * 2 + ("several types or on several devices",)):
                self.assertIn(expected, problem)


if __name__ == "__main__":
    unittest.main()
