// paceline doctor: what of the parts that Paceline can use is on this machine, and what is missing.
#include <fmt/core.h>

#include <memory>

#include "cli/command.h"
#include "cli/doctor/build_info.h"
#include "cli/doctor/doctor.h"
#include "cli/job/option_values.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "models/base/json_records.h"
#include "models/base/parse_units.h"

namespace paceline::cli {
namespace {

struct Options {
  std::string time_limit;
  bool wide = false;
  OutputFormat format;
};

constexpr Seconds usual_limit{10};
constexpr Seconds longest_limit{300};

std::chrono::milliseconds limit_of(const Options& options) {
  const Seconds limit =
      options.time_limit.empty() ? usual_limit : job::parsing_option("--time-limit", [&] {
        const Seconds given = parse_seconds(options.time_limit);
        if (given < Seconds{0.001} || given > longest_limit)
          throw InputError(in_quotes(options.time_limit) + " is no time limit",
                           "give one from 1 ms to 300 s");
        return given;
      });
  return std::chrono::milliseconds(static_cast<std::int64_t>(limit.value() * 1000));
}

const char* yes(bool has) {
  return has ? "yes" : "no";
}

Table table_of(const doctor::Findings& findings) {
  Table table({{"part", Align::left},
               {"state", Align::left},
               {"version", Align::left, 1},
               {"where", Align::left, 0, true}});
  for (const doctor::Part& part : findings.parts)
    table.add({part.name, std::string(name(part.state)), part.version, part.where});
  return table;
}

std::string text_of(const doctor::Findings& findings, int width) {
  const Table::Fitted parts = table_of(findings).fitted(width);
  const doctor::Processor& cpu = findings.processor;
  std::string text = fmt::format(
      "{}\n\nprocessor: {}, {} threads; AVX2 {}, AVX-512 {}, BF16 {}, AMX {}; our kernels: "
      "{}\n\n{}{}\n",
      doctor::version_text(), cpu.model.empty() ? "not named" : cpu.model, cpu.threads,
      yes(cpu.avx2), yes(cpu.avx512), yes(cpu.bf16), yes(cpu.amx), cpu.kernels, parts.text,
      parts.not_shown());
  if (findings.gpus.empty()) text += "GPUs: none\n";
  for (std::size_t i = 0; i < findings.gpus.size(); ++i) {
    const doctor::Gpu& gpu = findings.gpus[i];
    text +=
        fmt::format("GPU {}: {}, {}, compute capability {}\n", i, gpu.name,
                    to_text(Bytes{static_cast<double>(gpu.memory_bytes)}), gpu.compute_capability);
  }
  for (const doctor::Part& part : findings.parts) {
    if (part.state == doctor::State::found) continue;
    text += fmt::format("\n{} ({}): {}\n  needed by: {}\n  comes with: {}\n", part.name,
                        name(part.state), part.why, part.needed_by, part.package);
  }
  return text;
}

void run(const Options& options) {
  check_output_format(options.format);
  const std::chrono::milliseconds limit = limit_of(options);
  Progress progress("asking libraries and drivers");
  const doctor::Findings findings = doctor::look_around(limit);
  progress.end();
  print_answer(options.format,
               {.document = [&] { return doctor::doctor_document().json(findings); },
                .records = {{"parts"}},
                .markdown = [&] { return table_of(findings).markdown(); },
                .text = [&](int width) { return text_of(findings, width); },
                .wide = options.wide || !output_is_terminal()});
}

}  // namespace

void add_doctor(Command& app) {
  Command& command = app.add_command(
      "doctor",
      "What of CUDA, NCCL, MPI, SimGrid and others is on this machine, and what is missing");
  const auto options = std::make_shared<Options>();
  command
      .add_option("--time-limit", options->time_limit,
                  "How long to wait for libraries and drivers that hang")
      .value("TIME (10s)");
  add_wide_option(command, options->wide);
  add_output_formats(command, options->format);
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
