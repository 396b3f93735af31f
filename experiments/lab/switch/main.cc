// paceline-lab-switch: an Ethernet between network namespaces, with rates and latencies.
//
// Started by lab.py. Prints "ready" when each namespace has its device, carries frames until
// SIGTERM, and prints one line of JSON then: what it carried, and how late.
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "experiments/lab/switch/switch.h"

namespace {

volatile sig_atomic_t terminated = 0;

struct Options {
  double rate_bits = 0.0;
  double latency_us = 0.0;
  int racks = 1;
  double uplink_bits = 0.0;
  int mtu = 1500;
  double late_after_us = 5000.0;
  std::vector<std::string> namespaces;
};

// Signals are let in while the switch waits. It wakes at least once a second, because a signal that came
// just before it waited.
void watch_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { terminated = 1; };
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

int run(const Options& options) {
  std::vector<paceline::lab::Tap> taps;
  for (const std::string& path : options.namespaces) {
    taps.emplace_back(path, static_cast<int>(taps.size()), options.mtu);
  }
  const paceline::lab::FabricOptions fabric{
      .hosts = static_cast<int>(taps.size()),
      .rate = options.rate_bits / 8.0,
      .latency = static_cast<paceline::lab::Nanoseconds>(options.latency_us * 1e3),
      .racks = options.racks,
      .uplink_rate = options.uplink_bits / 8.0};
  paceline::lab::Switch network(
      paceline::lab::Fabric(fabric), std::move(taps),
      static_cast<paceline::lab::Nanoseconds>(options.late_after_us * 1e3));
  // A page that is read back from a disk delays all hosts.
  mlockall(MCL_CURRENT | MCL_FUTURE);
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  watch_signals();
  std::puts("ready");
  std::fflush(stdout);
  const auto report = network.run([] { return terminated != 0; });
  const paceline::lab::Lateness& late = report.lateness;
  fmt::print(R"({{"frames": {}, "wire_bytes": {}, "refused": {}, "mean_lateness_us": {:.1f}, )"
             R"("p99_lateness_us": {:.1f}, "worst_lateness_us": {:.1f}, "held_up_s": {:.4f}}})"
             "\n",
             late.count(), report.wire_bytes, report.refused, late.mean() / 1e3,
             static_cast<double>(late.quantile(0.99)) / 1e3,
             static_cast<double>(late.worst()) / 1e3, static_cast<double>(report.held_up) / 1e9);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("An Ethernet between network namespaces, with rates and latencies (see lab.py)");
  app.add_option("--rate", options.rate_bits, "Of a host's link, each way, bit/s")
      ->required()
      ->check(CLI::PositiveNumber);
  app.add_option("--latency", options.latency_us, "From host to host, microseconds")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--racks", options.racks, "Number of racks that the hosts are in")
      ->check(CLI::PositiveNumber);
  app.add_option("--uplink", options.uplink_bits, "Of a rack's uplink, each way, bit/s");
  app.add_option("--mtu", options.mtu, "Bytes");
  app.add_option("--late-after", options.late_after_us,
                 "Frames that are later than this are held up, microseconds");
  app.add_option("namespaces", options.namespaces, "Paths of network namespaces, one for each host")
      ->required();
  CLI11_PARSE(app, argc, argv);
  if (options.racks > static_cast<int>(options.namespaces.size()) ||
      (options.racks > 1 && options.uplink_bits <= 0.0)) {
    fmt::print(stderr, "paceline-lab-switch: racks need a host each, and --uplink\n");
    return 2;
  }
  try {
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "paceline-lab-switch: {}\n", error.what());
    return 1;
  }
}
