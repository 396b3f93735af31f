// What the update of all parameters needs in memory of a CUDA device: its table, and room for norms
// and rates. Made at the first update with a table, and kept for as long as the table lives.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "runtime/device/cuda/bodies/update_table.h"
#include "runtime/device/device.h"

namespace paceline::runtime::cuda {

// Thread safety: any thread may call.
class UpdateWorkspaces {
 public:
  // The device, whose number is `index`, outlives this.
  UpdateWorkspaces(Device& device, int index) : device_(device), index_(index) {}

  // The first call for a table allocates, copies and waits. Throws RunError.
  [[nodiscard]] const UpdateTables& of(const UpdateTable& table);

 private:
  struct Workspace {
    Memory memory;
    UpdateTables tables;
  };
  [[nodiscard]] Workspace make(const UpdateTable& table);

  Device& device_;
  int index_;
  std::mutex mutex_;
  // By the tables' identities. Those of tables that are gone are dropped when another is made.
  std::map<std::weak_ptr<const void>, Workspace, std::owner_less<>> workspaces_;
};

}  // namespace paceline::runtime::cuda
