"""What an interval, a spread and a typical iteration are: the definitions of calibration/fit/statistics.h.

An interval is a 90 % confidence interval of a median: it narrows as samples are added. A spread goes from
the least sample to the most: it widens as samples are added. tests/golden/statistics.json holds both
languages to the same figures (tests/experiments/lab/study_test.py, tests/calibration/statistics_test.cc).
"""
import math
import statistics

INTERVAL_LEVEL = 0.9
NORMAL_REACH = 1.6448536269514722  # standard deviations on either side that hold 90 % of a normal distribution
# For 2, 3 and 4 samples, which do not reach 90 %: see statistics.cc.
STRETCH = {2: 6.3138, 3: 2.262, 4: 1.1375}


def quantile(values, share):
    """The value below which `share` of the values lies, by linear interpolation (type 7 of hyndman)."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def median_interval(samples):
    """Low and high end of the 90 % confidence interval of the median (thompson, hettmansperger)."""
    ordered = sorted(samples)
    count = len(ordered)
    if count == 1:
        return ordered[0], ordered[0]
    if count in STRETCH:
        middle = statistics.median(ordered)
        low = middle - STRETCH[count] * (middle - ordered[0])
        high = middle + STRETCH[count] * (ordered[-1] - middle)
        return (max(0.0, low) if ordered[0] >= 0 else low), high
    outside = 1  # the interval goes from this sample, counted from the least, to this one from the most
    level = 1 - 2 * binomial_half(count, 0)
    inner = level - 2 * binomial_half(count, 1)
    while inner >= INTERVAL_LEVEL:
        level = inner
        outside += 1
        inner -= 2 * binomial_half(count, outside)
    excess = (level - INTERVAL_LEVEL) / (level - inner)
    inside = count - outside
    inwards = inside * excess / (outside + (inside - outside) * excess)
    low = ordered[outside - 1] + inwards * (ordered[outside] - ordered[outside - 1])
    high = ordered[inside] + inwards * (ordered[inside - 1] - ordered[inside])
    return low, high


def binomial_half(count, successes):
    return math.comb(count, successes) * 0.5 ** count


def spread(samples):
    """From the least sample to the most, as a share of the median."""
    return (max(samples) - min(samples)) / statistics.median(samples)


def typical_iteration(iterations):
    """The median of the mean times of every two iterations in a row."""
    if len(iterations) < 2:
        return iterations[0]
    return statistics.median((a + b) / 2 for a, b in zip(iterations, iterations[1:]))


def share_interval(successes, count):
    """The 90 % confidence interval of a share (wilson), such as of covered cells among all."""
    z2 = NORMAL_REACH ** 2
    middle = (successes + z2 / 2) / (count + z2)
    reach = NORMAL_REACH / (count + z2) * math.sqrt(successes * (count - successes) / count + z2 / 4)
    return middle - reach, middle + reach
