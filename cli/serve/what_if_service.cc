// Tests: tests/cli/serve_test.py (end to end).
#include "cli/serve/what_if_service.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "cli/job/plan_timeline.h"
#include "cli/job/prediction_json.h"
#include "cli/job/prediction_table.h"
#include "cli/job/scaling.h"
#include "cli/page/page.h"
#include "cli/serve/answers.h"
#include "cli/serve/asked_options.h"
#include "cli/serve/choices.h"
#include "cli/serve/query.h"
#include "cli/serve/workers.h"
#include "models/base/error.h"
#include "models/base/json.h"
#include "models/cluster/catalog.h"
#include "models/cluster/placement.h"
#include "models/network/zoo.h"

namespace paceline::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char json_type[] = "application/json";

std::shared_ptr<const std::string> text(std::string content) {
  return std::make_shared<const std::string>(std::move(content));
}

HttpResponse failure(int status, const std::string& problem) {
  return {status, json_type, text(Json{{"error", problem}}.in_one_line() + "\n")};
}

// Thrown inside a prediction that nobody waits for any more.
class Abandoned : public std::exception {};

// Thrown inside a prediction that takes too long.
class TooLong : public std::exception {};

// What the exception that is being handled means to a client.
HttpResponse failure_of_exception(const WhatIfLimits& limits) {
  try {
    throw;
  } catch (const InputError& error) {
    return failure(400, error.what());
  } catch (const UnavailableError& error) {
    return failure(400, error.what());
  } catch (const TooLong&) {
    return failure(503, fmt::format("this takes more than {} s here: ask the command",
                                    std::chrono::duration<double>(limits.most_time).count()));
  } catch (const Abandoned&) {
    return failure(503, "nobody waited");
  } catch (const std::bad_alloc&) {
    return failure(503, "this takes more memory than the server may have: ask the command");
  } catch (const std::exception& error) {
    return failure(500, error.what());
  }
}

struct Waiter {
  Reply reply;
  std::shared_ptr<const std::atomic<bool>> is_abandoned;
  std::size_t document = 0;  // that it waits for
};

// A question on its way, with all that it needs, for tables refer to the job.
struct Asked {
  std::string question;
  simulator::Question options;
  Clock::time_point deadline;
  std::vector<Waiter> waiters;  // guarded by the state's mutex
  std::optional<job::Job> job = {};
  std::optional<job::TableParts> parts = {};  // of a table
  std::vector<int> ranks = {};                // of a curve
  std::vector<std::optional<job::PredictionTable>> points = {};
  std::atomic<std::size_t> left{0};  // parts or points
  std::atomic<bool> has_failed{false};
};

}  // namespace

class WhatIfService::State {
 public:
  State(const WhatIfLimits& limits, OwnFiles own)
      : limits_(limits),
        own_(std::move(own)),
        statics_{{"/", {"text/html; charset=utf-8", text(page::what_if_html())}},
                 {"/page.css", {"text/css; charset=utf-8", text(page::what_if_style())}},
                 {"/page.js", {"text/javascript; charset=utf-8", text(page::what_if_script())}},
                 {"/favicon.ico", {"image/x-icon", text("")}},  // browsers ask for it
                 {"/choices", {json_type, text(choices_document().text(choices(own_)) + "\n")}}},
        answers_(limits.most_kept_bytes),
        workers_(limits.threads, limits.most_waiting) {}

  void answer(const HttpRequest& request, const Reply& reply) {
    if (request.query.size() > limits_.most_query_bytes)
      return reply(
          failure(414, fmt::format("the query has more than {} bytes", limits_.most_query_bytes)));
    if (const auto found = statics_.find(request.path); found != statics_.end())
      return reply({200, found->second.first, found->second.second});
    const bool is_curve = request.path == "/scale";
    const bool is_timeline = request.path == "/timeline";
    if (!is_curve && !is_timeline && request.path != "/predict")
      return reply(failure(404, "nothing is here: ask for /, /predict, /timeline or /scale"));
    try {
      const auto values = parse_query(request.query);
      std::string question = is_curve ? "curve" : "job";
      for (const auto& [name, value] : values) question += fmt::format("\n{}={}", name, value);
      ask(std::move(question), parse_options(values, own_), is_curve,
          {reply, request.is_abandoned, is_timeline ? std::size_t{1} : 0});
    } catch (const InputError& error) {
      reply(failure(400, error.what()));
    }
  }

 private:
  using AskedPointer = std::shared_ptr<Asked>;

  void ask(std::string question, simulator::Question options, bool is_curve, Waiter waiter) {
    std::unique_lock lock(mutex_);
    if (const auto documents = answers_.find(question)) {
      lock.unlock();
      return waiter.reply({200, json_type, (*documents)[waiter.document]});
    }
    if (const auto on_its_way = asked_.find(question); on_its_way != asked_.end()) {
      on_its_way->second->waiters.push_back(std::move(waiter));
      return;
    }
    const auto asked = std::make_shared<Asked>();
    asked->question = std::move(question);
    asked->options = std::move(options);
    asked->deadline = Clock::now() + limits_.most_time;
    const Reply reply = waiter.reply;
    asked->waiters.push_back(std::move(waiter));
    const bool is_taken = workers_.add(
        {[this, asked, is_curve] { is_curve ? begin_curve(asked) : begin_table(asked); }});
    if (is_taken) {
      asked_.emplace(asked->question, asked);
      return;
    }
    lock.unlock();
    reply(failure(503, "too many questions wait: ask again"));
  }

  // Throws where the question is not worth its time any more.
  void check(Asked& asked) {
    if (asked.has_failed) throw Abandoned();
    if (Clock::now() > asked.deadline) throw TooLong();
    const std::lock_guard lock(mutex_);
    if (std::any_of(asked.waiters.begin(), asked.waiters.end(),
                    [](const Waiter& waiter) { return !waiter.is_abandoned->load(); }))
      return;
    forget(asked);  // who asks from now on begins anew
    throw Abandoned();
  }

