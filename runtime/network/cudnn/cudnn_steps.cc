// Tests: tests/cuda/network/cudnn_steps_test.cc.
#include "runtime/network/cudnn/cudnn_steps.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/device/cuda/handle.h"
#include "runtime/network/cudnn/descriptor.h"
#include "runtime/network/cudnn/network_plans.h"

namespace paceline::runtime::cudnn {
namespace {

using models::NumberType;

struct DestroyHandle {
  void operator()(cudnnContext* handle) const { static_cast<void>(cudnnDestroy(handle)); }
};
using Handle = std::unique_ptr<cudnnContext, DestroyHandle>;

Handle make_handle(int device) {
  const cuda::CurrentDevice current(device);
  cudnnHandle_t handle = nullptr;
  check(cudnnCreate(&handle), "start cuDNN");
  return Handle(handle);
}

std::string version_text() {
  const std::int64_t version = cudnn_version();
  return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

// FNV-1a.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

// The stored plans of a device, and the file that they are kept in.
class PlanFile {
 public:
  PlanFile(PlanStore& store, std::string path) : store_(store), path_(std::move(path)) {
    if (path_.empty()) return;
    std::ifstream file(path_, std::ios::binary);
    if (!file) return;  // there is none yet
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    try {
      if (!store_.take(text, path_))
        notes_.push_back(path_ +
                         ": its plans are for another device, version of cuDNN or rules; "
                         "they are made anew");
    } catch (const InputError& error) {
      notes_.push_back(std::string(error.what()) + "; its plans are made anew");
    }
  }
  // Writes the plans if there are new ones. Other ranks may write the same file: each writes a whole.
  void write() {
    if (path_.empty() || store_.made() == written_) return;
    written_ = store_.made();
    const std::filesystem::path target(path_);
    const std::filesystem::path draft =
        fmt::format("{}.{}.{}", path_, ::getpid(), reinterpret_cast<std::uintptr_t>(this));
    std::error_code error;
    if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), error);
    bool is_written = false;
    {
      std::ofstream file(draft, std::ios::binary);
      file << store_.text();
      file.close();
      is_written = !file.fail();
    }
    if (is_written) std::filesystem::rename(draft, target, error);
    if (is_written && !error) return;
    std::error_code ignored;
    std::filesystem::remove(draft, ignored);
    notes_.push_back(path_ + ": the plans of cuDNN cannot be written there; each run makes them");
  }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  PlanStore& store_;
  std::string path_;
  std::size_t written_ = 0;
  std::vector<std::string> notes_;
};

// What the networks of a rank share.
class CudnnLibraries final : public cuda::StepLibraries {
 public:
  explicit CudnnLibraries(const CudnnOptions& options)
      : options_(options),
        handle_(make_handle(options.device)),
        planner_(description_of_device(options.device)),
        store_(planner_, {.tf32 = options.tf32}),
        file_(store_,
              options.plans.empty() ? default_plan_file(store_.made_for()) : options.plans) {}

  [[nodiscard]] std::string description() const override { return version_text(); }
  [[nodiscard]] std::vector<std::string> notes() const override { return file_.notes(); }
  [[nodiscard]] std::unique_ptr<cuda::StepLibrary> make() override;

  [[nodiscard]] cudnnHandle_t handle() const { return handle_.get(); }
  // Plans by key, loaded.
  [[nodiscard]] std::map<std::string, std::shared_ptr<const Descriptor>> plan(
      std::span<const Operation> operations, NumberType storage) {
    const cuda::CurrentDevice current(options_.device);
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    store_.plan_all(operations, storage, options_.threads > 0 ? options_.threads : cores);
    file_.write();
    std::map<std::string, std::shared_ptr<const Descriptor>> loaded;
    for (const Operation& operation : operations) {
      auto& plan = loaded[key(operation, storage)];
      if (plan == nullptr)
        plan = std::make_shared<const Descriptor>(
            planner_.load(store_.plan(operation, storage).serialised, handle_.get()));
    }
    return loaded;
  }

