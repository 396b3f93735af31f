// Tests: tests/calibration/import_machine_test.cc.
#include "calibration/import/nccl_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "calibration/import/gpu_names.h"
#include "calibration/import/table_text.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::size_t most_lines = 5'000'000;
constexpr double most_ranks = 1e6;

// The word after the k-th that is equal to any of the names, whatever its case in "nRanks".
std::optional<std::string_view> value_of(const Words& row, std::string_view name,
                                         std::string_view other = {}) {
  for (std::size_t i = 0; i + 1 < row.size(); ++i) {
    if (row[i] == name || (!other.empty() && row[i] == other)) return row[i + 1];
  }
  return std::nullopt;
}

// GB/s of one NVLink in NCCL's model, by generation (src/graph/topo.h of 2.5 to 2.30).
constexpr std::array<std::pair<double, int>, 7> nvlink_speeds = {
    {{18, 1}, {20, 0}, {21, 2}, {22, 0}, {20.6, 4}, {40.1, 5}, {12, 0}}};
constexpr int most_nvlinks = 18;

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  void read(const TextLine& line) {
    if (++lines_ > most_lines)
      throw InputError({file_, line.number}, "there are more than 5 million lines", "give fewer");
    read_version(line.text);
    read_device(line.text);
    constexpr std::string_view mark = "NCCL INFO ";
    const std::size_t at = line.text.find(mark);
    if (at == std::string_view::npos || (at > 0 && line.text[at - 1] != ' ')) return;
    const Words before = words(line.text.substr(0, at));
    // "HOST:PID:TID [DEV]", or nothing where somebody has cut it off.
    if (!before.empty() && (before.size() < 2 || !before.back().starts_with('['))) return;
    const std::string_view place = before.empty() ? std::string_view() : before[before.size() - 2];
    const std::string host = printable(place.substr(0, place.find(':')));
    const std::string_view said = line.text.substr(at + mark.size());
    const Words row = words(said);
    const std::string_view process = place.substr(0, place.rfind(':'));
    read_rank(row, host, process, line.number);
    read_nics(said, row, host);
    read_path(row, said);
    read_tree(said, host);
  }

  Imported finish() {
    if (ranks_.empty())
      throw InputError({file_}, "there is no rank of a communicator in this log",
                       "run with NCCL_DEBUG=INFO, and give the output of all ranks");
    const auto largest =
        std::max_element(ranks_.begin(), ranks_.end(), [](const auto& a, const auto& b) {
          return std::tuple(a.first.first, a.second.hosts.size()) <
                 std::tuple(b.first.first, b.second.hosts.size());
        });
    Imported imported{.tool = "NCCL log", .version = version_};
    ImportedMachine machine;
    take_ranks(largest->first.first, largest->second, machine, imported);
    take_links(machine, imported);
    take_nics(machine, imported);
    if (products_.size() == 1) {
      machine.device_as_written = *products_.begin();
      machine.device = gpu_of_product(machine.device_as_written);
    }
    if (products_.empty())
      imported.remarks.emplace_back("NCCL does not name the GPUs: nccl-tests does, in its header");
    imported.machine = std::move(machine);
    return imported;
  }

 private:
  struct Communicator {
    std::map<int, std::string> hosts;    // by rank
    std::map<int, std::string> devices;  // likewise, the CUDA device
    int nodes = 0;
    int local_ranks = 0;
    bool is_wide = false;  // NVLink domains of several hosts, which NCCL counts as its nodes
  };

  void read_version(std::string_view line) {
    constexpr std::string_view mark = "CCL version ";  // of NCCL, and of RCCL
    const std::size_t at = line.find(mark);
    if (at == std::string_view::npos || !version_.empty()) return;
    const Words after = words(line.substr(at + mark.size()));
    if (!after.empty()) version_ = printable(after[0]);
  }

  // "#  Rank  0 Group  0 Pid 1887 on worker-1 device  0 [0x8d] NVIDIA H100 80GB HBM3".
  void read_device(std::string_view line) {
    const std::size_t device = line.find(" device ");
    const std::size_t close = line.find("] ", device == std::string_view::npos ? 0 : device);
    if (!line.starts_with('#') || device == std::string_view::npos ||
        close == std::string_view::npos)
      return;
    const std::string_view product = line.substr(close + 2);
    products_.insert(printable(product.substr(0, product.find_last_not_of(" \t") + 1)));
  }

  void read_rank(const Words& row, const std::string& host, std::string_view process, int line) {
    const auto rank = value_of(row, "rank");
    const auto count = value_of(row, "nranks", "nRanks");
    if (!rank || !count || !is_whole_number(*rank) || !is_whole_number(*count)) return;
    const double ranks = number(*count).value_or(0);
    const double index = number(*rank).value_or(0);
    if (ranks < 1 || ranks > most_ranks || index >= ranks)
      throw InputError({file_, line}, fmt::format("rank {} of {}", *rank, *count),
                       "ranks are counted from 0, and are up to 1000000");
    Communicator& communicator =
        ranks_[{static_cast<int>(ranks), printable(value_of(row, "commId").value_or(""))}];
    communicator.hosts[static_cast<int>(index)] = host;
    const std::string device = printable(value_of(row, "cudaDev").value_or(""));
    communicator.devices[static_cast<int>(index)] = device;
    if (const auto of_host = value_of(row, "nvmlDev"); of_host && is_whole_number(*of_host))
      last_device_ = std::max(last_device_, static_cast<int>(number(*of_host).value_or(0)));
    if (!process.empty()) {
      std::set<std::string>& devices = members_[host][printable(process)];
      if (!device.empty()) devices.insert(device);
    }
    const auto whole = [&](std::string_view name) {
      const auto word = value_of(row, name);
      const double value = word && is_whole_number(*word) ? number(*word).value_or(0) : 0;
      return value <= ranks ? static_cast<int>(value) : 0;
    };
    if (const int nodes = whole("nNodes"); nodes > 0) communicator.nodes = nodes;
    if (const int local = whole("localRanks"); local > 0) communicator.local_ranks = local;
    if (value_of(row, "MNNVL") == "1") communicator.is_wide = true;
  }

  // "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB ..", "NET/Socket : Using [0]eth0:..".
  void read_nics(std::string_view said, const Words& row, const std::string& host) {
    if (said.starts_with("Using network ") && row.size() > 2) network_ = printable(row[2]);
    if (said.starts_with("NET/OFI Selected ")) read_efa(said);
    if (said.starts_with("NET/IB : Made virtual device ")) read_merged(row, host);
    // "NET/IB: [0] mlx5_0:1/IB" is a line for each NIC, of NCCL 2.3.
    const bool one = said.starts_with("NET/IB: [") && row.size() == 3;
    const bool ib = one || said.starts_with("NET/IB : Using ");
    const bool socket = said.starts_with("NET/Socket : Using ");
    if (!ib && !socket) return;
    auto& nics = (ib ? ib_ : sockets_)[host];
    for (const std::string_view word : row) {
      const std::size_t close = word.find(']');
      if (!word.starts_with('[') || close < 2 || close == std::string_view::npos ||
          !is_whole_number(word.substr(1, close - 1)))
        continue;
      std::string_view name = one ? row[2] : word.substr(close + 1);
      const std::size_t colon = name.find(':');
      ImportedNic nic{.name = printable(name.substr(0, colon))};
      nic.kind = socket                                         ? NicKind::sockets
                 : name.find("/RoCE") != std::string_view::npos ? NicKind::roce
                 : name.find("/IB") != std::string_view::npos   ? NicKind::infiniband
                                                                : NicKind::unknown;
      if (!nic.name.empty()) nics.try_emplace(nic.name, nic);
    }
  }

  // "NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 speed=400000 ndevs=2". It is listed beside its parts.
  void read_merged(const Words& row, const std::string& host) {
    std::string name;
    double mbit_per_s = 0;
    double devices = 0;
    for (const std::string_view word : row) {
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view key = word.substr(0, equals);
      const std::string_view value = word.substr(equals + 1);
      if (key == "name") name = printable(value);
      if (key == "speed") mbit_per_s = number(value).value_or(0);
      if (key == "ndevs") devices = number(value).value_or(0);
    }
    constexpr double most = 1e9;
    if (name.empty() || devices < 2 || mbit_per_s <= 0 || mbit_per_s > most) return;
    merged_[host][name] = mbit_per_s / 1e3;
  }

  // "NET/OFI Selected Provider is efa (found 4 nics)".
  void read_efa(std::string_view said) {
    constexpr std::string_view found = "(found ";
    const std::size_t at = said.find(found);
    if (at == std::string_view::npos || said.find(" efa") == std::string_view::npos) return;
    const Words after = words(said.substr(at + found.size()));
    constexpr double most = 1000;
    const double count = after.empty() ? 0 : number(after[0]).value_or(0);
    if (count >= 1 && count <= most) efa_ = static_cast<int>(count);
  }

  void read_path(const Words& row, std::string_view said) {
    const auto via = value_of(row, "via");
    if (via && via->starts_with("P2P")) ++peer_;
    if (via && (via->starts_with("SHM") || *via == "direct")) ++shared_;
    if (via && via->starts_with("NET/")) {
      // The network's name may have a blank, as in "via NET/AWS Libfabric/0/GDRDMA".
      const std::string_view net = said.substr(said.find(" via NET/") + 9);
      through_ = printable(net.substr(0, net.find('/')));
      ++(net.find("GDRDMA") != std::string_view::npos ? direct_ : staged_);
    }
    if (said.find("NVLS multicast support is available") != std::string_view::npos) nvls_ = true;
  }

  // "+ NVL[264.0] - NVS/0", "+ NVL[44.0] - GPU/B000", "+ NET[25.0] - NET/0 (88b8/1/25.000000)",
  // "+ PCI[24.0] - GPU/E000 (0)", "+ SYS[10.0] - CPU/1".
  void read_tree(std::string_view said, const std::string& host) {
    const Words row = words(said);
    if (row.size() < 4 || row[0] != "+" || row[2] != "-") return;
    const std::size_t open = row[1].find('[');
    if (open == std::string_view::npos || !row[1].ends_with(']')) return;
    const std::optional<double> rate = number(row[1].substr(open + 1, row[1].size() - open - 2));
    const std::string_view kind = row[1].substr(0, open);
    if (!rate || *rate <= 0 || *rate > 1e6) return;
    if (kind == "NET") nets_[host][printable(row[3])] = *rate * 8;
    if (kind == "NVL") {
      nvl_.insert(*rate);
      (row[3].starts_with("NVS") ? to_switch_ : to_gpu_) += 1;
    }
    if (kind == "PCI") tree_ = true;
    if (!row[3].starts_with("GPU/")) return;
    const std::string gpu = printable(row[3]);
    if (kind == "PCI") {
      tree_gpu_ = gpu;
      tree_gpus_[host].try_emplace(gpu);
    } else if (kind == "XGMI" && !tree_gpu_.empty()) {
      tree_gpus_[host][tree_gpu_].insert(gpu);
    }
  }

  // A log of process groups alone (of tensor parallelism, for one) has more members than its largest
  // communicator has ranks.
  [[nodiscard]] bool take_groups(int ranks, ImportedMachine& machine, Imported& imported) const {
    std::size_t all = 0;
    std::size_t most = 0;
    for (const auto& [host, processes] : members_) {
      std::size_t members = 0;
      for (const auto& [process, devices] : processes)
        members += std::max<std::size_t>(1, devices.size());
      all += members;
      most = std::max(most, members);
    }
    if (all <= to_size(ranks) || members_.contains("")) return false;
    imported.remarks.push_back(
        fmt::format("communicators of up to {} ranks, and {} processes with a GPU: process groups "
                    "alone, of a job "
                    "over all of these",
                    ranks, all));
    if (all != most * members_.size()) {
      imported.remarks.emplace_back("hosts have different numbers of ranks, and no cluster here");
      return true;
    }
    machine.nodes = static_cast<int>(members_.size());
    machine.gpus_per_node = static_cast<int>(most);
    return true;
  }

  // The ranks of each host that is seen, where they have its devices 0, 1, 2, ..., and the tree of devices
  // has no others; else 0.
  [[nodiscard]] int whole_host(const Communicator& communicator,
                               const std::map<std::string, int>& by_host) const {
    const int on_first = by_host.begin()->second;
    std::map<std::string, std::set<std::string>> devices;
    for (const auto& [rank, host] : communicator.hosts)
      devices[host].insert(communicator.devices.at(rank));
    for (const auto& [host, count] : by_host) {
      const auto tree = tree_gpus_.find(host);
      if (host.empty() || count != on_first || tree == tree_gpus_.end() ||
          tree->second.size() != to_size(count))
        return 0;
      for (int device = 0; device < count; ++device) {
        if (!devices[host].contains(std::to_string(device))) return 0;
      }
    }
    return on_first > 1 ? on_first : 0;
  }

  void take_ranks(int ranks, const Communicator& communicator, ImportedMachine& machine,
                  Imported& imported) const {
    std::map<std::string, int> by_host;
    for (const auto& [rank, host] : communicator.hosts) ++by_host[host];
    const int seen = static_cast<int>(communicator.hosts.size());
    const int on_first = by_host.begin()->second;
    const bool even = std::all_of(by_host.begin(), by_host.end(),
                                  [&](const auto& host) { return host.second == on_first; });
    if (take_groups(ranks, machine, imported)) return;
    if (seen == ranks && !by_host.contains("") && last_device_ >= on_first)
      imported.remarks.push_back(
          fmt::format("a rank is on GPU {} of its host, where this communicator has {} rank{}: the "
                      "hosts have more GPUs than the cluster that is made of it",
                      last_device_, on_first, on_first == 1 ? "" : "s"));
    if (communicator.nodes > 0) machine.nodes = communicator.nodes;
    if (communicator.local_ranks > 0) machine.gpus_per_node = communicator.local_ranks;
    if (communicator.is_wide && machine.nodes > 0 && machine.gpus_per_node > 0 && on_first > 0 &&
        machine.gpus_per_node % on_first == 0 && !by_host.contains("")) {
      machine.hosts_per_node = machine.gpus_per_node / on_first;
      machine.inside = Inside::nvlink;
      imported.remarks.push_back(fmt::format(
          "MNNVL 1: each of NCCL's nodes is an NVLink domain of {} hosts", machine.hosts_per_node));
    } else if (by_host.contains("")) {
      if (machine.nodes == 0)
        imported.remarks.emplace_back(
            "lines without HOST:PID:TID do not say which ranks are on one node");
    } else if (seen == ranks && even) {
      machine.nodes = static_cast<int>(by_host.size());
      machine.gpus_per_node = on_first;
    } else if (const int on_host = whole_host(communicator, by_host);
               seen < ranks && machine.gpus_per_node == 0 && on_host > 0 && ranks % on_host == 0) {
      machine.gpus_per_node = on_host;
      machine.nodes = ranks / on_host;
      imported.remarks.push_back(fmt::format(
          "{} of {} ranks are in this log; the other hosts are taken to have as many, {}", seen,
          ranks, on_host));
    } else if (seen == ranks) {
      imported.remarks.emplace_back("hosts have different numbers of ranks, and no cluster here");
    } else {
      imported.remarks.push_back(
          fmt::format("{} of {} ranks are in this log{}", seen, ranks,
                      machine.nodes > 0 ? ", which says the rest" : ": give that of all of them"));
    }
  }

  void take_links(ImportedMachine& machine, Imported& imported) const {
    const auto hive = hives();
    if (hive) {
      machine.inside = hive->second ? Inside::xgmi : Inside::xgmi_partly;
      if (!hive->second)
        imported.remarks.push_back(fmt::format(
            "XGMI joins the GPUs in hives of {}, and PCI Express the hives", hive->first));
    } else if (nvls_ || to_switch_ > 0) {
      machine.inside = Inside::nvlink;
    } else if (to_gpu_ > 0) {
      imported.remarks.emplace_back(
          "NVLink joins GPUs without a switch; nvidia-smi topo -m says which");
      return;
    } else if (tree_) {
      machine.inside = peer_ == 0 && shared_ > 0 ? Inside::host_memory : Inside::pcie;
    } else if (peer_ == 0 && shared_ > 0) {
      machine.inside = Inside::host_memory;
    } else if (peer_ > 0) {
      imported.remarks.emplace_back(
          "GPUs reach each other, and the log does not say over what: add GRAPH to "
          "NCCL_DEBUG_SUBSYS");
    }
    if (nvl_.size() != 1 || to_switch_ == 0) return;
    std::set<std::pair<int, int>> counts;  // of links, with their generation
    for (const auto& [speed, generation] : nvlink_speeds) {
      const double links = *nvl_.begin() / speed;
      const double nearest = std::round(links);
      if (nearest >= 2 && nearest <= most_nvlinks && std::abs(links - nearest) < 0.005 * nearest)
        counts.insert({static_cast<int>(nearest), generation});
    }
    if (counts.size() != 1) return;
    machine.nvlinks = counts.begin()->first;
    machine.nvlink_generation = counts.begin()->second;
  }

  // How many of AMD's GPUs XGMI joins in the largest hive, and whether all GPUs are in it. Nothing where
  // the log shows no XGMI.
  [[nodiscard]] std::optional<std::pair<std::size_t, bool>> hives() const {
    if (tree_gpus_.empty()) return std::nullopt;
    const auto& gpus = tree_gpus_.begin()->second;
    std::size_t most = 0;
    for (const auto& [gpu, peers] : gpus) most = std::max(most, peers.size());
    if (most == 0) return std::nullopt;
    const bool is_one = std::all_of(gpus.begin(), gpus.end(), [&](const auto& gpu) {
      return gpu.second.size() + 1 == gpus.size();
    });
    return std::pair(most + 1, is_one);
  }

  void take_nics(ImportedMachine& machine, Imported& imported) const {
    const std::string& network = through_.empty() ? network_ : through_;
    const bool socket = network == "Socket" || (network.empty() && ib_.empty());
    const auto& by_host = socket ? sockets_ : ib_;
    if (!network.empty() && network != "Socket" && network != "IB")
      imported.remarks.push_back("messages travel by network " + network);
    if (efa_ > 0)
      imported.remarks.push_back(fmt::format(
          "{} EFA NIC{} of a node: the catalogue's links of EFA are all of them together", efa_,
          efa_ == 1 ? "" : "s"));
    if (!by_host.empty()) {
      for (const auto& [name, nic] : by_host.begin()->second) machine.nics.push_back(nic);
    }
    if (socket) leave_out_virtual(machine.nics, imported);
    if (!socket && !merged_.empty()) merge(merged_.begin()->second, machine.nics, imported);
    // The tree has the rates of NICs, by numbers instead of names.
    if (!nets_.empty()) {
      std::set<double> rates;
      for (const auto& [name, rate] : nets_.begin()->second) rates.insert(rate);
      if (rates.size() == 1) {
        if (machine.nics.empty()) {
          for (const auto& [name, rate] : nets_.begin()->second)
            machine.nics.push_back({.name = name});
        }
        for (ImportedNic& nic : machine.nics) {
          if (nic.gbit_per_s == 0) nic.gbit_per_s = *rates.begin();
        }
      }
    }
    const bool any_path = direct_ + staged_ > 0;
    for (ImportedNic& nic : machine.nics) {
      if (any_path && !socket) nic.gpudirect = staged_ == 0;
    }
    if (direct_ > 0 && staged_ > 0)
      imported.remarks.push_back(fmt::format(
          "{} of {} connections between nodes are without GPUDirect", staged_, direct_ + staged_));
  }

  // Interfaces of Linux that are no cable of the cluster's: Wi-Fi, tunnels, bridges and what containers have.
  static void leave_out_virtual(std::vector<ImportedNic>& nics, Imported& imported) {
    constexpr std::array<std::string_view, 14> beginnings = {
        "wl",    "tun",  "tap", "wg",      "ppp",  "docker",    "br-",
        "virbr", "veth", "cni", "flannel", "cali", "tailscale", "zt"};
    const auto is_virtual = [&](const ImportedNic& nic) {
      return std::any_of(beginnings.begin(), beginnings.end(), [&](std::string_view beginning) {
        return nic.name.starts_with(beginning);
      });
    };
    if (std::all_of(nics.begin(), nics.end(), is_virtual)) return;
    std::erase_if(nics, [&](const ImportedNic& nic) {
      if (!is_virtual(nic)) return false;
      imported.remarks.push_back(fmt::format(
          "{} is Wi-Fi, a tunnel or of containers, and does not count as a NIC", nic.name));
      return true;
    });
  }

  // Puts each virtual NIC in the place of its parts.
  static void merge(const std::map<std::string, double>& merged, std::vector<ImportedNic>& nics,
                    Imported& imported) {
    for (const auto& [name, gbit_per_s] : merged) {
      ImportedNic whole{.name = name, .gbit_per_s = gbit_per_s};
      std::size_t begin = 0;
      while (begin <= name.size()) {
        const std::size_t end = std::min(name.find('+', begin), name.size());
        const std::string part = name.substr(begin, end - begin);
        std::erase_if(nics, [&](const ImportedNic& nic) {
          if (nic.name != part) return false;
          whole.kind = nic.kind;
          return true;
        });
        begin = end + 1;
      }
      nics.push_back(whole);
      imported.remarks.push_back(fmt::format(
          "{} is one NIC of {:g} Gbit/s, which NCCL made of its parts", name, gbit_per_s));
    }
  }

  const std::string& file_;
  std::size_t lines_ = 0;
  std::string version_;
  std::string network_;  // "IB"
  std::string through_;  // the same, of a connection
  std::map<std::pair<int, std::string>, Communicator> ranks_;
  std::map<std::string, std::map<std::string, ImportedNic>> ib_;       // by host and name
  std::map<std::string, std::map<std::string, ImportedNic>> sockets_;  // likewise
  std::map<std::string, std::map<std::string, double>> nets_;          // Gbit/s by host and number
  std::map<std::string, std::map<std::string, double>> merged_;        // likewise, by name
  std::map<std::string, std::map<std::string, std::set<std::string>>>
      tree_gpus_;         // and what XGMI joins them to, by host
  int last_device_ = 0;   // of the host's own numbers, the greatest that a rank has
  std::string tree_gpu_;  // whose links follow
  // The devices of each process with ranks, by host. Some lines of a rank do not name its device.
  std::map<std::string, std::map<std::string, std::set<std::string>>> members_;
  std::set<std::string> products_;
  std::set<double> nvl_;
  int efa_ = 0;  // NICs of a node
  std::size_t to_switch_ = 0;
  std::size_t to_gpu_ = 0;
  std::size_t peer_ = 0;
  std::size_t shared_ = 0;
  std::size_t direct_ = 0;
  std::size_t staged_ = 0;
  bool nvls_ = false;
  bool tree_ = false;
};

}  // namespace

bool looks_like_nccl_log(std::string_view text) {
  return text.starts_with("NCCL INFO ") || text.find(" NCCL INFO ") != std::string_view::npos ||
         text.find("\nNCCL INFO ") != std::string_view::npos;
}

Imported parse_nccl_log(std::string_view text, const std::string& file) {
  return read_lines<Reader>(text, file);
}

}  // namespace paceline::calibration
