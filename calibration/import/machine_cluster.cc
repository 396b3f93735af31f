// Tests: tests/calibration/import_machine_test.cc.
#include "calibration/import/machine_cluster.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "calibration/import/gpu_names.h"
#include "calibration/import/table_text.h"
#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/to_size.h"
#include "models/cluster/catalog_parts.h"
#include "models/cluster/yaml.h"

namespace paceline::calibration {
namespace {

// A value of a key, or nothing, and why.
struct Answer {
  std::string value;
  std::string why;
};

// GPUs of a DGX-1, whose cube mesh the catalogue has.
constexpr int mesh_gpus = 8;

int generation_of(const ImportedMachine& machine, const std::string& device) {
  if (const int known = nvlink_generation(device); known > 0) return known;
  if (machine.nvlink_generation > 0) return machine.nvlink_generation;
  return device.empty() ? nvlink_generation_of_capability(machine.compute_capability) : 0;
}

// Some of the NVLinks of a link of the catalogue.
class NvlinkShare {
 public:
  NvlinkShare(std::string base, int all)
      : base_(std::move(base)), all_(all), link_(models::catalog_link(base_)) {}

  // The link of a GPU that has this many, all of them to a switch.
  [[nodiscard]] std::string of_gpu(int links) const {
    if (links == all_) return base_;
    return fmt::format("{{base: {}, line_rate: {}, bandwidth: {}}}", base_, line_rate(links),
                       bandwidth(links, links));
  }

  // The link of GPUs without a switch. Each pair of GPUs has `least` to `most` NVLinks between them, so that
  // a rank reaches p - 1 other ranks over p - 1 times as many.
  [[nodiscard]] std::string of_mesh(int gpus, int least, int most, int of_gpu) const {
    std::string by_ranks;
    for (int ranks = 2; ranks < gpus; ++ranks)
      by_ranks += fmt::format("{}: {}, ", ranks,
                              bandwidth((ranks - 1) * least, std::min((ranks - 1) * most, of_gpu)));
    return fmt::format("{{base: {}, line_rate: {}, bandwidth_by_ranks: {{{}{}: {}}}}}", base_,
                       line_rate(of_gpu), by_ranks, gpus, bandwidth(of_gpu, of_gpu));
  }

 private:
  [[nodiscard]] std::string rate(BytesPerSecond of, int links) const {
    constexpr double giga = 1e9;
    return fmt::format("{:.6g} GB/s", of.value() * links / all_ / giga);
  }
  [[nodiscard]] std::string line_rate(int links) const {
    return rate(link_.line_rate.value, links);
  }
  // `links`, and at most `most`.
  [[nodiscard]] std::string bandwidth(int links, int most) const {
    return fmt::format(
        "{{value: {}, low: {}, high: {}, provenance: assumed, source: \"{} of the {} NVLinks of "
        "{}\"}}",
        rate(link_.bandwidth.value, links), rate(link_.bandwidth.low, links),
        rate(link_.bandwidth.high, most), range(links, most), all_, base_);
  }
  static std::string range(int least, int most) {
    return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
  }

