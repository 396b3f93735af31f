// paceline serve: the what-if page.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>

#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/named_things.h"
#include "cli/job/option_values.h"
#include "cli/output.h"
#include "cli/serve/http_server.h"
#include "cli/serve/what_if_service.h"
#include "models/base/parse_units.h"

namespace paceline::cli {
namespace {

struct Options {
  std::string listen = "127.0.0.1";
  std::string port = "8642";
  std::string name;
  std::string models;
  std::string clusters;
  std::string memory = "2 GiB";
  bool allow_remote = false;
};

// Bounds what the process may allocate from now on. Then an allocation fails, and with it the request.
void limit_memory(Bytes most) {
  std::ifstream statm("/proc/self/statm");
  unsigned long long pages = 0;
  for (int field = 0; field < 6; ++field) statm >> pages;  // the sixth is data and stack
  rlimit limit = {};
  if (!statm || ::getrlimit(RLIMIT_DATA, &limit) != 0)
    throw RunError("limit the memory", std::strerror(errno));
  const auto bytes = static_cast<rlim_t>(pages * static_cast<unsigned long long>(::getpagesize()) +
                                         static_cast<unsigned long long>(most.value()));
  limit.rlim_cur = std::min(bytes, limit.rlim_max);
  if (::setrlimit(RLIMIT_DATA, &limit) != 0)
    throw RunError("limit the memory", std::strerror(errno));
}

// Files that the page's lists have beside the catalogue, which is there already.
serve::OwnFiles own_files(const Options& options) {
  const auto files = [](const char* option, const std::string& text) {
    std::vector<std::string> paths;
    if (text.empty()) return paths;
    paths = job::parsing_option(option, [&] { return comma_list(text); });
    for (const std::string& path : paths)
      if (!job::names_a_file(path))
        throw InputError({option}, fmt::format("{} is no file", in_quotes(path)),
                         "the page has all of the catalogue; give YAML files of your own");
    return paths;
  };
  serve::OwnFiles own;
  for (const std::string& path : files("--model", options.models))
    own.networks.emplace(path, job::load_layers(path));
  for (const std::string& path : files("--cluster", options.clusters))
    own.clusters.emplace(path, job::load_cluster(path));
  return own;
}

void run(const Options& options) {
  constexpr int most_port = 65535;
  constexpr unsigned most_threads = 16;
  serve::HttpServerOptions http;
  http.address = options.listen;
  http.port = static_cast<int>(
      job::parsing_option("--port", [&] { return parse_count(options.port, 0, most_port); }));
  if (!options.name.empty()) http.own_names = job::comma_list(options.name);
  const bool is_loopback =
      job::parsing_option("--listen", [&] { return serve::is_loopback(options.listen); });
  if (!is_loopback && !options.allow_remote)
    throw InputError({"--listen"}, fmt::format("others reach {}, too", options.listen),
                     "add --allow-remote if they may: who reaches the page may use it");
  const Bytes memory = job::parsing_option("--memory", [&] { return parse_bytes(options.memory); });
  serve::WhatIfLimits limits;
  limits.threads =
      static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, most_threads));
  serve::WhatIfService service(limits, own_files(options));
  serve_http(
      http,
      [&service](const serve::HttpRequest& request, serve::Reply reply) {
        service.answer(request, std::move(reply));
      },
      [memory](const std::string& url) {
        limit_memory(memory);  // threads have their stacks by now
        print("what-if page at {} until Ctrl-C or SIGTERM\n", url);
        flush_output();
      });
}

}  // namespace

void add_serve(Command& app) {
  Command& command = app.add_command("serve", "A what-if page for the browser, on this machine");
  const auto options = std::make_shared<Options>();
  command.add_option("--port", options->port, "Port to listen at; 0: one that is free")
      .value("N (8642)");
  command
      .add_option("--listen", options->listen,
                  "Address to listen at; one that others reach needs --allow-remote")
      .value("ADDRESS (127.0.0.1)");
  command.add_flag("--allow-remote", options->allow_remote,
                   "Listen at an address that others reach: there is no password");
  command
      .add_option("--cluster", options->clusters,
                  "Clusters of your own that the page offers, too: YAML files by commas")
      .value("FILE,...");
  command
      .add_option("--model", options->models,
                  "Networks of your own that the page offers, too: YAML files by commas")
      .value("FILE,...");
  command
      .add_option("--name", options->name,
                  "Names by which browsers may call the page, beside localhost and addresses")
      .value("HOST,...");
  command
      .add_option("--memory", options->memory,
                  "Memory that may be allocated for requests; one that needs more is refused")
      .value("SIZE (2 GiB)");
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
