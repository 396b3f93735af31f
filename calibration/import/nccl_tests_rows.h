// The rows of a run of nccl-tests, from its text or its JSON, as all-reduces by size. Private to the
// readers of both.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "calibration/import/imported.h"
#include "calibration/import/nccl_tests_devices.h"
#include "models/base/error.h"

namespace paceline::calibration {

struct NcclTestsRow {
  Bytes bytes;
  Seconds time;
  std::string type;       // "float"
  std::string operation;  // "sum"
  bool in_place = true;
  double wrong = 0;  // wrong elements; in older versions a relative error
  double algbw = 0;  // GB/s; 0: not known
  double busbw = 0;
};

class NcclTestsRows {
 public:
  // Rows of 0 bytes are counted and left out. Throws InputError at `place` after 100,000 rows.
  void add(const NcclTestsRow& row, const InputPlace& place);
  // The curves of the types that gradients travel as, each of one reduction (a sum where there is one), and
  // remarks on what was left out. Where the devices do not tell the ranks, the ratio of the largest busbw
  // to its algbw does, if two decimals are enough for one number alone. Throws InputError if no row is
  // left, if that ratio is not that of an all-reduce over this many ranks, or if its time is not that of
  // its algbw.
  [[nodiscard]] Imported finish(const std::string& version, NcclTestsRun run,
                                const std::string& file);

 private:
  void check_bus_bandwidth(int ranks) const;
  void check_time() const;
  // The numbers of ranks that the bandwidths allow.
  [[nodiscard]] Count ranks_of_bandwidth() const;
  // The reduction whose rows are taken, where a type has rows of several.
  [[nodiscard]] std::string reduction_of(const std::string& type) const;

  // The key is the number type and the reduction: "float" and "sum".
  std::map<std::pair<std::string, std::string>, ImportedCurve> curves_;
  std::size_t rows_ = 0;
  std::size_t empty_ = 0;
  std::size_t wrong_ = 0;
  // Both belong to the row with the largest algbw, whose few decimals are the most precise.
  double algbw_ = 0;
  double busbw_ = 0;
  double seconds_by_algbw_ = 0;  // its time over the one that its size takes at this algbw
  InputPlace fastest_;
};

}  // namespace paceline::calibration
