// The rows of a run of nccl-tests, from its text or its JSON, as all-reduces by size. Private to the
// readers of both.
#pragma once

#include <map>
#include <set>
#include <string>

#include "calibration/import/imported.h"
#include "models/base/error.h"

namespace paceline::calibration {

// The device of each rank, as far as the file lists them.
struct NcclTestsDevices {
  std::set<int> ranks = {};
  std::set<std::string, std::less<>> nodes = {};
  bool repeated = false;  // a rank is listed twice
};

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
  // The curves of the types that gradients travel as, and remarks on what was left out. `ranks` is 0
  // where the file does not say; then the ratio of the largest busbw to its algbw tells them, if two
  // decimals are enough for one number alone. Throws InputError if no row is left, if that ratio is
  // not that of an all-reduce over this many ranks, or if its time is not that of its algbw.
  [[nodiscard]] Imported finish(const std::string& version, int ranks, bool between_nodes,
                                const std::string& file);

 private:
  void check_bus_bandwidth(int ranks) const;
  void check_time() const;
  [[nodiscard]] int ranks_of_bandwidth() const;

  std::map<std::string, ImportedCurve, std::less<>> curves_;
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
