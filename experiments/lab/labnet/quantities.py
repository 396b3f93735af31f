"""Rates, times, names and shares: as people write them, and back."""
import argparse
import re

RATE_UNITS = {"": 1, "bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
TIME_UNITS = {"us": 1, "ms": 1e3, "s": 1e6}
NUMBER = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)"


def parse_rate(text):
    """Reads a rate (250mbit, 1gbit, 100000000) as bits a second."""
    match = re.fullmatch(NUMBER + "(|bit|kbit|mbit|gbit)", text.strip().lower())
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is no rate, such as 250mbit or 1gbit")
    rate = float(match[1]) * RATE_UNITS[match[2]]
    if not 1e5 <= rate <= 1e11:
        raise argparse.ArgumentTypeError(f"'{text}' is out of range: 100kbit to 100gbit")
    return rate


def parse_time(text):
    """Reads a time (1ms, 50us, 0) as microseconds."""
    match = re.fullmatch(NUMBER + "(|us|ms|s)", text.strip().lower())
    if not match or (match[2] == "" and float(match[1]) != 0):
        raise argparse.ArgumentTypeError(f"'{text}' is no time, such as 1ms or 50us")
    time = float(match[1]) * TIME_UNITS.get(match[2], 0)
    if time > 1e7:
        raise argparse.ArgumentTypeError(f"'{text}' is out of range: 0 to 10s")
    return time


def parse_name(text):
    """Reads a name of the catalogue, and refuses what would be more than a word of YAML."""
    if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a device, such as v100")
    return text


def parse_share(text):
    """Reads a share (10% or 0.1) as a number from 0 to 1."""
    match = re.fullmatch(NUMBER + "(%?)", text.strip())
    share = float(match[1]) / (100 if match[2] else 1) if match else -1
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no share, such as 10%")
    return share


def in_units(value, units):
    """Writes a time in the largest unit that leaves 1 or more, exact to 12 digits."""
    name, factor = next(((name, factor) for name, factor in reversed(units.items()) if value >= factor),
                        next(iter(units.items())))
    return f"{value / factor:.12g}", name


def rate_text(rate):
    return "".join(in_units(rate, {name: RATE_UNITS[name] for name in ("bit", "kbit", "mbit", "gbit")}))


def time_text(microseconds):
    return "".join(in_units(microseconds, TIME_UNITS)) if microseconds else "0"
