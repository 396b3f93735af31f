"""Plans as documents, for the tests of this folder."""

import json


def document(buckets, ranks=2, wire="fp32", **changes):
    """The text of a plan: each bucket is a list of (name, elements)."""
    plan = {"schema": "paceline.plan/1", "network": "n", "strategy": "fused-ring", "ranks": ranks, "wire_type": wire, "overlap": "wait-free",
            "streams": 1, "all_reduces": [{"algorithm": "ring"}],
            "buckets": [{"all_reduce": 0, "gradients": [{"name": name, "elements": elements} for name, elements in bucket]} for bucket in buckets]}
    plan.update(changes)
    return json.dumps(plan)


def cut(gradients, counts):
    """Buckets of so many gradients each."""
    buckets, at = [], 0
    for count in counts:
        buckets.append(gradients[at:at + count])
        at += count
    return buckets
