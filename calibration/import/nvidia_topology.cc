// Tests: tests/calibration/import_machine_test.cc.
#include "calibration/import/nvidia_topology.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "calibration/import/gpu_names.h"
#include "calibration/import/table_text.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::size_t most_devices = 1024;
// From the nearest to the farthest. SOC is what drivers before 384 called SYS.
constexpr std::array<std::string_view, 5> paths = {"PIX", "PXB", "PHB", "NODE", "SYS"};

bool is_gpu(std::string_view word) {
  return word.starts_with("GPU") && is_whole_number(word.substr(3));
}

bool is_path(std::string_view word) {
  return word == "X" || word == "SOC" ||
         (word.starts_with("NV") && is_whole_number(word.substr(2))) ||
         std::find(paths.begin(), paths.end(), word) != paths.end();
}

// The names of a word: of "NIC11NIC12", which has lost the blank between them, two. Names of devices end in
// digits, and begin with one of these.
std::vector<std::string_view> names_in_word(std::string_view word) {
  constexpr std::array<std::string_view, 6> beginnings = {"GPU",   "NIC",     "mlx4_",
                                                          "mlx5_", "bnxt_re", "rocep"};
  std::vector<std::string_view> names;
  std::size_t begin = 0;
  for (std::size_t at = 1; at < word.size(); ++at) {
    const bool ends = word[at - 1] >= '0' && word[at - 1] <= '9';
    const bool begins = std::any_of(beginnings.begin(), beginnings.end(), [&](std::string_view b) {
      return word.substr(at).starts_with(b);
    });
    if (!ends || !begins) continue;
    names.push_back(word.substr(begin, at - begin));
    begin = at;
  }
  names.push_back(word.substr(begin));
  return names;
}

Words with_names_apart(const Words& row) {
  Words parted;
  for (const std::string_view word : row) {
    for (const std::string_view name : names_in_word(word)) parted.push_back(name);
  }
  return parted;
}

// "GPU0 GPU1 ... CPU Affinity", or of a single GPU "GPU0 mlx5_0 CPU Affinity".
bool is_header(const Words& row) {
  return row.size() > 1 && is_gpu(row[0]) && !is_path(row[1]) &&
         (is_gpu(row[1]) || std::find(row.begin(), row.end(), "Affinity") != row.end());
}

// The line without what underlines and colours it on a terminal: "ESC[", numbers, "m". Where a text
// was copied, ESC may be lost of it.
std::string without_escapes(std::string_view line) {
  std::string plain;
  while (!line.empty()) {
    const std::size_t open = line.starts_with("\x1b[") ? 2 : line.starts_with("[") ? 1 : 0;
    const std::size_t end =
        open == 0 ? std::string_view::npos : line.find_first_not_of("0123456789;", open);
    if (end != std::string_view::npos && line[end] == 'm') {
      line.remove_prefix(end + 1);
    } else {
      plain += line.front();
      line.remove_prefix(1);
    }
  }
  return plain;
}

struct Cell {
  int nvlinks = 0;
  std::size_t path = 0;  // of `paths`
};

class Matrix {
 public:
  explicit Matrix(const std::string& file) : file_(file) {}

  void read(const TextLine& line) {
    const std::string plain = without_escapes(line.text);
    const Words row = words(plain);
    read_product(plain);
    if (columns_.empty()) {
      const Words header = with_names_apart(row);
      if (is_header(header)) read_header(header, line.number);
    } else if (!row.empty() && is_gpu(row[0]) && rows_.size() < gpus_) {
      read_row(row, line.number);
    } else if (rows_.size() >= gpus_ && row.size() > 2 && is_path(row[1])) {
      read_nic_row(row, line.number);
    } else if (row.size() == 2 && row[0].starts_with("NIC") && row[0].ends_with(':')) {
      names_[std::string(row[0].substr(0, row[0].size() - 1))] = printable(row[1]);
    }
  }

