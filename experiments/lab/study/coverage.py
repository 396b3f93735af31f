"""How the share of covered cells depends on the intervals of the profiles' figures.

The profiles that are kept were made when the interval of a link's bandwidth, of the message gap and header
and of an uplink was a spread (5 % to 95 % of single samples), and that of a kernel's rate its quartiles. The
samples were not kept, so the intervals cannot be made anew as figures.median_interval has them. What can be
told without a new measurement are the two ends, and what is likely between them: the intervals as they are
kept, which are wider; as wide as a median's would be if the samples were normal; and none at all, which is
narrower. The intervals of curves and latencies are a bootstrap's already, and stay.
"""
import json
import random

from figures import median_interval

DRAWS = 4000


def kept_quantiles(samples, low, high):
    """The order statistics that profiles took: the nearest to a share."""
    ordered = sorted(samples)
    return ordered[round(low * (len(ordered) - 1))], ordered[round(high * (len(ordered) - 1))]


def narrowing(count, low, high):
    """The expected width of a median's interval over that of the kept one, for so many normal samples."""
    draws = random.Random(1)
    kept, median = 0, 0
    for _ in range(DRAWS):
        samples = [draws.gauss(0, 1) for _ in range(count)]
        ends, interval = kept_quantiles(samples, low, high), median_interval(samples)
        kept += ends[1] - ends[0]
        median += interval[1] - interval[0]
    return median / kept


# Samples of each figure, as cli/job/cluster_calibration.cc takes them.
STREAM = narrowing(7, 0.05, 0.95)
GAP = narrowing(20, 0.05, 0.95)
RATE = narrowing(15, 0.25, 0.75)
WIDTHS = {"as kept (spreads)": (1, 1, 1), "as of medians, if normal": (STREAM, GAP, RATE), "none": (0, 0, 0)}


def with_widths(profile, stream, gap, rate):
    """The profile with the intervals of its figures made narrower by these factors."""
    profile = json.loads(json.dumps(profile))
    links, transport = profile["links"], profile["transport"]
    figures = [(links["nic"].get("bandwidth_bytes_per_s"), stream), (transport.get("message_gap_s"), gap),
               (transport.get("message_header_bytes"), gap), (links.get("uplink", {}).get("oversubscription"), stream)]
    figures += [(entry["bytes_per_s"], rate) for entry in profile.get("rates", [])]
    for figure, factor in figures:
        if figure:
            for end in ("low", "high"):
                figure[end] = figure["value"] + factor * (figure[end] - figure["value"])
    return profile


def coverage(predict, profiles, covered):
    """Prints a line for each width. `predict` takes profiles by place and returns the predicted cells."""
    print(f"narrower, if normal: streams {STREAM:.2f}, gap and header {GAP:.2f}, rates {RATE:.2f}\n\n"
          "| intervals of links, gap, header and rates | covered |\n|---|---:|")
    for name, factors in WIDTHS.items():
        cells = predict({place: with_widths(profile, *factors) for place, profile in profiles.items()})
        print(f"| {name} | {covered(cells)} |")