  std::string base_;
  int all_;
  models::Link link_;
};

// How many NVLinks a GPU has to all others, where no switch joins them; 0 if one does, which is where every
// two have as many between them as a GPU has in all.
int links_of_mesh(const ImportedMachine& machine, int all) {
  const int others = machine.gpus_per_node - 1;
  if (machine.nvlinks_of_pair == 0 || others < 2) return 0;
  const bool is_even = machine.nvlinks_of_pair == machine.most_nvlinks_of_pair;
  const int links = is_even ? machine.nvlinks_of_pair * others : machine.nvlinks;
  return links <= all ? links : 0;
}

Answer nvlink(const ImportedMachine& machine, const std::string& device) {
  int generation = generation_of(machine, device);
  const bool is_even = machine.nvlinks_of_pair == machine.most_nvlinks_of_pair;
  const std::string pair = machine.nvlinks_of_pair == 0 ? ""
                           : is_even
                               ? fmt::format(", {} between every two", machine.nvlinks_of_pair)
                               : fmt::format(", {} to {} between every two",
                                             machine.nvlinks_of_pair, machine.most_nvlinks_of_pair);
  // 12 links are those of generation 3 alone, and 6 between every two of many of generation 2.
  const int stated = std::max(machine.nvlinks, machine.most_nvlinks_of_pair);
  if (generation == 0 && stated == nvlinks_of_gpu[3]) generation = 3;
  if (generation == 0 && stated == nvlinks_of_gpu[2] && machine.gpus_per_node >= mesh_gpus)
    generation = 2;
  if (generation == 0)
    return {"",
            fmt::format("NVLink{}{}, and not told of which generation: 4 links are nvlink1, 6 "
                        "nvlink2, 12 nvlink3, 18 nvlink4 or nvlink5; give --device or --intra-link",
                        machine.nvlinks > 0 ? fmt::format(", {} of a GPU", machine.nvlinks) : "",
                        pair)};
  const int all = nvlinks_of_gpu[to_size(generation)];
  const std::string base = fmt::format("nvlink{}", generation);
  const NvlinkShare share(base, all);
  if (const int links = links_of_mesh(machine, all); links > 0)
    return {share.of_mesh(machine.gpus_per_node, machine.nvlinks_of_pair,
                          machine.most_nvlinks_of_pair, links),
            fmt::format("{} NVLinks of a GPU{}, and no switch", links, pair)};
  const int links = machine.nvlinks > 0 ? machine.nvlinks : is_even ? machine.nvlinks_of_pair : 0;
  if (links == 0)
    return {"", fmt::format(
                    "NVLink {}, and not told how many of a GPU's {} links; give --intra-link {} "
                    "if it is all of them",
                    generation, all, base)};
  if (links > all)
    return {"",
            fmt::format("{} NVLinks of a GPU, and {} has {}; give --intra-link", links, base, all)};
  return {share.of_gpu(links), fmt::format("{} NVLinks of a GPU{}", links, pair)};
}

Answer mesh(const ImportedMachine& machine) {
  if (machine.gpus_per_node == mesh_gpus && machine.nvlinks == nvlinks_of_gpu[1])
    return {"nvlink1-mesh",
            "4 NVLinks of each of 8 GPUs, some two of which none joins: a cube mesh"};
  if (machine.gpus_per_node == mesh_gpus && machine.nvlinks == nvlinks_of_gpu[2])
    return {"nvlink2-mesh",
            "6 NVLinks of each of 8 GPUs, some two of which none joins: a cube mesh"};
  return {"",
          "NVLink joins some of the GPUs only, and no link of the catalogue is that; give "
          "--intra-link, or a link of your own"};
}

bool has_peer_access(const std::string& device) {
  return device.empty() || models::catalog_device(device).has_peer_access;
}

Answer pcie(const ImportedMachine& machine, const std::string& device) {
  const bool has_access = has_peer_access(device);
  const bool staged = machine.inside == Inside::host_memory || !has_access;
  const std::string way =
      !has_access                ? fmt::format("PCI Express, and {} have no peer access", device)
      : staged                   ? "through the host's memory (SHM)"
      : machine.farthest.empty() ? "PCI Express"
                                 : "PCI Express, " + machine.farthest + " at the farthest";
  constexpr int full = 16;
  if (machine.pcie_width > 0 && machine.pcie_width != full)
    return {"", fmt::format("{}, x{}: the catalogue has x16 only; give --intra-link", way,
                            machine.pcie_width)};
  const int generation = machine.pcie_generation;
  const std::string across = machine.farthest == "SYS" && generation == 3 ? "-2s" : "";
  if (staged && generation >= 3 && generation <= 5)
    return {fmt::format("pcie{}-staged", generation), way};
  if (!staged && generation >= 3 && generation <= 5)
    return {fmt::format("pcie{}-x16{}", generation, across),
            way +
                "; whether GPUs reach each other's memory is not told (nvidia-smi topo -p2p r): "
                "where they do not, pcie3-staged, pcie4-staged or pcie5-staged"};
  return {"",
          fmt::format("{}, and not told of which generation: give --intra-link {}", way,
                      staged ? "pcie3-staged, pcie4-staged or pcie5-staged"
                             : "pcie3-x16 (pcie3-x16-2s across sockets), pcie4-x16 or pcie5-x16")};
}

// The catalogue has the links of eight GPUs of a node.
Answer xgmi(const ImportedMachine& machine, const std::string& device) {
  static const std::map<std::string, std::string> links = {{"mi250x", "xgmi-mi250x"},
                                                           {"mi300x", "xgmi-mi300x"},
                                                           {"mi325x", "xgmi-mi300x"},
                                                           {"mi355x", "xgmi-mi355x"}};
  constexpr int gpus = 8;
  const auto found = links.find(device);
  if (found != links.end() && machine.gpus_per_node == gpus)
    return {found->second, "XGMI joins every two GPUs"};
  return {"",
          "XGMI joins every two GPUs; give --device (mi250x, mi300x, mi325x or mi355x, of 8 on a "
          "node), --intra-link, or a link of your own"};
}

Answer inside(const ImportedMachine& machine, const std::string& device) {
  switch (machine.inside) {
    case Inside::nvlink:
      return nvlink(machine, device);
    case Inside::nvlink_mesh:
      return mesh(machine);
    case Inside::nvlink_partly:
      return {"",
              "NVLink joins some of the GPUs only, and no link of the catalogue is that; give "
              "--intra-link, or a link of your own"};
    case Inside::xgmi:
      return xgmi(machine, device);
    case Inside::xgmi_partly:
      return {"",
              "XGMI joins GPUs of a hive, PCI Express the hives, and no link of the catalogue is "
              "that; give --intra-link, or a link of your own"};
    case Inside::pcie:
    case Inside::host_memory:
      return pcie(machine, device);
    case Inside::unknown:
      break;
  }
  return {"", "what joins the GPUs of a node is not told; give --intra-link"};
}

// Refuses a link of --intra-link that the file says is not there, or not between all GPUs.
void check_intra(const ImportedMachine& machine, const MachineContext& context) {
  if (context.intra.empty()) return;
  const models::Link link = models::catalog_link(context.intra);
  const auto refuse = [&](const std::string& why) {
    throw InputError({"--intra-link"},
                     fmt::format("{}, and in {} {}", context.intra, context.file, why),
                     "leave it out");
  };
  const bool is_nvlink = link.is(models::LinkKind::nvlink);
  const bool has_no_nvlink =
      machine.inside == Inside::pcie || machine.inside == Inside::host_memory ||
      machine.inside == Inside::xgmi || machine.inside == Inside::xgmi_partly;
  const bool has_nvlink = machine.inside == Inside::nvlink || machine.inside == Inside::nvlink_mesh;
  if (is_nvlink && has_no_nvlink) refuse("no GPU has NVLink");
  const bool has_no_xgmi = has_nvlink || machine.inside == Inside::pcie ||
                           machine.inside == Inside::host_memory ||
                           machine.inside == Inside::nvlink_partly;
  if (link.is(models::LinkKind::xgmi) && has_no_xgmi) refuse("no GPU has XGMI");
  if (is_nvlink && !machine.without_nvlink.empty())
    refuse(machine.without_nvlink + " has no NVLink");
  if (!is_nvlink && link.kind && has_nvlink) refuse("NVLink joins the GPUs");
}

std::string_view kind_name(NicKind kind) {
  switch (kind) {
    case NicKind::infiniband:
      return "InfiniBand";
    case NicKind::roce:
      return "RoCE";
    case NicKind::sockets:
      return "TCP";
    case NicKind::efa:
      return "EFA";
    case NicKind::unknown:
      break;
  }
  return "of a kind that is not told, and";
}

// The link of the catalogue, by its kind and nominal rate; empty if there is none.
std::string nic_link(NicKind kind, double gbit) {
  static const std::map<std::pair<NicKind, int>, std::string> links = {
      {{NicKind::infiniband, 32}, "infiniband-qdr"},
      {{NicKind::infiniband, 40}, "infiniband-qdr"},
      {{NicKind::infiniband, 54}, "infiniband-fdr"},
      {{NicKind::infiniband, 56}, "infiniband-fdr"},
      {{NicKind::infiniband, 100}, "infiniband-edr"},
      {{NicKind::infiniband, 200}, "infiniband-hdr"},
      {{NicKind::infiniband, 400}, "infiniband-ndr"},
      {{NicKind::infiniband, 800}, "infiniband-xdr"},
      {{NicKind::roce, 25}, "roce-25g"},
      {{NicKind::roce, 50}, "roce-50g"},
      {{NicKind::roce, 100}, "roce-100g"},
      {{NicKind::roce, 200}, "roce-200g"},
      {{NicKind::roce, 400}, "roce-400g"},
      {{NicKind::efa, 100}, "efa-v2-100g"},
      {{NicKind::efa, 200}, "efa-v3-200g"},
      {{NicKind::efa, 400}, "efa-v4-400g"},
      {{NicKind::sockets, 10}, "tcp-10g"},
      {{NicKind::sockets, 25}, "tcp-25g"},
      {{NicKind::sockets, 32}, "tcp-32g"},
      {{NicKind::sockets, 40}, "tcp-40g"},
      {{NicKind::sockets, 50}, "tcp-50g"},
      {{NicKind::sockets, 100}, "tcp-100g"}};
  if (gbit <= 0 || gbit > 1e6) return {};
  const auto found = links.find({kind, static_cast<int>(std::lround(gbit))});
  return found == links.end() ? std::string() : found->second;
}

// Three and more NICs behind one PCIe bridge, none of them beside a GPU, are most likely ports or virtual
// functions of one adapter, which has the rate of one.
bool count_adapters(std::vector<ImportedNic>& nics, std::string& why) {
  constexpr int least_functions = 3;
  std::map<int, int> functions;
  for (const ImportedNic& nic : nics) {
    if (nic.adapter >= 0 && !nic.is_beside_gpu()) ++functions[nic.adapter];
  }
  const auto is_function = [&](const ImportedNic& nic) {
    const auto found = functions.find(nic.adapter);
    return found != functions.end() && !nic.is_beside_gpu() && found->second >= least_functions;
  };
  std::vector<ImportedNic> counted;
  std::set<int> seen;
  for (const ImportedNic& nic : nics) {
    if (!is_function(nic) || seen.insert(nic.adapter).second) counted.push_back(nic);
  }
  if (counted.size() == nics.size()) return false;
  why += fmt::format(
      "; {} stand behind one PCIe bridge (PIX), and count as {} adapter{} with ports or "
      "virtual functions",
      nics.size(), counted.size(), counted.size() == 1 ? "" : "s");
  nics = std::move(counted);
  return true;
}

// The NICs that count: the fastest ones; where rates are not told, those beside a GPU.
std::vector<ImportedNic> counted(const std::vector<ImportedNic>& nics, std::string& why) {
  double fastest = 0;
  for (const ImportedNic& nic : nics) fastest = std::max(fastest, nic.gbit_per_s);
  std::vector<ImportedNic> fast;
  std::vector<ImportedNic> beside;
  for (const ImportedNic& nic : nics) {
    if (nic.gbit_per_s == fastest) fast.push_back(nic);
    if (nic.gbit_per_s == fastest && nic.is_beside_gpu()) beside.push_back(nic);
  }
  const bool by_place = fastest == 0 && !beside.empty();
  std::vector<ImportedNic>& taken = by_place ? beside : fast;
  if (!by_place && count_adapters(taken, why)) return taken;
  if (taken.size() < nics.size())
    why +=
        fmt::format("; {} of {} NICs count, {}", taken.size(), nics.size(),
                    by_place ? "which stand beside a GPU (PIX or PXB)" : "which are the fastest");
  return taken;
}

// The key that says how far NICs stand from GPUs, where a reader would take it otherwise: that of the
// farthest, because all of them carry an all-reduce.
std::string way_to_gpus(const std::vector<ImportedNic>& nics, int gpus) {
  std::optional<models::NicDistance> farthest = models::NicDistance::pix;
  bool has_gpudirect = true;
  for (const ImportedNic& nic : nics) {
    has_gpudirect = has_gpudirect && nic.gpudirect.value_or(false);
    farthest = farthest && nic.distance ? std::max(farthest, nic.distance) : std::nullopt;
    if (nic.kind == NicKind::sockets) return "";
  }
  const bool is_expected = std::ssize(nics) >= gpus;
  if (farthest && (!is_expected || *farthest > models::NicDistance::pxb))
    return fmt::format(", distance: {}", name_in(models::nic_distances, *farthest));
  return has_gpudirect && !is_expected ? ", gpudirect: true" : "";
}

Answer nic(const ImportedMachine& machine, const MachineContext& context) {
  if (machine.nics.empty()) {
    if (context.nic.empty()) return {"", "no NIC is in the file; give --nic"};
    return {context.nic, "of --nic; the file shows no NIC, so one a node"};
  }
  std::string why;
  const std::vector<ImportedNic> nics = counted(machine.nics, why);
  const ImportedNic& first = nics.front();
  const bool one_kind = std::all_of(
      nics.begin(), nics.end(), [&](const ImportedNic& other) { return other.kind == first.kind; });
  std::string names;
  constexpr std::size_t shown = 8;
  for (std::size_t i = 0; i < std::min(nics.size(), shown); ++i)
    names += (i == 0 ? "" : ", ") + nics[i].name;
  if (nics.size() > shown) names += ", ...";
  std::string base = context.nic;
  // The catalogue has the first EFA, of p3dn and p4d, as all NICs of a node together.
  constexpr std::size_t most_together = 4;
  const bool together = one_kind && first.kind == NicKind::efa && first.gbit_per_s == 100 &&
                        (nics.size() == 1 || nics.size() == most_together);
  if (base.empty() && together)
    base = nics.size() == 1 ? "efa-100g" : "efa-400g";
  else if (base.empty() && one_kind)
    base = nic_link(first.kind, first.gbit_per_s);
  const std::string rate = first.gbit_per_s > 0 ? fmt::format("{:g} Gbit/s", first.gbit_per_s)
                                                : "at a rate that is not told";
  const std::string told =
      fmt::format("{} NIC{} ({}), {} {}{}", nics.size(), nics.size() == 1 ? "" : "s", names,
                  one_kind ? kind_name(first.kind) : "of several kinds", rate, why);
  if (base.empty())
    return {"",
            told + (first.gbit_per_s > 0 && first.kind != NicKind::unknown && one_kind
                        ? ", which no link of the catalogue is; give --nic, or a link of your own"
                        : "; give --nic")};
  const bool without = std::any_of(nics.begin(), nics.end(), [](const ImportedNic& other) {
    return other.kind != NicKind::sockets && other.gpudirect && !*other.gpudirect;
  });
  const std::string keys =
      (nics.size() > 1 && !together ? fmt::format(", count: {}", nics.size()) : "") +
      (without ? ", gpudirect: false" : way_to_gpus(nics, machine.gpus_per_node));
  const std::string value = keys.empty() ? base : fmt::format("{{base: {}{}}}", base, keys);
  return {value, told + (context.nic.empty() ? "" : "; the link is that of --nic")};
}

Answer device(const ImportedMachine& machine, const MachineContext& context) {
  if (!context.device.empty() && !machine.device.empty() && context.device != machine.device)
    throw InputError(
        {"--device"},
        fmt::format("{}, and {} says {}", context.device, context.file, machine.device),
        "leave it out");
  if (!machine.device.empty()) return {machine.device, machine.device_as_written};
  if (!context.device.empty()) return {context.device, "of --device"};
  const std::string alike = gpus_of_capability(machine.compute_capability);
  if (!machine.device_as_written.empty())
    return {"",
            fmt::format("{}, which is not in the catalogue; give --device, or a device of your own",
                        machine.device_as_written)};
  if (machine.compute_capability > 0)
    return {"", fmt::format("of compute capability {}.{}{}; give --device",
                            machine.compute_capability / 10, machine.compute_capability % 10,
                            alike.empty() ? "" : ": " + alike)};
  return {"", "the GPUs are not named; give --device"};
}

Answer nodes(const ImportedMachine& machine, const MachineContext& context) {
  if (machine.nodes > 0 && context.nodes > 0 && machine.nodes != context.nodes)
    throw InputError({"--nodes"},
                     fmt::format("{}, and {} says {}", context.nodes, context.file, machine.nodes),
                     "leave it out");
  if (machine.nodes > 0) return {std::to_string(machine.nodes), ""};
  if (context.nodes > 0) return {std::to_string(context.nodes), "of --nodes"};
  return {"1", "the file is of one node; --nodes says how many there are"};
}

// A text in YAML's double quotes.
std::string quoted(std::string text) {
  std::replace(text.begin(), text.end(), '"', '\'');
  std::replace(text.begin(), text.end(), '\\', '/');
  return '"' + text + '"';
}

}  // namespace

ClusterDescription cluster_description(const ImportedMachine& machine,
                                       const MachineContext& context) {
  // Names that are not in the catalogue are refused before they get into the description.
  const auto check = [](const char* option, const std::string& name, auto find) {
    try {
      if (!name.empty()) (void)find(name);
    } catch (const InputError& error) {
      throw error.at({option});
    }
  };
  check("--device", context.device, models::catalog_device);
  check("--nic", context.nic, models::catalog_link);
  check("--intra-link", context.intra, models::catalog_link);
  check_intra(machine, context);
  ClusterDescription result;
  result.yaml = fmt::format("cluster: {}\nsource: {}\n", quoted(printable(context.name)),
                            quoted(fmt::format("{} ({})", printable(context.file), context.tool)));
  const auto add = [&](const char* key, const Answer& answer, bool needed) {
    const std::string why = answer.why.empty() ? "" : "  # " + answer.why;
    if (!answer.value.empty()) {
      result.yaml += fmt::format("{}: {}{}\n", key, answer.value, why);
    } else {
      result.yaml += fmt::format("# {}:{}\n", key, why);
      if (needed) result.missing.emplace_back(key);
    }
  };
  const Answer count = nodes(machine, context);
  const Answer gpu = device(machine, context);
  add("nodes", count, true);
  const std::string per_node =
      machine.gpus_per_node > 0 ? std::to_string(machine.gpus_per_node) : std::string();
  add("ranks_per_node", {per_node, per_node.empty() ? "not told" : ""}, true);
  if (machine.hosts_per_node > 1)
    add("hosts_per_node", {std::to_string(machine.hosts_per_node), "one NVLink domain (MNNVL)"},
        false);
  add("device", gpu, true);
  add("intra",
      context.intra.empty() ? inside(machine, gpu.value) : Answer{context.intra, "of --intra-link"},
      true);
  add("nic", nic(machine, context), count.value != "1");
  // A complete description is one that the reader of clusters takes.
  if (result.missing.empty()) (void)models::parse_cluster_yaml(result.yaml, context.file);
  return result;
}

}  // namespace paceline::calibration