  Imported finish() {
    if (columns_.empty())
      throw InputError({file_}, "there is no matrix of nvidia-smi topo -m",
                       "its first line is GPU0 GPU1 ... CPU Affinity");
    if (rows_.size() < gpus_)
      throw InputError({file_}, fmt::format("{} of {} rows of GPUs", rows_.size(), gpus_),
                       "give all of what nvidia-smi topo -m printed");
    if (!nic_rows_.empty() && gpus_ + nic_rows_.size() < columns_.size())
      throw InputError({file_},
                       fmt::format("{} rows of NICs, where the header has {}", nic_rows_.size(),
                                   columns_.size() - gpus_),
                       "give all of what nvidia-smi topo -m printed");
    Imported imported{.tool = "nvidia-smi topo -m", .version = ""};
    ImportedMachine machine;
    machine.gpus_per_node = static_cast<int>(gpus_);
    take_gpus(machine, imported);
    take_nics(machine);
    if (products_.size() == 1) {
      machine.device_as_written = *products_.begin();
      machine.device = gpu_of_product(machine.device_as_written);
    }
    imported.remarks.push_back(fmt::format(
        "the matrix names neither {}the rate of a NIC nor the generation of PCI Express",
        products_.size() == 1 ? "" : "the GPUs nor "));
    imported.machine = machine;
    return imported;
  }

 private:
  // "GPU 0: NVIDIA A100-SXM4-40GB (UUID: ...)" of nvidia-smi -L, and "GPU 0,1,2,3: NVIDIA GB200" of
  // reports of PyTorch's environment, which stand beside the matrix and are no part of it.
  void read_product(std::string_view line) {
    constexpr std::string_view mark = "GPU ";
    const std::size_t colon = line.find(": ");
    if (!line.starts_with(mark) || colon == std::string_view::npos) return;
    const std::string_view numbers = line.substr(mark.size(), colon - mark.size());
    if (numbers.empty() || numbers.find_first_not_of("0123456789,") != std::string_view::npos)
      return;
    std::string_view product = line.substr(colon + 2);
    product = product.substr(0, product.find(" (UUID"));
    product = product.substr(0, product.find_last_not_of(" \t\r") + 1);
    if (!product.empty()) products_.insert(printable(product));
  }

  void read_header(const Words& row, int line) {
    for (const std::string_view word : row) {
      if (word == "CPU" || word == "NUMA") break;
      columns_.emplace_back(printable(word));
    }
    if (columns_.size() > most_devices)
      throw InputError({file_, line}, fmt::format("{} columns", columns_.size()),
                       fmt::format("give a matrix of up to {}", most_devices));
    while (gpus_ < columns_.size() && is_gpu(columns_[gpus_])) ++gpus_;
  }

  // A row has the name of its column, and a cell for each.
  void check_row(const Words& row, std::size_t index, int line) const {
    if (row[0] != columns_[index])
      throw InputError({file_, line}, "the row of " + in_quotes(row[0]),
                       "that of " + columns_[index] + " is due here");
    if (row.size() < columns_.size() + 1)
      throw InputError(
          {file_, line},
          fmt::format("{} cells, where the header has {}", row.size() - 1, columns_.size()),
          "give the matrix as nvidia-smi prints it");
  }

  // A row of a NIC, behind those of the GPUs: its cells are its paths to all devices.
  void read_nic_row(const Words& row, int line) {
    const std::size_t index = gpus_ + nic_rows_.size();
    if (index >= columns_.size())
      throw InputError({file_, line},
                       fmt::format("the row of {}, where the header has {} NICs", in_quotes(row[0]),
                                   columns_.size() - gpus_),
                       "give the matrix as nvidia-smi prints it");
    check_row(row, index, line);
    std::vector<Cell> cells;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      cells.push_back(row[i + 1] == "X" ? Cell{} : cell(row[i + 1], line));
    nic_rows_.push_back(std::move(cells));
  }