  [[nodiscard]] job::TableObserver checked(Asked& asked) {
    return {.begin = [this, &asked](const models::Strategy&, std::size_t, std::size_t) {
      check(asked);
    }};
  }

  void check_draws(const job::Job& job, int ranks) const {
    if (!job.stragglers) return;
    const double most = std::max(2.0, limits_.most_draws / ranks);
    if (job.stragglers->iterations > most)
      throw InputError(
          {"--iterations"},
          fmt::format("{} of {} ranks take too long here", job.stragglers->iterations, ranks),
          fmt::format("write at most {:.0f}, or ask the command", most));
  }

  void begin_table(const AskedPointer& asked) {
    try {
      check(*asked);
      asked->job.emplace(job::load_job(
          asked->options, {.given = given_of(asked->options, own_), .is_of_one_size = true}));
      const job::Job& job = *asked->job;
      const int ranks = ranks_of(job);
      check_draws(job, ranks);
      asked->parts.emplace(job, job.networks.front(), ranks);
      const auto predict = [this, asked](std::size_t part) {
        asked->parts->predict(part, checked(*asked));
      };
      const auto documents = [asked]() -> Documents {
        const job::PredictionTable table = asked->parts->table();
        return {text(job::prediction_document().text(table) + "\n"), text(best_timeline(table))};
      };
      share_out(asked, asked->parts->count(), &Workers::add_first, predict, documents);
    } catch (...) {
      fail(*asked, failure_of_exception(limits_));
    }
  }

  void begin_curve(const AskedPointer& asked) {
    try {
      check(*asked);
      const simulator::Question& options = asked->options;
      if (job::load_stragglers(options.stragglers, models::max_ranks))
        throw InputError("a curve has no stragglers", "leave their options out");
      asked->job.emplace(job::load_job(options, {.given = given_of(options, own_)}));
      asked->ranks = job::parse_rank_range(options.ranks, asked->job->cluster);
      choose_baseline(*asked->job, asked->ranks);
      if (asked->ranks.size() > limits_.most_points)
        throw InputError({"--ranks"}, fmt::format("{} numbers of ranks", asked->ranks.size()),
                         fmt::format("give at most {}", limits_.most_points));
      asked->points.resize(asked->ranks.size());
      const auto predict = [this, asked](std::size_t point) {
        asked->points[point].emplace(predict_table(*asked->job, asked->job->networks.front(),
                                                   asked->ranks[point], checked(*asked)));
      };
      const auto documents = [asked]() -> Documents {
        std::vector<job::PredictionTable> tables;
        for (auto& point : asked->points) tables.push_back(*std::move(point));
        return {text(job::scaling_document().text({tables}) + "\n")};
      };
      share_out(asked, asked->ranks.size(), &Workers::add, predict, documents);
    } catch (...) {
      fail(*asked, failure_of_exception(limits_));
    }
  }

  // Has all workers predict `count` parts of a question. The last ones, which are the strategies of many
  // messages and the largest numbers of ranks, take longest, and so begin first.
  template <class Predict, class Documented>
  void share_out(const AskedPointer& asked, std::size_t count,
                 bool (Workers::*add)(std::vector<std::function<void()>>), Predict predict,
                 Documented documents) {
    asked->left = count;
    std::vector<std::function<void()>> tasks;
    for (std::size_t part = count; part-- > 0;) {
      tasks.emplace_back([this, asked, part, predict, documents] {
        try {
          check(*asked);
          predict(part);
          if (--asked->left == 0) finish(*asked, documents());
        } catch (...) {
          fail(*asked, failure_of_exception(limits_));
        }
      });
    }
    if (!(workers_.*add)(std::move(tasks)))
      fail(*asked, failure(503, "too many questions wait: ask again"));
  }

  void finish(Asked& asked, const Documents& documents) {
    std::vector<Waiter> waiters;
    {
      const std::lock_guard lock(mutex_);
      answers_.keep(asked.question, documents);
      waiters = taken(asked);
    }
    for (const Waiter& waiter : waiters) waiter.reply({200, json_type, documents[waiter.document]});
  }

  // The first failure of a part or a point is that of the whole.
  void fail(Asked& asked, const HttpResponse& response) {
    if (asked.has_failed.exchange(true)) return;
    std::vector<Waiter> waiters;
    {
      const std::lock_guard lock(mutex_);
      waiters = taken(asked);
    }
    for (const Waiter& waiter : waiters) waiter.reply(response);
  }

  // Who waits for a question that is answered. Needs the mutex.
  [[nodiscard]] std::vector<Waiter> taken(Asked& asked) {
    forget(asked);
    return std::exchange(asked.waiters, {});
  }

  // Needs the mutex.
  void forget(const Asked& asked) {
    const auto found = asked_.find(asked.question);
    if (found != asked_.end() && found->second.get() == &asked) asked_.erase(found);
  }

  const WhatIfLimits limits_;
  const OwnFiles own_;
  const std::map<std::string, std::pair<std::string, std::shared_ptr<const std::string>>> statics_;
  std::mutex mutex_;  // guards what follows
  Answers answers_;
  std::map<std::string, AskedPointer> asked_;
  Workers workers_;  // last, because its threads use the rest
};

WhatIfService::WhatIfService(const WhatIfLimits& limits, OwnFiles own)
    : state_(std::make_unique<State>(limits, std::move(own))) {}

WhatIfService::~WhatIfService() = default;

void WhatIfService::answer(const HttpRequest& request, Reply reply) {
  state_->answer(request, reply);
}

}  // namespace paceline::serve
