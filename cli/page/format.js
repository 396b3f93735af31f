// How numbers are written for people: four significant digits and a unit, as the command's tables have
// them. Times are in seconds, sizes in bytes.
const format = (() => {
  const whole = new Intl.NumberFormat("en-US");

  function number(x, digits = 4) {
    if (x === null || x === undefined || !Number.isFinite(x)) return "–";
    const rounded = Number(x.toPrecision(digits));
    if (rounded !== 0 && Math.abs(rounded) < 1e-4) return rounded.toExponential();
    return (Math.abs(rounded) >= 10000 ? whole.format(Math.round(x)) : String(rounded)).replace("-", "−");
  }

  const scaled = (units) => (x, digits) => {
    if (x === null || x === undefined || !Number.isFinite(x)) return "–";
    // Rounding comes first: 999.96 ms is 1 s.
    const size = Math.abs(Number(x.toPrecision(digits || 4)));
    const [factor, unit] = units.find(([f]) => size >= f) || (size === 0 ? units.find(([f]) => f === 1) : units.at(-1));
    return `${number(x / factor, digits)} ${unit}`;
  };

  const times = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const anyTime = scaled(times);
  // Less than a picosecond is what rounding leaves.
  const time = (x, digits) => anyTime(Math.abs(x) < 1e-12 && x !== null ? 0 : x, digits);
  const bytes = scaled([[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
  const rate = scaled([[1e12, "TB/s"], [1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]]);

  const binary = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
  // 4 MiB, as thresholds and sizes of messages are written.
  function size(x) {
    const [factor, unit] = binary.find(([f]) => x >= f) || [1, "B"];
    return `${number(x / factor)} ${unit}`;
  }

  const percent = (share, digits = 1) =>
    share === null || share === undefined || !Number.isFinite(share) ? "–" : `${(100 * share).toFixed(digits)} %`;
  function signedPercent(share, digits = 1) {
    const text = percent(share, digits);
    if (/^-?0(\.0+)? %$/.test(text)) return text.replace("-", "");
    return (share > 0 ? "+" : "") + text.replace("-", "−");
  }
  const throughput = (x) => (x === null || x === undefined ? "–" : `${number(x)} /s`);

  // Writes the times of an axis in one unit, that of its largest.
  function timesUpTo(most) {
    const [factor, unit] = times.find(([f]) => Number(most.toPrecision(4)) >= f) || times.at(-1);
    return (x) => `${number(x / factor)} ${unit}`;
  }
  const count = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

  // "287.8 – 358.1 ms": both ends in the unit of the larger one.
  function interval(low, high, write = time) {
    if (low === high) return "–";
    const [a, b] = [write(low), write(high)];
    const unit = b.slice(b.indexOf(" "));
    return `${a.endsWith(unit) ? a.slice(0, -unit.length) : a} – ${b}`;
  }

  // A figure of `rests_on`, in its unit.
  const figure = (x, unit) =>
    ({
      s: () => time(x),
      bytes_per_s: () => rate(x),
      share: () => `${number(100 * x, 3)} %`,
      factor: () => `${number(x, 3)} ×`,
      ratio: () => `${number(x, 3)} : 1`,
    })[unit]?.() ?? number(x, 3);

  // Round values between two, at most about so many.
  function ticks(from, to, most) {
    const rough = (to - from) / Math.max(2, most);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= rough * 0.999);
    const values = [];
    for (let i = Math.ceil(from / step - 1e-9); i * step <= to * (1 + 1e-9); ++i) values.push(i * step);
    return values;
  }

  return { ticks, number, count, time, timesUpTo, bytes, size, rate, percent, signedPercent, throughput, interval, figure };
})();
