// Tests: tests/calibration/check_test.cc.
#include "calibration/check/machine_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "calibration/check/faults.h"
#include "calibration/import/gpu_names.h"
#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/base/scale_figure.h"
#include "models/base/to_size.h"
#include "models/cluster/link_rules.h"

namespace paceline::calibration {
namespace {

bool is_without_nvlink(Inside inside) {
  return inside == Inside::pcie || inside == Inside::host_memory || inside == Inside::nvlink_partly;
}

class Differences {
 public:
  Differences(const models::Cluster& cluster, const SeenMachine& seen)
      : expected_(cluster), file_(seen.file), machine_(seen.machine), found_{{}, cluster, false} {}

  MachineDifferences all() && {
    device();
    gpus();
    inside();
    nics();
    return std::move(found_);
  }

 private:
  void add(std::string text) { found_.texts.push_back(file_ + ": " + std::move(text)); }
  models::Cluster& change() {
    found_.changes_links = true;
    return found_.cluster;
  }

  void device() const {
    if (machine_.device.empty() || machine_.device == expected_.device.name) return;
    throw InputError({file_},
                     fmt::format("its GPUs are {}, and those of {} are {}",
                                 machine_.device_as_written.empty() ? machine_.device
                                                                    : machine_.device_as_written,
                                 expected_.name, expected_.device.name),
                     "give the --cluster that it is of");
  }

  void gpus() {
    const int expected = expected_.ranks_per_node / expected_.hosts_per_node;
    if (machine_.gpus_per_node > 0 && machine_.gpus_per_node < expected)
      add(fmt::format("it shows {} GPUs of a host, of which there should be {}",
                      machine_.gpus_per_node, expected));
  }

  void inside() {
    if (!expected_.intra.is(models::LinkKind::nvlink)) return;
    if (is_without_nvlink(machine_.inside)) {
      add(machine_.without_nvlink.empty()
              ? "GPUs reach each other over PCI Express, not NVLink"
              : fmt::format("{} has no NVLink, where others have some", machine_.without_nvlink));
      if (const auto fault = fault_of(FaultId::no_nvlink)) change().intra = fault->cluster.intra;
      return;
    }
    const auto generation = to_size(expected_.device.nvlink_generation);
    if (generation >= nvlinks_of_gpu.size()) return;
    const int expected = nvlinks_of_gpu[generation];
    if (machine_.nvlinks == 0 || machine_.nvlinks >= expected) return;
    add(fmt::format("a GPU has {} NVLinks, of which there should be {}", machine_.nvlinks,
                    expected));
    scale(change().intra.bandwidth, static_cast<double>(machine_.nvlinks) / expected);
  }

  void nics() {
    if (!expected_.has_nic() || machine_.nics.empty()) return;
    const int expected = expected_.nics_per_node / expected_.hosts_per_node;
    const auto found = static_cast<int>(machine_.nics.size());
    if (found < expected) {
      add(fmt::format("it shows {} NICs of a host, of which there should be {}", found, expected));
      change().nics_per_node = found * expected_.hosts_per_node;
    }
    const bool is_rdma = expected_.nic.protocol == models::Protocol::rdma;
    const bool is_staged = std::ranges::any_of(
        machine_.nics, [](const ImportedNic& nic) { return nic.gpudirect && !*nic.gpudirect; });
    const auto named = [&](const auto& is_it) {
      std::string names;
      for (const ImportedNic& nic : machine_.nics)
        if (is_it(nic)) names += (names.empty() ? "" : ", ") + nic.name;
      return names;
    };
    const std::string over_tcp =
        named([](const ImportedNic& nic) { return nic.kind == NicKind::sockets; });
    if (is_rdma && !over_tcp.empty()) {
      add(fmt::format("NCCL uses {} over TCP, and no RDMA", over_tcp));
      take(fault_of(FaultId::sockets));
    } else if (is_rdma && is_staged && expected_.gpudirect) {
      add("NICs do not reach the memory of GPUs (no GPUDirect RDMA)");
      take(fault_of(FaultId::no_gpudirect));
    }
    // A node may have NICs beside those that a job uses.
    const auto too_few = [&](const auto& is_good) {
      return std::ranges::count_if(machine_.nics, is_good) < expected;
    };
    const bool stand_beside =
        expected >= expected_.ranks_per_node / expected_.hosts_per_node && !expected_.nic_distance;
    const auto is_far = [](const ImportedNic& nic) { return nic.distance && !nic.is_beside_gpu(); };
    if (stand_beside && !named(is_far).empty() && too_few(std::not_fn(is_far)))
      add(fmt::format("{} stands away from every GPU, behind a host bridge", named(is_far)));
    constexpr double bits_of_giga = 8 / 1e9;
    const double gbit = expected_.nic.line_rate.value.value() * bits_of_giga;
    constexpr double rounding = 0.9;
    const auto is_slow = [&](const ImportedNic& nic) {
      return nic.gbit_per_s > 0 && nic.gbit_per_s < rounding * gbit;
    };
    if (named(is_slow).empty() || !too_few(std::not_fn(is_slow))) return;
    double least = gbit;
    for (const ImportedNic& nic : machine_.nics)
      if (is_slow(nic)) least = std::min(least, nic.gbit_per_s);
    add(fmt::format("{} runs at {:.4g} Gbit/s, which should be {:.4g}", named(is_slow), least,
                    gbit));
    scale(change().nic.bandwidth, least / gbit);
  }

  [[nodiscard]] std::optional<Fault> fault_of(FaultId id) const {
    constexpr int several = 2;
    for (Fault& fault : faults_of(expected_, several, {}))
      if (fault.id == id) return std::move(fault);
    return std::nullopt;
  }
  void take(const std::optional<Fault>& fault) {
    if (!fault) return;
    change().nic = fault->cluster.nic;
    change().gpudirect = fault->cluster.gpudirect;
  }

  const models::Cluster& expected_;
  const std::string& file_;
  const ImportedMachine& machine_;
  MachineDifferences found_;
};

}  // namespace

MachineDifferences differences(const models::Cluster& cluster, const SeenMachine& seen) {
  return Differences(cluster, seen).all();
}

}  // namespace paceline::calibration