 private:
  CudnnOptions options_;
  Handle handle_;
  Planner planner_;
  PlanStore store_;
  PlanFile file_;
};

class CudnnSteps final : public cuda::StepLibrary {
 public:
  explicit CudnnSteps(CudnnLibraries& libraries) : libraries_(libraries) {}

  // Batch norms of cuDNN 9.19 take 16 bytes of a pixel at once, and nothing else. Its mean pools give
  // wrong numbers in BF16, up to 1e37 (on an H100, November 2026).
  [[nodiscard]] bool computes(const Operation& operation, NumberType storage) const override {
    if (const auto* norm = std::get_if<steps::BatchNorm>(&operation))
      return norm->x.channels * (storage == NumberType::fp32 ? 4 : 2) % 16 == 0;
    const auto* pool = std::get_if<steps::Pool>(&operation);
    return pool == nullptr || pool->kind == steps::Pool::Kind::max || storage != NumberType::bf16;
  }
  void plan(std::span<const Operation> operations, NumberType storage) override {
    std::vector<Operation> computed;
    for (const Operation& operation : operations)
      if (computes(operation, storage)) computed.push_back(operation);
    plans_ = libraries_.plan(computed, storage);
    for (const auto& [key, plan] : plans_)
      workspace_ = std::max(workspace_, plan->number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  }
  [[nodiscard]] std::size_t workspace() const override { return to_size(workspace_); }
  int bind(const Operation& operation, NumberType storage, std::span<const Bound> operands,
           void* workspace) override {
    Step step;
    step.what = key(operation, storage);
    const auto plan = plans_.find(step.what);
    PACELINE_ASSERT(plan != plans_.end(), "the operation was planned");
    step.plan = plan->second;
    std::vector<std::int64_t> ids;
    std::vector<void*> addresses;
    step.numbers = std::make_unique<float[]>(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      ids.push_back(operands[i].role);
      step.numbers[i] = operands[i].number;
      addresses.push_back(operands[i].memory != nullptr ? operands[i].memory : &step.numbers[i]);
    }
    void* const block[] = {workspace};
    step.pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(addresses))
        .set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(ids));
    if (workspace_ > 0)
      step.pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::span<void* const>(block));
    step.pack.finalise("the operands of " + step.what);
    steps_.push_back(std::move(step));
    return static_cast<int>(steps_.size()) - 1;
  }
  void start(int bound, cudaStream_t stream) override {
    const Step& step = steps_.at(to_size(bound));
    check(cudnnSetStream(libraries_.handle(), stream), "give cuDNN a stream");
    check(cudnnBackendExecute(libraries_.handle(), step.plan->raw(), step.pack.raw()),
          "compute " + step.what);
  }

 private:
  struct Step {
    std::string what;
    std::shared_ptr<const Descriptor> plan;
    std::unique_ptr<float[]> numbers;  // in host memory, one for each operand
    Descriptor pack{CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR};
  };

  CudnnLibraries& libraries_;
  std::map<std::string, std::shared_ptr<const Descriptor>> plans_;
  std::int64_t workspace_ = 0;
  std::vector<Step> steps_;
};

std::unique_ptr<cuda::StepLibrary> CudnnLibraries::make() {
  return std::make_unique<CudnnSteps>(*this);
}

}  // namespace

std::unique_ptr<cuda::StepLibraries> open_cudnn(const CudnnOptions& options) {
  return std::make_unique<CudnnLibraries>(options);
}

std::string default_plan_file(const std::string& made_for) {
  const auto value = [](const char* name) {
    const char* found = std::getenv(name);
    return std::string(found == nullptr ? "" : found);
  };
  std::string cache = value("XDG_CACHE_HOME");
  if (cache.empty()) {
    const std::string home = value("HOME");
    if (home.empty()) return "";
    cache = home + "/.cache";
  }
  return fmt::format("{}/paceline/cudnn-plans-{:016x}.json", cache, hash_of(made_for));
}

}  // namespace paceline::runtime::cudnn
