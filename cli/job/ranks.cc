// Tests: tests/cli/train_test.py (end to end).
#include "cli/job/ranks.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "cli/job/option_values.h"
#include "models/base/error.h"
#include "models/base/parse_units.h"

namespace paceline::job {

std::optional<runtime::LaunchedRank> rank_of_job() {
  const auto launched = runtime::launched_rank();
  if (!launched && runtime::started_by_launcher())
    throw InputError("a launcher that does not say how many ranks there are", "use mpirun or srun");
  if (!launched || launched->ranks == 1) return std::nullopt;
  return launched;
}

void refuse_ranks_option(const std::string& ranks) {
  if (!ranks.empty())
    throw InputError({"--ranks"}, "the launcher says how many ranks there are",
                     "leave it out under mpirun and srun");
}

namespace {

std::string environment(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? std::string() : std::string(text);
}

runtime::Rendezvous place_of(const std::string& text) {
  if (text != "env")
    return parsing_option("--rendezvous", [&] { return runtime::rendezvous_from(text); });
  const std::string host = environment("MASTER_ADDR");
  const std::string port = environment("MASTER_PORT");
  if (host.empty() || port.empty())
    throw InputError({"--rendezvous"}, "MASTER_ADDR and MASTER_PORT are not set",
                     "give HOST:PORT, or start it by torchrun");
  const std::string host_in_brackets =
      host.find(':') == std::string::npos ? host : "[" + host + "]";
  runtime::Rendezvous place = parsing_option("MASTER_ADDR, MASTER_PORT", [&] {
    return runtime::rendezvous_from(host_in_brackets + ":" + port);
  });
  if (environment("TORCHELASTIC_USE_AGENT_STORE") == "True") ++place.port;
  return place;
}

// A count of the option, or else of the variable; nothing if neither is there.
std::optional<int> count_of(const char* option, const std::string& text, const char* variable,
                            int least, int most) {
  const bool is_given = !text.empty();
  const std::string value = is_given ? text : environment(variable);
  if (value.empty()) return std::nullopt;
  return parsing_option(is_given ? option : variable,
                        [&] { return static_cast<int>(parse_count(value, least, most)); });
}

}  // namespace

std::optional<MeetingRank> rank_by_rendezvous(const RendezvousOptions& options) {
  if (options.rendezvous.empty()) {
    if (!options.rank.empty())
      throw InputError({"--rank"}, "a rank by itself has nobody to meet",
                       "add --rendezvous HOST:PORT, the same for all ranks");
    const bool by_torchrun = !environment("RANK").empty() && !environment("MASTER_ADDR").empty() &&
                             !environment("MASTER_PORT").empty();
    const std::string all = environment("WORLD_SIZE");
    if (by_torchrun && !all.empty() && all != "1" && !runtime::started_by_launcher())
      throw InputError(fmt::format("RANK and WORLD_SIZE say that this is one process of {}", all),
                       "add --rendezvous env, or unset WORLD_SIZE");
    return std::nullopt;
  }
  MeetingRank own{.place = place_of(options.rendezvous)};
  std::optional<int> ranks =
      count_of("--ranks", options.ranks, "WORLD_SIZE", 1, most_meeting_ranks);
  std::optional<int> rank = count_of("--rank", options.rank, "RANK", 0, most_meeting_ranks);
  if (const auto launched = runtime::launched_rank(); launched && (!ranks || !rank)) {
    ranks = ranks.value_or(launched->ranks);
    rank = rank.value_or(launched->rank);
  }
  if (!ranks)
    throw InputError({"--rendezvous"}, "it is not known how many ranks there are",
                     "add --ranks N, or start it by srun or torchrun");
  if (!rank)
    throw InputError({"--rendezvous"}, "it is not known which rank this process is",
                     "add --rank R, or start it by srun or torchrun");
  if (*rank >= *ranks)
    throw InputError({"--rank"}, fmt::format("there is no rank {} of {}", *rank, *ranks),
                     fmt::format("ranks are 0 to {}", *ranks - 1));
  own.rank = *rank;
  own.ranks = *ranks;
  return own;
}

runtime::RendezvousSecret rendezvous_secret() {
  const char* const text = std::getenv(runtime::secret_variable);
  return text == nullptr ? runtime::RendezvousSecret() : runtime::RendezvousSecret(text);
}

Seconds parse_patience(const std::string& patience) {
  return parsing_option("--patience", [&] { return parse_seconds(patience); });
}

}  // namespace paceline::job
