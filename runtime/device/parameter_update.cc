// Tests: tests/runtime/training/optimizer_test.cc.
#include "runtime/device/parameter_update.h"

#include <algorithm>
#include <numeric>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::runtime {
namespace {

// 64 KiB of each array. The results depend on it: norms are sums of the blocks' sums.
constexpr std::size_t block_elements = 16384;
// Below this, starting another thread takes longer than its share of the work.
constexpr std::size_t least_elements_per_thread = 1 << 18;

}  // namespace

UpdateTable::UpdateTable(std::vector<UpdatedTensor> tensors, bool lars, int threads)
    : identity_(std::make_shared<char>()), tensors_(std::move(tensors)), lars_(lars) {
  PACELINE_ASSERT(threads >= 1, "somebody works");
  for (const UpdatedTensor& t : tensors_) elements_ = std::max(elements_, t.offset + t.elements);
  const std::size_t most = std::max<std::size_t>(1, elements_ / least_elements_per_thread);
  workers_ = std::min(to_size(threads), most);
  cut();
}

// With LARS a tensor belongs to one worker, who finds it in the cache again after its norms: the
// largest first, each to the worker with the least so far. One that is more than half of a worker's
// part is shared, as all are without LARS.
void UpdateTable::cut() {
  std::vector<std::size_t> order(tensors_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  own_.resize(workers_);
  std::vector<std::size_t> load(workers_);
  if (lars_) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return tensors_[a].elements > tensors_[b].elements;
    });
  }
  for (const std::size_t tensor : order) {
    const std::size_t elements = tensors_[tensor].elements;
    const bool is_large = workers_ > 1 && elements > elements_ / workers_ / 2;
    if (!lars_ || is_large) {
      add_blocks(tensor, shared_);
      continue;
    }
    const auto worker = to_size(std::min_element(load.begin(), load.end()) - load.begin());
    load[worker] += elements;
    add_blocks(tensor, own_[worker].emplace_back());
  }
}

void UpdateTable::add_blocks(std::size_t tensor, std::vector<Block>& blocks) const {
  const auto [first, elements, decay, has_own_rate] = tensors_[tensor];
  for (std::size_t at = 0; at < elements; at += block_elements)
    blocks.push_back({tensor, first + at, std::min(block_elements, elements - at)});
}

}  // namespace paceline::runtime
