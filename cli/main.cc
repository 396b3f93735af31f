// The paceline command: parse, call, print. This is the only place where exceptions become exit
// codes: 0 done, 1 the work failed, 2 the input is wrong (one line on stderr).
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "models/base/error.h"
#include "models/base/names.h"

namespace {

constexpr int exit_failed = 1;
constexpr int exit_bad_input = 2;

// One line, whatever the message holds.
int fail(std::string message, int code) {
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  while (message.ends_with(' ')) message.pop_back();
  fmt::print(stderr, "paceline: {}\n", message);
  return code;
}

// CLI11 says only that a subcommand is missing; says which one the user may have meant.
void check_command(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    std::vector<std::string> names;
    const CLI::App* next = nullptr;
    for (const CLI::App* command : at->get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(command->get_name());
      if (command->get_name() == argv[i]) next = command;
    }
    if (names.empty()) return;
    if (next == nullptr) throw paceline::unknown_name("command", argv[i], names);
    at = next;
  }
}

// Flushes what was printed; a full disk or a closed pipe behind stdout is a failure.
int flushed() {
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout)
    return fail("cannot write to standard output", exit_failed);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Paceline predicts how a data-parallel training job scales before the cluster is bought.\n\n"
      "Examples:\n"
      "  paceline predict --model resnet50 --cluster jizhi-p40 --ranks 1024\n"
      "  paceline scale --model resnet50 --cluster jizhi-p40 --ranks 8-2048\n"
      "  paceline show network resnet50\n"
      "  paceline reproduce jizhi\n",
      "paceline"};
  app.set_version_flag("--version", "paceline " PACELINE_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);
  paceline::cli::add_predict(app);
  paceline::cli::add_scale(app);
  paceline::cli::add_show(app);
  paceline::cli::add_verify(app);
  paceline::cli::add_export(app);
  paceline::cli::add_platform(app);
  paceline::cli::add_reproduce(app);
  paceline::cli::add_agree(app);
  paceline::cli::add_completion(app);
  try {
    check_command(app, argc, argv);
    app.parse(argc, argv);
    return flushed();
  } catch (const CLI::CallForHelp& help) {
    app.exit(help);
    return flushed();
  } catch (const CLI::CallForAllHelp& help) {
    app.exit(help);
    return flushed();
  } catch (const CLI::CallForVersion& version) {
    app.exit(version);
    return flushed();
  } catch (const CLI::ParseError& error) {
    return fail(fmt::format("{} (see paceline --help)", error.what()), exit_bad_input);
  } catch (const paceline::InputError& error) {
    return fail(error.what(), exit_bad_input);
  } catch (const paceline::UnavailableError& error) {
    return fail(error.what(), exit_bad_input);
  } catch (const std::exception& error) {
    // fmt::print throws where what it prints outgrows the buffer of a stdout that is full.
    if (std::ferror(stdout) != 0) return fail("cannot write to standard output", exit_failed);
    return fail(error.what(), exit_failed);
  }
}
