// The devices that a run of nccl-tests lists, and what they tell of its ranks and nodes. Private to the
// readers of its text and its JSON.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/import/imported.h"

namespace paceline::calibration {

struct NcclTestsRun {
  Count ranks = {};
  Count nodes = {};
  std::vector<std::string> remarks = {};
};

class NcclTestsDevices {
 public:
  // `device` tells devices of one machine apart: number and bus address. Host and device are empty where the
  // file does not say.
  void add(int rank, std::string_view host, std::string_view device);
  [[nodiscard]] bool empty() const { return devices_.empty(); }
  [[nodiscard]] bool repeated() const { return repeated_; }
  [[nodiscard]] int count() const { return static_cast<int>(devices_.size()); }
  // Whether each rank is a multiple of this.
  [[nodiscard]] bool are_multiples_of(int step) const;

  // `per_listed` ranks stand for each one that is listed. A list that does not begin with rank 0, or
  // has gaps, was copied in part, and tells neither ranks nor nodes. A list without hosts does not tell nodes.
  // Two ranks on one device of one host are on two machines with one name, because NCCL refuses two ranks on
  // a device. O(ranks).
  [[nodiscard]] NcclTestsRun told(int per_listed = 1) const;

 private:
  struct Device {
    std::string host;
    std::string name;
  };
  // The number of machines that the listed ranks are on.
  [[nodiscard]] Count machines(std::vector<std::string>& remarks) const;

  std::map<int, Device> devices_;  // by rank
  bool repeated_ = false;          // a rank is listed twice
};

}  // namespace paceline::calibration