  void read_row(const Words& row, int line) {
    check_row(row, rows_.size(), line);
    std::vector<Cell> cells;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string_view word = row[i + 1];
      if ((word == "X") != (i == rows_.size()))
        throw InputError({file_, line}, in_quotes(word) + " in the column of " + columns_[i],
                         "X stands for the device itself, and nowhere else");
      cells.push_back(word == "X" ? Cell{} : cell(word, line));
      if (i < rows_.size() && !is_same(cells[i], rows_[i][rows_.size()]))
        throw InputError({file_, line},
                         fmt::format("{} from {} to {}, and another path back", word,
                                     columns_[rows_.size()], columns_[i]),
                         "give the matrix as nvidia-smi prints it");
    }
    rows_.push_back(std::move(cells));
  }

  static bool is_same(const Cell& a, const Cell& b) {
    return a.nvlinks == b.nvlinks && a.path == b.path;
  }

  [[nodiscard]] Cell cell(std::string_view word, int line) const {
    if (word.starts_with("NV") && is_whole_number(word.substr(2)) && word.size() <= 4) {
      const int links = static_cast<int>(*number(word.substr(2)));
      if (links > 0) return {links, 0};
    }
    const auto path = std::find(paths.begin(), paths.end(), word == "SOC" ? "SYS" : word);
    if (path == paths.end())
      throw InputError({file_, line}, in_quotes(word) + " is no path",
                       "a cell is X, NV#, PIX, PXB, PHB, NODE or SYS");
    return {0, to_size(path - paths.begin())};
  }

  void take_gpus(ImportedMachine& machine, Imported& imported) const {
    int least = 0;
    int most = 0;
    std::size_t joined = 0;
    std::size_t pairs = 0;
    std::size_t farthest = 0;
    std::vector<int> links(gpus_, 0);
    for (std::size_t a = 0; a < gpus_; ++a) {
      for (std::size_t b = 0; b < gpus_; ++b) {
        if (a == b) continue;
        const Cell& cell = rows_[a][b];
        ++pairs;
        links[a] += cell.nvlinks;
        least = pairs == 1 ? cell.nvlinks : std::min(least, cell.nvlinks);
        most = std::max(most, cell.nvlinks);
        if (cell.nvlinks > 0)
          ++joined;
        else
          farthest = std::max(farthest, cell.path);
      }
    }
    if (pairs == 0) return;
    const bool even = std::all_of(links.begin(), links.end(), [&](int n) { return n == links[0]; });
    if (joined == 0) {
      machine.inside = Inside::pcie;
    } else if (joined == pairs) {
      machine.inside = Inside::nvlink;
      machine.nvlinks_of_pair = least;
      machine.most_nvlinks_of_pair = most;
      if (least != most && even) machine.nvlinks = links[0];
    } else {
      machine.inside = even ? Inside::nvlink_mesh : Inside::nvlink_partly;
      if (even) machine.nvlinks = links[0];
    }
    const auto without = std::count(links.begin(), links.end(), 0);
    if (joined > 0 && without > 0) {
      std::string names;
      for (std::size_t gpu = 0; gpu < gpus_; ++gpu) {
        if (links[gpu] == 0) names += (names.empty() ? "" : ", ") + columns_[gpu];
      }
      machine.without_nvlink = names;
      imported.remarks.push_back(
          fmt::format("{} {} no NVLink, and the other {} GPUs have: NVLink may be down there "
                      "(nvidia-smi nvlink "
                      "-s -i N)",
                      names, without == 1 ? "has" : "have", gpus_ - to_size(without)));
    }
    if (joined < pairs) machine.farthest = paths[farthest];
  }

  void take_nics(ImportedMachine& machine) const {
    for (std::size_t column = gpus_; column < columns_.size(); ++column) {
      const auto named = names_.find(columns_[column]);
      ImportedNic nic{.name = named == names_.end() ? columns_[column] : named->second};
      for (const std::vector<Cell>& row : rows_) {
        const models::NicDistance distance = models::nic_distances[row[column].path].first;
        nic.distance = std::min(nic.distance.value_or(distance), distance);
      }
      nic.adapter = adapter_of(column - gpus_);
      machine.nics.push_back(nic);
    }
  }

  // The first of the NICs that are behind one and the same PCIe bridge with this one.
  [[nodiscard]] int adapter_of(std::size_t nic) const {
    if (nic >= nic_rows_.size()) return -1;
    for (std::size_t other = 0; other < nic; ++other) {
      const Cell& cell = nic_rows_[nic][gpus_ + other];
      if (cell.nvlinks == 0 && paths[cell.path] == "PIX") return static_cast<int>(other);
    }
    return static_cast<int>(nic);
  }

  const std::string& file_;
  std::vector<std::string> columns_;
  std::size_t gpus_ = 0;
  std::vector<std::vector<Cell>> rows_;
  std::vector<std::vector<Cell>> nic_rows_;
  std::map<std::string, std::string> names_;
  std::set<std::string> products_;
};

}  // namespace

bool looks_like_nvidia_topology(std::string_view text) {
  text = head_of(text);
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string plain = without_escapes(without_prefixes(text.substr(begin, end - begin)));
    if (is_header(with_names_apart(words(plain)))) return true;
    begin = end + 1;
  }
  return false;
}

Imported parse_nvidia_topology(std::string_view text, const std::string& file) {
  return read_lines<Matrix>(text, file);
}

}  // namespace paceline::calibration
