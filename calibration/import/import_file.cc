// Tests: tests/calibration/import_profile_test.cc.
#include "calibration/import/import_file.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "calibration/import/deepspeed.h"
#include "calibration/import/horovod.h"
#include "calibration/import/imb.h"
#include "calibration/import/kineto.h"
#include "calibration/import/mlperf.h"
#include "calibration/import/nccl_log.h"
#include "calibration/import/nccl_tests.h"
#include "calibration/import/nccl_topology.h"
#include "calibration/import/nvidia_topology.h"
#include "calibration/import/osu.h"
#include "calibration/import/torch_bench.h"
#include "calibration/import/training_log.h"
#include "models/base/error.h"
#include "models/base/names.h"

namespace paceline::calibration {
namespace {

constexpr std::array<std::pair<ImportFormat, std::string_view>, 12> formats = {
    {{ImportFormat::nccl_tests, "nccl-tests"},
     {ImportFormat::osu, "osu"},
     {ImportFormat::kineto, "kineto"},
     {ImportFormat::horovod, "horovod"},
     {ImportFormat::nvidia_topology, "nvidia-topo"},
     {ImportFormat::nccl_topology, "nccl-topology"},
     {ImportFormat::nccl_log, "nccl-log"},
     {ImportFormat::mlperf, "mlperf"},
     {ImportFormat::imb, "imb"},
     {ImportFormat::torch_bench, "torch-bench"},
     {ImportFormat::deepspeed, "deepspeed"},
     {ImportFormat::training_log, "training-log"}}};

// Editors and shells of Windows put marks before a text. Throws InputError for UTF-16.
std::string_view without_byte_order_mark(std::string_view text, const std::string& file) {
  for (const std::string_view mark : std::array<std::string_view, 2>{"\xff\xfe", "\xfe\xff"})
    if (text.starts_with(mark))
      throw InputError({file}, "this text is UTF-16, as PowerShell's > writes it",
                       "write it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE");
  constexpr std::string_view utf_8 = "\xef\xbb\xbf";
  return text.starts_with(utf_8) ? text.substr(utf_8.size()) : text;
}

}  // namespace

std::string_view name(ImportFormat format) {
  return name_in(formats, format);
}

std::vector<std::string> import_format_names() {
  std::vector<std::string> names;
  for (const auto& [value, text] : formats) names.emplace_back(text);
  return names;
}

ImportFormat import_format_from_name(std::string_view text) {
  for (const auto& [value, name] : formats) {
    if (name == text) return value;
  }
  std::vector<std::string> names = import_format_names();
  names.emplace_back("auto");
  throw unknown_name("format", text, names);
}

ImportFormat guessed_format(std::string_view text, const std::string& file) {
  text = without_byte_order_mark(text, file);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos)
    throw InputError({file}, "there is nothing in this file", "give what the tool printed");
  // Traces are tried first, since a name in a trace may say what a table says in its first lines.
  const bool is_json = text[first] == '{' || text[first] == '[';
  if (is_json && looks_like_horovod(text)) return ImportFormat::horovod;
  if (is_json && looks_like_kineto(text)) return ImportFormat::kineto;
  if (!is_json && looks_like_osu(text)) return ImportFormat::osu;
  if (looks_like_imb(text)) return ImportFormat::imb;
  if (looks_like_torch_bench(text)) return ImportFormat::torch_bench;
  if (looks_like_deepspeed(text)) return ImportFormat::deepspeed;
  if (looks_like_nccl_tests(text)) return ImportFormat::nccl_tests;
  if (looks_like_osu(text)) return ImportFormat::osu;
  if (text[first] == '<' && looks_like_nccl_topology(text)) return ImportFormat::nccl_topology;
  if (looks_like_mlperf(text)) return ImportFormat::mlperf;
  if (looks_like_nccl_log(text)) return ImportFormat::nccl_log;
  if (text.find("ROCm System Management Interface") != std::string_view::npos ||
      text.find("Link Type between two GPUs") != std::string_view::npos)
    throw InputError({file}, "this is the output of rocm-smi, which is not read here",
                     "describe the node in YAML (docs/formats.md), or give a log of RCCL with "
                     "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH");
  if (looks_like_nvidia_topology(text)) return ImportFormat::nvidia_topology;
  // Any text may have a number behind a name of such a log.
  if (looks_like_training_log(text)) return ImportFormat::training_log;
  throw InputError({file}, "this is the output of no tool that is known here",
                   text.starts_with("\x1f\x8b")
                       ? "unpack it first: gunzip FILE"
                       : fmt::format("give --format and its file; the formats are {}",
                                     fmt::join(import_format_names(), ", ")));
}

Imported import_text(ImportFormat format, std::string_view text, const std::string& file,
                     const models::Network* network, std::optional<models::Collective> collective) {
  text = without_byte_order_mark(text, file);
  switch (format) {
    case ImportFormat::nccl_tests:
      return parse_nccl_tests(text, file, collective);
    case ImportFormat::osu:
      return parse_osu(text, file);
    case ImportFormat::horovod:
      return parse_horovod(text, file);
    case ImportFormat::nvidia_topology:
      return parse_nvidia_topology(text, file);
    case ImportFormat::nccl_topology:
      return parse_nccl_topology(text, file);
    case ImportFormat::nccl_log:
      return parse_nccl_log(text, file);
    case ImportFormat::mlperf:
      return parse_mlperf(text, file);
    case ImportFormat::imb:
      return parse_imb(text, file);
    case ImportFormat::torch_bench:
      return parse_torch_bench(text, file);
    case ImportFormat::deepspeed:
      return parse_deepspeed(text, file);
    case ImportFormat::training_log:
      return parse_training_log(text, file);
    case ImportFormat::kineto:
      break;
  }
  if (network == nullptr)
    throw InputError({file}, "a trace of torch.profiler, and no network to find in it",
                     "give --model, as in --model resnet50");
  return parse_kineto(text, file, *network);
}

}  // namespace paceline::calibration
