// Blocks of cooperative kernels: each thread is a fiber, and runs until it comes to a barrier.
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <vector>

#include "tests/support/cuda_on_host/kernels.h"
#include "tests/support/cuda_on_host/permutation.h"

namespace cuda_on_host {
namespace {

namespace context = boost::context;
using paceline::runtime::cuda::BlockOnHost;

constexpr std::size_t stack_bytes = std::size_t{64} << 10;
constexpr unsigned warp_threads = 32;

class CooperativeBlock {
 public:
  CooperativeBlock(const Kernel& kernel, void* bound, const Launch& launch, unsigned block,
                   std::byte* shared)
      : threads_(launch.threads), slots_(BlockOnHost::slot_bytes * launch.threads) {
    host_.self = this;
    host_.sync = [](void* self) { static_cast<CooperativeBlock*>(self)->stop(At::barrier); };
    host_.sync_warp = [](void* self) { static_cast<CooperativeBlock*>(self)->stop(At::warp); };
    host_.slots = slots_.data();
    static thread_local context::pooled_fixedsize_stack stacks(stack_bytes);
    for (unsigned i = 0; i < launch.threads; ++i)
      threads_[i].fiber = context::fiber(
          std::allocator_arg, stacks,
          [this, &kernel, bound, launch, block, shared, i](context::fiber&& scheduler) {
            threads_[i].scheduler = std::move(scheduler);
            kernel.body.thread(bound, i, launch.threads, block, launch.blocks, shared, &host_);
            threads_[i].at = At::end;
            return std::move(threads_[i].scheduler);
          });
  }

  void run() {
    resume(0, count());
    for (;;) {
      if (resume_warps()) continue;
      const unsigned ended = at(At::end, 0, count());
      if (ended == count()) return;
      const unsigned at_barrier = at(At::barrier, 0, count());
      if (at_barrier != count())
        throw KernelFault{cudaErrorLaunchFailure,
                          "divergent barrier: " + std::to_string(at_barrier) + " of " +
                              std::to_string(count()) + " threads came to sync()"};
      resume(0, count());
    }
  }

 private:
  enum class At { start, warp, barrier, end };
  struct Thread {
    context::fiber fiber;
    context::fiber scheduler;
    At at = At::start;
  };

  [[nodiscard]] unsigned count() const { return static_cast<unsigned>(threads_.size()); }

  [[nodiscard]] unsigned at(At where, unsigned first, unsigned end) const {
    unsigned count = 0;
    for (unsigned i = first; i < end; ++i) count += threads_[i].at == where ? 1 : 0;
    return count;
  }

  // Called on a fiber.
  void stop(At where) {
    const unsigned me = current_;
    threads_[me].at = where;
    threads_[me].scheduler = std::move(threads_[me].scheduler).resume();
  }

  // In an order that the seed draws.
  void resume(unsigned first, unsigned end) {
    Permutation(end - first).for_each([&](std::uint64_t i) {
      current_ = first + static_cast<unsigned>(i);
      threads_[current_].fiber = std::move(threads_[current_].fiber).resume();
    });
  }

  // A warp goes on when all of its lanes wait for it.
  bool resume_warps() {
    bool any = false;
    for (unsigned first = 0; first < count(); first += warp_threads) {
      const unsigned waits = at(At::warp, first, first + warp_threads);
      if (waits == warp_threads) {
        resume(first, first + warp_threads);
        any = true;
      } else if (waits > 0) {
        throw KernelFault{cudaErrorLaunchFailure, "divergent shuffle: " + std::to_string(waits) +
                                                      " of 32 lanes came to it"};
      }
    }
    return any;
  }

  std::vector<Thread> threads_;
  std::vector<std::byte> slots_;
  BlockOnHost host_;
  unsigned current_ = 0;
};

}  // namespace

void run_cooperative_block(const Kernel& kernel, void* bound, const Launch& launch, unsigned block,
                           std::byte* shared) {
  CooperativeBlock(kernel, bound, launch, block, shared).run();
}

}  // namespace cuda_on_host
