// What is asked of a machine, one question for each part. Each answer is lines "key=value". The
// questions load libraries and start programs, which may hang: ask them in a BoundedChild.
//
// No question makes a context on a GPU: the driver is asked by NVML, which only reads, and versions
// of CUDA's libraries are constants of the libraries.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::doctor {

// Each throws RunError that says what is not there. Keys: version, where; those of the functions
// are said there.
[[nodiscard]] std::string ask_mpi();
[[nodiscard]] std::string ask_onednn();
[[nodiscard]] std::string ask_simgrid();
[[nodiscard]] std::string ask_sodium();
[[nodiscard]] std::string ask_nvcc();
[[nodiscard]] std::string ask_cuda_runtime();
[[nodiscard]] std::string ask_nccl();
[[nodiscard]] std::string ask_cudnn();
[[nodiscard]] std::string ask_pytorch();
// Also cuda, the newest CUDA that the driver takes, and a line device=MEMORY CAPABILITY NAME for each
// GPU, the memory in bytes.
[[nodiscard]] std::string ask_driver();
// Loads a module of Paceline's with all that it is linked to; the answer is empty.
[[nodiscard]] std::string ask_module(std::string_view file);

// The values of a key in an answer, in their order.
[[nodiscard]] std::vector<std::string> values_of(const std::string& answer, std::string_view key);

}  // namespace paceline::doctor
