// The paceline command: it reads the command line, runs the command that was named, and turns
// exceptions into exit codes. 0: done. 1: the work failed. 2: the input is wrong, or asks for a
// part that was not built in. Each failure is one line on standard error. 128 + n: signal n stopped
// the work (143 SIGTERM, 130 SIGINT; cli/stop_signals.h), and what was to be saved is saved.
//
// A rank of a training job of several processes runs in a child process (cli/supervise.h), so that its
// death by a signal has a line, too.
#include <malloc.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include "cli/command.h"
#include "cli/doctor/build_info.h"
#include "cli/help_text.h"
#include "cli/job/ranks.h"
#include "cli/output.h"
#include "cli/stop_signals.h"
#include "cli/supervise.h"
#include "models/base/error.h"
#include "runtime/transport/launcher.h"

namespace {

constexpr int exit_failed = 1;
constexpr int exit_bad_input = 2;

// Where all ranks of a job find the same fault, one message is enough: the others wait before they
// speak, so that the launcher ends them once rank 0 has failed.
constexpr std::chrono::seconds head_start_of_rank_0{4};

void let_rank_0_speak() {
  const auto launched = paceline::runtime::launched_rank();
  if (launched && launched->rank > 0) std::this_thread::sleep_for(head_start_of_rank_0);
}

// Says why on one line, whatever the message holds, and returns the exit code.
int fail(std::string message, int code) {
  let_rank_0_speak();
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  while (message.ends_with(' ')) message.pop_back();
  paceline::cli::notice("paceline: {}\n", message);
  return code;
}

constexpr const char* about =
    "Paceline predicts how a data-parallel training job scales before the cluster is bought, and "
    "runs its plan for real.\n\n"
    "Examples:\n"
    "  paceline predict --model resnet50 --cluster jizhi-p40 --ranks 1024\n"
    "  paceline scale --model resnet50 --cluster jizhi-p40 --ranks 8-2048\n"
    "  paceline tune --model resnet50 --cluster jizhi-p40 --ranks 1024 --plan-out plan.json\n"
    "  paceline plan-capacity --model resnet50 --cluster aws-p3-16xlarge,sony-abci --epochs 90 "
    "--dataset imagenet --within 2h --node-price 20USD/h\n"
    "  paceline show network resnet50\n"
    "  paceline reproduce jizhi\n"
    "  mpirun -n 2 paceline train --model resnet-small --data fashion-mnist\n"
    "  paceline compare run.json prediction.json\n";

void add_commands(paceline::cli::Command& app) {
  paceline::cli::add_predict(app);
  paceline::cli::add_scale(app);
  paceline::cli::add_sweep(app);
  paceline::cli::add_tune(app);
  paceline::cli::add_time(app);
  paceline::cli::add_cost(app);
  paceline::cli::add_plan_capacity(app);
  paceline::cli::add_show(app);
  paceline::cli::add_verify(app);
  paceline::cli::add_export(app);
  paceline::cli::add_platform(app);
  paceline::cli::add_reproduce(app);
  paceline::cli::add_agree(app);
  paceline::cli::add_calibrate(app);
  paceline::cli::add_train(app);
  paceline::cli::add_check(app);
  paceline::cli::add_compare(app);
  paceline::cli::add_replay(app);
  paceline::cli::add_doctor(app);
  paceline::cli::add_serve(app);
  paceline::cli::add_completion(app);
  paceline::cli::add_manual(app);
}

int run_command(int argc, char** argv) {
  try {
    paceline::cli::Command app("paceline", about);
    add_commands(app);
    const paceline::cli::ParsedLine line =
        paceline::cli::parse_command_line(app, paceline::doctor::version_text(), argc, argv);
    if (line.help != nullptr) {
      paceline::cli::print_text(paceline::cli::help_text(
          line.path, *line.help, paceline::cli::table_width(), line.all_help));
    } else if (line.text.empty()) {
      line.run();
    } else {
      paceline::cli::print_text(line.text);
    }
    paceline::cli::flush_output();
    return 0;
  } catch (const paceline::cli::StoppedBySignal& stopped) {
    return stopped.exit_code();
  } catch (const paceline::InputError& error) {
    return fail(error.what(), exit_bad_input);
  } catch (const paceline::UnavailableError& error) {
    return fail(error.what(), exit_bad_input);
  } catch (const std::bad_alloc&) {
    return fail("there is not enough memory; choose a smaller --batch, or fewer ranks",
                exit_failed);
  } catch (const std::exception& error) {
    return fail(error.what(), exit_failed);
  }
}

// What follows an option on the line, the last time; an empty text if it is not there.
std::string value_of(std::string_view option, int argc, char** argv) {
  std::string value;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == option && i + 1 < argc) value = argv[i + 1];
    if (argument.starts_with(option) && argument.substr(option.size()).starts_with('='))
      value = argument.substr(option.size() + 1);
  }
  return value;
}

// The path that --checkpoint names, if there is such a file; else an empty one.
std::string checkpoint_of(int argc, char** argv) {
  std::string path = value_of("--checkpoint", argc, argv);
  std::error_code error;
  return std::filesystem::exists(path, error) ? path : std::string();
}

// Which rank of several this process is, where that is known from its command line and environment;
// -1 where it is none, or where its options are wrong.
int own_rank(int argc, char** argv) {
  try {
    if (const auto met = paceline::job::rank_by_rendezvous({value_of("--rendezvous", argc, argv),
                                                            value_of("--ranks", argc, argv),
                                                            value_of("--rank", argc, argv)}))
      return met->rank;
  } catch (const paceline::InputError&) {
    return -1;  // the command says it
  }
  const auto launched = paceline::runtime::launched_rank();
  return launched && launched->ranks > 1 ? launched->rank : -1;
}

// Lets the heap keep what is freed, in place of giving it back to the kernel. A prediction builds a DAG of some
// megabytes for each of its samples, and the page faults of fresh memory take longer than the prediction itself
// (GPT of 530 billion over 35 stages and 280 micro-batches: 0.9 s, and 0.3 s with it). It is not for commands that
// measure: what a job takes has the page faults and the resident memory of a process of its own.
void keep_freed_memory() {
  constexpr int mib = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * mib);  // the most that glibc takes
  mallopt(M_TRIM_THRESHOLD, 1024 * mib);
  mallopt(M_TOP_PAD, 64 * mib);
}

}  // namespace

int main(int argc, char** argv) {
  paceline::cli::open_closed_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows past `ulimit -f` is an error of write()
  const std::string_view command = argc >= 2 ? argv[1] : "";
  const bool trains = command == "train";
  constexpr std::array<std::string_view, 4> measuring = {"train", "replay", "calibrate", "check"};
  if (std::ranges::find(measuring, command) == measuring.end()) keep_freed_memory();
  const int rank = trains ? own_rank(argc, argv) : -1;
  if (rank < 0) return run_command(argc, argv);
  try {
    return paceline::cli::supervised(
        [=] { return run_command(argc, argv); },
        [&](const std::string& signal, int process) {
          const std::string checkpoint = checkpoint_of(argc, argv);
          paceline::cli::notice(
              "paceline: rank {} (process {}) was killed by {}: the job ends{}\n", rank, process,
              signal, checkpoint.empty() ? std::string() : "; go on with --resume " + checkpoint);
        });
  } catch (const std::exception& error) {
    return fail(error.what(), exit_failed);
  }
}
