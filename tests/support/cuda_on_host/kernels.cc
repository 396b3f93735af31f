#include "tests/support/cuda_on_host/kernels.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "tests/support/cuda_on_host/permutation.h"
#include "tests/support/cuda_on_host/state.h"

namespace cuda_on_host {
namespace {

// Each unit has stubs of its own for the same kernel, so that bodies belong to names.
struct Table {
  std::map<const void*, std::string> names;
  std::map<std::string, Kernel> kernels;
};

Table& table() {
  static Table* const one = new Table;  // is filled before main(), and outlives it
  return *one;
}

// Shared memory of a block: aligned to 16 bytes, NaN at first, with a pattern behind it.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes), words_((bytes + beside) / 16 + 1) {}
  std::byte* poisoned() {
    std::memset(first(), 0xff, bytes_);
    std::memset(first() + bytes_, pattern, beside);
    return first();
  }
  [[nodiscard]] bool is_intact() {
    return std::all_of(first() + bytes_, first() + bytes_ + beside,
                       [](std::byte b) { return b == std::byte{pattern}; });
  }

 private:
  static constexpr std::size_t beside = 256;
  static constexpr unsigned char pattern = 0xa5;
  struct alignas(16) Word {
    std::byte bytes[16];
  };
  std::byte* first() { return words_.data()->bytes; }
  std::size_t bytes_;
  std::vector<Word> words_;
};

void run_phased_block(const Kernel& kernel, void* bound, const Launch& launch, unsigned block,
                      std::byte* shared) {
  for (int phase = 0; phase < kernel.body.phases; ++phase)
    Permutation(launch.threads).for_each([&](std::uint64_t thread) {
      kernel.body.phase(bound, phase, static_cast<unsigned>(thread), launch.threads, block,
                        launch.blocks, shared);
    });
}

}  // namespace

void name_stub(const void* stub, const char* device_name) {
  table().names[stub] = device_name;
  table().kernels[device_name].name = device_name;
}

void set_body(const void* stub, const paceline::runtime::cuda::HostKernel& body) {
  Kernel* const kernel = kernel_of(stub);
  if (kernel == nullptr) die("a body was given for what is no kernel's stub");
  kernel->body = body;
  kernel->has_body = true;
}

Kernel* kernel_of(const void* stub) {
  const auto name = table().names.find(stub);
  return name == table().names.end() ? nullptr : &table().kernels.at(name->second);
}

std::string readable_name(const std::string& device_name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(device_name.c_str(), nullptr, nullptr, &status);
  if (text == nullptr) return device_name;
  std::string name = text;
  std::free(text);  // NOLINT: the demangler allocates by malloc
  // "void paceline::runtime::cuda::detail::run_elements<(anonymous namespace)::Add>((...)::Add, ...)"
  if (name.starts_with("void ")) name.erase(0, 5);
  const std::string ours = "paceline::runtime::cuda::detail::";
  for (std::size_t at = 0; (at = name.find(ours)) != std::string::npos;)
    name.erase(at, ours.size());
  int deep = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++deep;
    if (name[i] == '>') --deep;
    if (name[i] == '(' && deep == 0 && name.compare(i, 11, "(anonymous ") != 0) {
      name.erase(i);
      break;
    }
  }
  return name;
}

void run_kernel(const Kernel& kernel, void* bound, const Launch& launch) {
  const auto& body = kernel.body;
  if (body.element != nullptr) {
    Permutation(body.elements(bound)).for_each([&](std::uint64_t i) { body.element(bound, i); });
    return;
  }
  SharedMemory shared(launch.shared_bytes);
  Permutation(launch.blocks).for_each([&](std::uint64_t i) {
    const auto block = static_cast<unsigned>(i);
    std::byte* const bytes = shared.poisoned();
    if (body.phase != nullptr)
      run_phased_block(kernel, bound, launch, block, bytes);
    else
      run_cooperative_block(kernel, bound, launch, block, bytes);
    if (!shared.is_intact())
      throw KernelFault{
          cudaErrorIllegalAddress,
          "writes beyond its shared memory of " + std::to_string(launch.shared_bytes) + " bytes"};
  });
}

}  // namespace cuda_on_host
