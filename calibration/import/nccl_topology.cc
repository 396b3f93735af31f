// Tests: tests/calibration/import_machine_test.cc.
#include "calibration/import/nccl_topology.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <pugixml.hpp>
#include <set>
#include <utility>

#include "calibration/import/gpu_names.h"
#include "calibration/import/table_text.h"
#include "models/base/place_in.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

constexpr std::size_t deepest = 64;
constexpr std::size_t most_devices = 100'000;

// Speed of a lane in GT/s, by the generation of PCI Express.
constexpr std::array<double, 6> lane_speeds = {2.5, 5, 8, 16, 32, 64};

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Imported read() {
    pugi::xml_document document;
    const pugi::xml_parse_result parsed =
        document.load_buffer(text_.data(), text_.size(), pugi::parse_default, pugi::encoding_utf8);
    if (!parsed) {
      std::string why = parsed.description();
      why.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(why.front())));
      throw InputError(place_in(file_, text_, to_size(parsed.offset)), "this is not XML: " + why,
                       "give what NCCL wrote to NCCL_TOPO_DUMP_FILE");
    }
    const Node system = document.child("system");
    if (document.child("graphs"))
      throw InputError({file_},
                       "this is a graph of NCCL, which says how it sends, and not over what",
                       "give what NCCL wrote to NCCL_TOPO_DUMP_FILE");
    if (document.child("topology"))
      throw InputError({file_}, "this is a topology of hwloc",
                       "give what NCCL wrote to NCCL_TOPO_DUMP_FILE");
    if (!system)
      throw InputError({file_}, "there is no <system>",
                       "give what NCCL wrote to NCCL_TOPO_DUMP_FILE");
    walk(system);
    return finish(system);
  }

 private:
  using Node = pugi::xml_node;

  [[noreturn]] void fail(const Node& node, const std::string& problem,
                         const std::string& remedy) const {
    const std::ptrdiff_t offset = std::max<std::ptrdiff_t>(node.offset_debug(), 1) - 1;
    throw InputError(place_in(file_, text_, to_size(offset)), problem, remedy);
  }

  [[nodiscard]] int whole(const Node& node, const char* attribute, int most) const {
    const std::string_view word = node.attribute(attribute).value();
    const std::optional<double> value = number(word);
    if (!is_whole_number(word) || !value || *value > most)
      fail(node, fmt::format("{} of <{}> is {}", attribute, node.name(), in_quotes(word)),
           fmt::format("it is a whole number up to {}", most));
    return static_cast<int>(*value);
  }

  // Visits all elements without recursion, so that depth is no danger.
  void walk(const Node& system) {
    Node node = system;
    std::size_t depth = 0;
    while (node) {
      if (node.type() == pugi::node_element) take(node);
      if (node.first_child()) {
        node = node.first_child();
        if (++depth > deepest)
          fail(node, fmt::format("elements nest more than {} deep", deepest),
               "give what NCCL wrote");
        continue;
      }
      while (node != system && !node.next_sibling()) {
        node = node.parent();
        --depth;
      }
      if (node == system) return;
      node = node.next_sibling();
    }
  }

  void take(const Node& node) {
    if (++elements_ > most_devices)
      fail(node, fmt::format("there are more than {} elements", most_devices), "give fewer");
    const std::string_view name = node.name();
    if (name == "cpu") {
      hosts_.insert(node.attribute("host_hash").value());
    } else if (name == "gpu") {
      take_gpu(node, node.parent());
    } else if (name == "net") {
      take_net(node);
    } else if (name == "pci" && !node.child("gpu") && is_display(node) && !node.first_child()) {
      listed_only_ = true;
      take_gpu({}, node);
    } else if (name == "pci" && is_infiniband(node) && !node.first_child()) {
      nics_.push_back({.name = printable(node.attribute("busid").value()),
                       .kind = NicKind::infiniband,
                       .gbit_per_s = 0,
                       .gpudirect = {},
                       .distance = std::string_view(node.parent().name()) == "pci"
                                       ? std::optional(models::NicDistance::pxb)
                                       : std::nullopt});
    }
  }

  static bool is_display(const Node& pci) {
    const std::string_view kind = pci.attribute("class").value();
    return kind.starts_with("0x0302") || kind.starts_with("0x0300");
  }

  static bool is_infiniband(const Node& pci) {
    return std::string_view(pci.attribute("class").value()).starts_with("0x0207");
  }

  struct Gpu {
    std::string bus;
    std::string device;   // of the catalogue
    std::string written;  // the number of the PCI device
    int capability = 0;
    int generation = 0;
    int width = 0;
    std::ptrdiff_t socket = 0;           // where its <cpu> stands
    int switched = 0;                    // NVLinks to switches
    int xgmi = 0;                        // GPUs that a link of AMD's leads to
    std::map<std::string, int> to_gpus;  // NVLinks by target
  };

  void take_gpu(const Node& node, const Node& pci) {
    Gpu gpu;
    gpu.bus = pci.attribute("busid").value();
    Node above = pci;
    while (above && std::string_view(above.name()) != "cpu") above = above.parent();
    gpu.socket = above.offset_debug();
    gpu.written = printable(pci.attribute("device").value());
    gpu.device = gpu_of_pci_device(gpu.written);
    // RCCL writes the number of compute units of AMD's GPUs as "sm".
    const std::string_view gcn = node.attribute("gcn").value();
    if (!gcn.empty())
      gpu.written += fmt::format(", gfx{} of AMD", printable(gcn));
    else if (node.attribute("sm"))
      gpu.capability = whole(node, "sm", 1000);
    for (const Node link : node.children("xgmi"))
      gpu.xgmi += whole(link, "count", 1000) > 0 ? 1 : 0;
    const std::string_view speed = pci.attribute("link_speed").value();
    const std::optional<double> per_lane = number(speed.substr(0, speed.find(' ')));
    for (std::size_t i = 0; per_lane && i < lane_speeds.size(); ++i) {
      if (*per_lane == lane_speeds[i]) gpu.generation = static_cast<int>(i) + 1;
    }
    if (pci.attribute("link_width")) gpu.width = whole(pci, "link_width", 1000);
    for (const Node link : node.children("nvlink")) {
      const int count = whole(link, "count", 1000);
      const std::string_view kind = link.attribute("tclass").value();
      if (kind.starts_with("0x0680"))
        gpu.switched += count;
      else
        gpu.to_gpus[link.attribute("target").value()] += count;
    }
    gpus_.push_back(std::move(gpu));
  }

  void take_net(const Node& node) {
    ImportedNic nic{.name = printable(node.attribute("name").value())};
    // There are plugins that write kbit/s.
    constexpr double fastest = 10'000;
    nic.gbit_per_s = whole(node, "speed", 2'000'000'000) / 1000.0;
    if (nic.gbit_per_s > fastest) nic.gbit_per_s = 0;
    if (node.attribute("gdr")) nic.gpudirect = whole(node, "gdr", 10) != 0;
    Node pci = node.parent();
    while (pci && std::string_view(pci.name()) != "pci") pci = pci.parent();
    const std::string_view kind = pci.attribute("class").value();
    const bool verbs = nic.name.starts_with("mlx") || nic.name.starts_with("bnxt_re") ||
                       nic.name.starts_with("ib");
    if (nic.name.starts_with("rdmap") || nic.name.starts_with("efa"))
      nic.kind = NicKind::efa;
    else if (kind.starts_with("0x0207"))
      nic.kind = NicKind::infiniband;
    else if (kind.starts_with("0x0200") && verbs)
      nic.kind = NicKind::roce;
    else if (!verbs && (kind.starts_with("0x0200") || nic.name.starts_with("e")))
      nic.kind = NicKind::sockets;
    for (Node above = pci.parent(); above && std::string_view(above.name()) == "pci";
         above = above.parent()) {
      if (holds_gpu(above)) nic.distance = models::NicDistance::pxb;
    }
    nics_.push_back(std::move(nic));
  }

  // Whether a GPU is under this bridge. The answer for each bridge is found once.
  bool holds_gpu(const Node& bridge) {
    const auto [known, is_new] = gpu_under_.try_emplace(bridge.offset_debug(), false);
    if (is_new)
      known->second =
          !bridge.find_node([](const Node& node) { return std::string_view(node.name()) == "gpu"; })
               .empty();
    return known->second;
  }

  Imported finish(const Node& system) {
    if (gpus_.empty())
      fail(system, "there is no <gpu> in it", "give what NCCL wrote to NCCL_TOPO_DUMP_FILE");
    Imported imported{
        .tool = "NCCL topology",
        .version = fmt::format("version {}", printable(system.attribute("version").value()))};
    ImportedMachine machine;
    const std::size_t hosts = std::max<std::size_t>(hosts_.size(), 1);
    if (gpus_.size() % hosts != 0)
      fail(system, fmt::format("{} GPUs on {} nodes", gpus_.size(), hosts),
           "nodes have equally many");
    if (hosts > 1) machine.nodes = static_cast<int>(hosts);
    machine.gpus_per_node = static_cast<int>(gpus_.size() / hosts);
    const Gpu& first = gpus_.front();
    const auto all = [&](auto member) {
      return std::all_of(gpus_.begin(), gpus_.end(),
                         [&](const Gpu& gpu) { return gpu.*member == first.*member; });
    };
    if (all(&Gpu::written)) {
      machine.device = first.device;
      if (!first.written.empty()) machine.device_as_written = "PCI device " + first.written;
    } else {
      imported.remarks.emplace_back("the GPUs are not of one kind, as those of a cluster here are");
    }
    if (all(&Gpu::capability)) machine.compute_capability = first.capability;
    if (all(&Gpu::generation)) machine.pcie_generation = first.generation;
    if (all(&Gpu::width)) machine.pcie_width = first.width;
    if (listed_only_)
      imported.remarks.emplace_back(
          "the file lists PCI devices for NCCL to look at, and does not say what joins them");
    else if (std::any_of(gpus_.begin(), gpus_.end(), [](const Gpu& gpu) { return gpu.xgmi > 0; }))
      machine.inside = all(&Gpu::xgmi) && gpus_.front().xgmi == static_cast<int>(gpus_.size()) - 1
                           ? Inside::xgmi
                           : Inside::xgmi_partly;
    else
      take_links(machine, all(&Gpu::switched));
    if (machine.inside == Inside::pcie && hosts == 1 && !all(&Gpu::socket))
      machine.farthest = "SYS";
    if (nics_.size() % hosts == 0) nics_.resize(nics_.size() / hosts);
    machine.nics = std::move(nics_);
    if (machine.nics.empty()) imported.remarks.emplace_back("there is no <net> in the file");
    if (hosts == 1)
      imported.remarks.emplace_back(
          "a topology is of one node, and does not say how many there are");
    imported.machine = std::move(machine);
    return imported;
  }

  void take_links(ImportedMachine& machine, bool even) const {
    const std::size_t others = gpus_.size() - 1;
    if (others == 0) return;
    const bool switched =
        std::all_of(gpus_.begin(), gpus_.end(), [](const Gpu& gpu) { return gpu.switched > 0; });
    if (switched && even) {
      machine.inside = Inside::nvlink;
      machine.nvlinks = gpus_.front().switched;
      return;
    }
    std::set<std::string> buses;
    for (const Gpu& gpu : gpus_) buses.insert(gpu.bus);
    std::size_t joined = 0;
    std::set<int> totals;
    std::set<int> pairs;
    for (const Gpu& gpu : gpus_) {
      int total = 0;
      for (const auto& [target, count] : gpu.to_gpus) {
        const bool known = buses.contains(target);
        if (!known || count == 0) continue;
        ++joined;
        total += count;
        pairs.insert(count);
      }
      totals.insert(total);
    }
    if (joined == 0) {
      const bool any_switch =
          std::any_of(gpus_.begin(), gpus_.end(), [](const Gpu& gpu) { return gpu.switched > 0; });
      machine.inside = any_switch ? Inside::nvlink_partly : Inside::pcie;
    } else if (joined == gpus_.size() * others) {
      machine.inside = Inside::nvlink;
      machine.nvlinks_of_pair = *pairs.begin();
      machine.most_nvlinks_of_pair = *pairs.rbegin();
      if (totals.size() == 1) machine.nvlinks = *totals.begin();
    } else {
      machine.inside = totals.size() == 1 ? Inside::nvlink_mesh : Inside::nvlink_partly;
      if (totals.size() == 1) machine.nvlinks = *totals.begin();
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t elements_ = 0;
  std::set<std::string> hosts_;
  std::vector<Gpu> gpus_;
  std::vector<ImportedNic> nics_;
  std::map<std::ptrdiff_t, bool> gpu_under_;
  bool listed_only_ = false;  // a GPU is an element <pci>, without <gpu>
};

}  // namespace

bool looks_like_nccl_topology(std::string_view text) {
  constexpr std::size_t head = 1 << 12;
  text = text.substr(0, head);
  return text.find("<system") != std::string_view::npos ||
         text.find("<graphs") != std::string_view::npos ||
         text.find("<topology") != std::string_view::npos;
}

Imported parse_nccl_topology(std::string_view text, const std::string& file) {
  return Reader(text, file).read();
}

}  // namespace paceline::calibration
