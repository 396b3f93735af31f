// paceline doctor: what of the parts that Paceline can use is on this machine, and what is missing.
#include <fmt/core.h>

#include <memory>

#include "cli/command.h"
#include "cli/doctor/build_info.h"
#include "cli/doctor/doctor.h"
#include "cli/job/option_values.h"
#include "cli/output.h"
#include "cli/table.h"
#include "models/base/parse_units.h"

namespace paceline::cli {
namespace {

struct Options {
  std::string time_limit;
  bool json = false;
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

void print_text_of(const doctor::Findings& findings) {
  const doctor::Processor& cpu = findings.processor;
  print("{}\n\n", doctor::version_text());
  print("processor: {}, {} threads; AVX2 {}, AVX-512 {}, BF16 {}, AMX {}; our kernels: {}\n\n",
        cpu.model.empty() ? "not named" : cpu.model, cpu.threads, yes(cpu.avx2), yes(cpu.avx512),
        yes(cpu.bf16), yes(cpu.amx), cpu.kernels);
  Table table({{"part", Align::left},
               {"state", Align::left},
               {"version", Align::left},
               {"where", Align::left, 0, true}});
  for (const doctor::Part& part : findings.parts)
    table.add({part.name, std::string(name(part.state)), part.version, part.where});
  print("{}\n", table.fitted(output_is_terminal() ? table_width() : unlimited_width).text);
  if (findings.gpus.empty()) print("GPUs: none\n");
  for (std::size_t i = 0; i < findings.gpus.size(); ++i) {
    const doctor::Gpu& gpu = findings.gpus[i];
    print("GPU {}: {}, {}, compute capability {}\n", i, gpu.name,
          to_text(Bytes{static_cast<double>(gpu.memory_bytes)}), gpu.compute_capability);
  }
  for (const doctor::Part& part : findings.parts) {
    if (part.state == doctor::State::found) continue;
    print("\n{} ({}): {}\n  needed by: {}\n  comes with: {}\n", part.name, name(part.state),
          part.why, part.needed_by, part.package);
  }
}

void run(const Options& options) {
  const doctor::Findings findings = doctor::look_around(limit_of(options));
  if (options.json)
    print("{}\n", to_json(findings));
  else
    print_text_of(findings);
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
  command.add_flag("--json", options->json, "Print one JSON document");
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
