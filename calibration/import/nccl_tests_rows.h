// The rows of a run of nccl-tests, from its text or its JSON, as times of a collective by size. Private to
// the readers of both.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "calibration/import/imported.h"
#include "calibration/import/nccl_tests_devices.h"
#include "models/base/error.h"
#include "models/collective/catalogue.h"

namespace paceline::calibration {

// The results of a row that nccl-tests checked. It checks sends and receives out of place only. Their tables
// look like those of an all-gather otherwise.
enum class NcclTestsChecked { both, out_of_place, unknown };

struct NcclTestsRow {
  Bytes bytes;
  Seconds time;
  std::string type;       // "float"
  std::string operation;  // "sum"; "none" where nothing is reduced
  bool has_root = false;
  NcclTestsChecked checked = NcclTestsChecked::both;
  bool in_place = true;
  double wrong = 0;  // wrong elements; in older versions a relative error
  double algbw = 0;  // GB/s; 0: not known
  double busbw = 0;
};

// The collective of a program, "/opt/build/all_gather_perf", or of rccl-tests' JSON, "AllGather". Throws
// InputError at `place` for those that are no collective of ours, such as hypercube_perf.
[[nodiscard]] models::Collective collective_of_program(std::string_view name,
                                                       const InputPlace& place);
// "all_gather_perf".
[[nodiscard]] std::string program_of(models::Collective collective);

class NcclTestsRows {
 public:
  // Rows of 0 bytes are counted and left out. Throws InputError at `place` after 100,000 rows.
  void add(const NcclTestsRow& row, const InputPlace& place);
  // The curves of the types that gradients travel as, each of one reduction (a sum where there is one), and
  // remarks on what was left out. A table does not say which collective it is of: unless it is stated,
  // the root, the reduction and the ratio of the largest busbw to its algbw tell (doc/PERFORMANCE.md of
  // nccl-tests). Where the devices do not tell the ranks, that ratio does, if two decimals are enough for one
  // number alone. Throws InputError if no row is left, if the ratio is that of no collective, or not that of
  // the stated one over this many ranks, or if a time is not that of its algbw.
  [[nodiscard]] Imported finish(const std::string& version, NcclTestsRun run,
                                const std::string& file,
                                std::optional<models::Collective> stated = {});

 private:
  [[nodiscard]] bool is_ratio_known() const;
  [[nodiscard]] models::Collective told_collective(const Count& ranks) const;
  void check_bus_bandwidth(models::Collective collective, int ranks) const;
  void check_time() const;
  // The numbers of ranks that the bandwidths allow.
  [[nodiscard]] Count ranks_of_bandwidth(models::Collective collective) const;
  // The reduction whose rows are taken, where a type has rows of several.
  [[nodiscard]] std::string reduction_of(const std::string& type) const;

  // The key is the number type and the reduction: "float" and "sum".
  std::map<std::pair<std::string, std::string>, ImportedCurve> curves_;
  std::size_t rows_ = 0;
  std::size_t empty_ = 0;
  std::size_t wrong_ = 0;
  std::optional<bool> has_root_ = {};
  bool in_place_ = true;
  bool reduces_ = true;
  NcclTestsChecked checked_ = NcclTestsChecked::both;
  // Both belong to the row with the largest algbw, whose few decimals are the most precise.
  double algbw_ = 0;
  double busbw_ = 0;
  double seconds_by_algbw_ = 0;  // its time over the one that its size takes at this algbw
  InputPlace fastest_;
};

}  // namespace paceline::calibration
