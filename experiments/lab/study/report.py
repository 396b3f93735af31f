"""Errors of the study's predictions, as tables (Markdown) and as a picture.

An error is predicted / measured - 1. Measured is the typical iteration of six: the median over every two in
a row. A cell is covered if that is inside the predicted interval; the share of covered cells stands with its
own 90 % interval. figures.py defines each statistic. Cells that the lab called disturbed are counted and left
out.
"""
import collections
import statistics

from figures import quantile, share_interval, spread, typical_iteration

WITHIN = 0.03  # a strategy this close to the measured best counts as the best


def measured(entry):
    return typical_iteration(entry["measured"]["iterations_s"])


def error(entry):
    return entry["predicted"]["iteration_s"] / measured(entry) - 1


def is_covered(entry):
    return entry["predicted"]["iteration_low_s"] <= measured(entry) <= entry["predicted"]["iteration_high_s"]


def covered(entries):
    count = sum(map(is_covered, entries))
    low, high = share_interval(count, len(entries))
    return f"{count / len(entries):.0%} ({100 * low:.0f}-{100 * high:.0f})"


def summary(entries):
    errors = [abs(error(entry)) for entry in entries]
    signed = [error(entry) for entry in entries]
    worst = max(signed, key=abs)
    return (f"{len(entries)} | {statistics.median(errors):.1%} | {statistics.mean(errors):.1%} | "
            f"{quantile(errors, 0.95):.1%} | {worst:+.1%} | {statistics.median(signed):+.1%} | "
            f"{covered(entries)}")


def table(title, key, entries):
    groups = collections.defaultdict(list)
    for entry in entries:
        groups[key(entry)].append(entry)
    print(f"\n| {title} | cells | median | mean | p95 | worst | bias | covered |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in sorted(groups):
        print(f"| {name} | {summary(groups[name])} |")


def contests(entries):
    """Cells that differ by the strategy only, where there are several."""
    groups = collections.defaultdict(list)
    for entry in entries:
        groups[entry["hosts"], entry["mbit"], entry["latency_ms"], entry["racks"], entry["model"],
               entry["wire"]].append(entry)
    return [group for group in groups.values() if len(group) > 1]


def print_choice(entries):
    groups = contests(entries)
    if not groups:
        return
    exact, close, regrets = 0, 0, []
    for group in groups:
        best = min(group, key=measured)
        chosen = min(group, key=lambda entry: entry["predicted"]["iteration_s"])
        regret = measured(chosen) / measured(best) - 1
        regrets.append(regret)
        exact += chosen is best
        close += regret <= WITHIN
    print(f"\nThe predicted best strategy is the measured best in {exact} of {len(groups)} contests, "
          f"and within {WITHIN:.0%} of it in {close} ({close / len(groups):.0%}); regret "
          f"{statistics.mean(regrets):.1%} in the mean, {max(regrets):.1%} at worst.")


def plot(entries, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(13, 6))
    by_hosts = collections.defaultdict(list)
    for entry in entries:
        by_hosts[entry["hosts"]].append(entry)
    for hosts, group in sorted(by_hosts.items()):
        times = [measured(entry) for entry in group]
        left.plot(times, [entry["predicted"]["iteration_s"] for entry in group], ".",
                  label=f"{hosts} hosts")
        right.plot(times, [100 * error(entry) for entry in group], ".")
    ends = [min(map(measured, entries)) / 1.2, max(map(measured, entries)) * 1.2]
    left.plot(ends, ends, "k-", linewidth=0.8)
    left.set(xscale="log", yscale="log", xlabel="measured iteration, s", ylabel="predicted iteration, s",
             title="predicted against measured")
    left.legend()
    for level in (-5, 0, 5):
        right.axhline(level, color="k", linewidth=0.8 if level == 0 else 0.4)
    right.set(xscale="log", xlabel="measured iteration, s", ylabel="error, %",
              title="predicted / measured - 1")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def report(results, designed, picture):
    everything = list(results.values())
    entries = [entry for entry in everything if not entry["lab"]["disturbed"]]
    print(f"{designed} cells designed, {len(everything)} measured, {len(everything) - len(entries)} of "
          f"them disturbed and left out; 6 iterations each, spread (max - min) / median: "
          f"{statistics.median(spread(entry['measured']['iterations_s']) for entry in everything):.1%} "
          "in the median" if everything else "nothing is measured yet")
    if not entries:
        return
    table("all", lambda entry: "undisturbed", entries)
    table("strategy", lambda entry: entry["strategy"] + (f" k={entry['group']}" if entry["group"] else ""),
          entries)
    table("hosts", lambda entry: f"{entry['hosts']:2}", entries)
    table("rate", lambda entry: f"{entry['mbit']:3} Mbit/s", entries)
    table("latency", lambda entry: f"{entry['latency_ms']} ms", entries)
    table("racks", lambda entry: f"{entry['racks']}", entries)
    table("wire", lambda entry: entry["wire"], entries)
    table("network", lambda entry: entry["model"], entries)
    print_choice(entries)
    if picture:
        plot(entries, picture)
