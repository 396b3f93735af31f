// Blocks of cooperative kernels: each thread is a fiber, and runs until it comes to a barrier.
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <vector>

#include "tests/support/cuda_on_host/kernels.h"
#include "tests/support/cuda_on_host/permutation.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace cuda_on_host {
namespace {

namespace context = boost::context;
using paceline::runtime::cuda::BlockOnHost;

constexpr std::size_t stack_bytes = std::size_t{64} << 10;
constexpr unsigned warp_threads = 32;

// The address sanitizer wants to know of each switch between stacks.
class Stack {
 public:
  Stack() = default;
  Stack(const void* bottom, std::size_t bytes) : bottom_(bottom), bytes_(bytes) {}

  // Is called on another stack, right before the switch to this one. `left` is that of the caller.
  void before_switch(Stack& left, bool left_for_ever = false) const {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(left_for_ever ? nullptr : &left.fake_, bottom_, bytes_);
#else
    static_cast<void>(left), static_cast<void>(left_for_ever);
#endif
  }
  // Is called on this stack, right after the switch; tells where the switch came from.
  void after_switch(Stack& from) const {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake_, &from.bottom_, &from.bytes_);
#else
    static_cast<void>(from);
#endif
  }

 private:
  const void* bottom_ = nullptr;
  std::size_t bytes_ = 0;
  void* fake_ = nullptr;
};

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
    for (unsigned i = 0; i < launch.threads; ++i) {
      const context::stack_context memory = stacks.allocate();
      threads_[i].stack = Stack(static_cast<std::byte*>(memory.sp) - memory.size, memory.size);
      threads_[i].fiber = context::fiber(
          std::allocator_arg, context::preallocated(memory.sp, memory.size, memory), stacks,
          [this, &kernel, bound, launch, block, shared, i](context::fiber&& scheduler) {
            Thread& me = threads_[i];
            me.stack.after_switch(scheduler_);
            me.scheduler = std::move(scheduler);
            try {
              if (!abandoned_)
                kernel.body.thread(bound, i, launch.threads, block, launch.blocks, shared, &host_);
            } catch (const Abandoned&) {
            }
            me.at = At::end;
            scheduler_.before_switch(me.stack, true);
            return std::move(me.scheduler);
          });
    }
  }

  ~CooperativeBlock() {
    abandoned_ = true;
    for (unsigned i = 0; i < count(); ++i)
      if (threads_[i].at != At::end) resume_one(i);
  }
  CooperativeBlock(const CooperativeBlock&) = delete;
  CooperativeBlock& operator=(const CooperativeBlock&) = delete;

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
  struct Abandoned {};  // ends a thread that waits at a barrier of a block that failed
  struct Thread {
    context::fiber fiber;
    context::fiber scheduler;
    Stack stack;
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
    Thread& me = threads_[current_];
    me.at = where;
    scheduler_.before_switch(me.stack);
    me.scheduler = std::move(me.scheduler).resume();
    me.stack.after_switch(scheduler_);
    if (abandoned_) throw Abandoned{};
  }

  void resume_one(unsigned i) {
    current_ = i;
    Stack from;  // is known already
    threads_[i].stack.before_switch(scheduler_);
    threads_[i].fiber = std::move(threads_[i].fiber).resume();
    scheduler_.after_switch(from);
  }

  // In an order that the seed draws.
  void resume(unsigned first, unsigned end) {
    Permutation(end - first).for_each([&](std::uint64_t i) {
      resume_one(first + static_cast<unsigned>(i));
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
  Stack scheduler_;
  unsigned current_ = 0;
  bool abandoned_ = false;
};

}  // namespace

void run_cooperative_block(const Kernel& kernel, void* bound, const Launch& launch, unsigned block,
                           std::byte* shared) {
  CooperativeBlock(kernel, bound, launch, block, shared).run();
}

}  // namespace cuda_on_host
