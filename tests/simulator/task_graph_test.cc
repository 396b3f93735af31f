#include "simulator/iteration/task_graph.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace paceline::simulator {
namespace {

struct Drawn {
  std::vector<Task> tasks;
  std::vector<Dependency> dependencies;
};

// Tasks of two streams; each waits for some of those before it, and for any in the iterations before.
Drawn draw_graph() {
  Drawn drawn;
  const int count = *rc::gen::inRange(1, 12);
  for (int task = 0; task < count; ++task) {
    drawn.tasks.push_back(
        {.resource = *rc::gen::element(Resource::compute, Resource::communication),
         .index = task,
         .duration = Seconds{static_cast<double>(*rc::gen::inRange(0, 5))}});
    for (int from = 0; from < count; ++from) {
      if (*rc::gen::inRange(0, 4) != 0) continue;
      drawn.dependencies.push_back({from, task, from < task ? *rc::gen::inRange(0, 3) : 1});
    }
  }
  return drawn;
}

// The order by its definition: of the tasks that nothing holds back, the last that became ready, and one
// of the compute stream only where there is no other.
std::vector<int> order_by_definition(const Drawn& graph) {
  std::vector<int> order;
  std::vector<int> ready;
  std::vector<bool> is_known(graph.tasks.size(), false);
  const auto is_done = [&](int task) {
    return std::find(order.begin(), order.end(), task) != order.end();
  };
  const auto add_ready = [&](int task) {
    const bool waits = std::any_of(
        graph.dependencies.begin(), graph.dependencies.end(),
        [&](const Dependency& d) { return d.to == task && d.lag == 0 && !is_done(d.from); });
    if (waits || is_known[static_cast<std::size_t>(task)]) return;
    is_known[static_cast<std::size_t>(task)] = true;
    ready.push_back(task);
  };
  for (std::size_t task = 0; task < graph.tasks.size(); ++task) add_ready(static_cast<int>(task));
  while (!ready.empty()) {
    auto next = std::find_if(ready.rbegin(), ready.rend(), [&](int task) {
      return graph.tasks[static_cast<std::size_t>(task)].resource != Resource::compute;
    });
    if (next == ready.rend()) next = ready.rbegin();
    const int task = *next;
    ready.erase(std::next(next).base());
    order.push_back(task);
    for (const Dependency& d : graph.dependencies)
      if (d.from == task && d.lag == 0) add_ready(d.to);
  }
  return order;
}

RC_GTEST_PROP(TaskGraph, OrdersTasksByTheirDefinition, ()) {
  const Drawn graph = draw_graph();
  const std::vector<int> order = task_order(graph.tasks, graph.dependencies);
  RC_ASSERT(order == order_by_definition(graph));
  const auto place = [&](int task) { return std::find(order.begin(), order.end(), task); };
  for (const Dependency& d : graph.dependencies)
    if (d.lag == 0) RC_ASSERT(place(d.from) < place(d.to));
}

// Every way through the graph is tried.
RC_GTEST_PROP(TaskGraph, TheLongestPathIsTheLongestOfAllPaths, ()) {
  const Drawn graph = draw_graph();
  const std::function<double(int)> longest_to = [&](int task) {
    double before = 0;
    for (const Dependency& d : graph.dependencies)
      if (d.to == task && d.lag == 0) before = std::max(before, longest_to(d.from));
    return before + graph.tasks[static_cast<std::size_t>(task)].duration.value();
  };
  double longest = 0;
  for (std::size_t task = 0; task < graph.tasks.size(); ++task)
    longest = std::max(longest, longest_to(static_cast<int>(task)));
  const LongestPath path = longest_path(graph.tasks, graph.dependencies);
  RC_ASSERT(path.length == Seconds{longest});
  double sum = 0;
  for (const int task : path.tasks)
    sum += graph.tasks[static_cast<std::size_t>(task)].duration.value();
  RC_ASSERT(sum == longest);
  for (std::size_t i = 1; i < path.tasks.size(); ++i)
    RC_ASSERT(
        std::any_of(graph.dependencies.begin(), graph.dependencies.end(), [&](const Dependency& d) {
          return d.from == path.tasks[i - 1] && d.to == path.tasks[i] && d.lag == 0;
        }));
}

TEST(TaskGraph, ACircleIsABrokenInvariant) {
  const std::vector<Task> tasks(2);
  const std::vector<Dependency> circle = {{0, 1, 0}, {1, 0, 0}};
  EXPECT_DEATH((void)task_order(tasks, circle), "circle");
  const std::vector<Dependency> spiral = {{0, 1, 0}, {1, 0, 1}};
  EXPECT_EQ(task_order(tasks, spiral), (std::vector<int>{0, 1}));
}

TEST(TaskGraph, TextsEscapeNames) {
  const std::vector<Task> tasks(1);
  const auto note = [](int) { return TaskNote{"a \"b\" <c> & d", true}; };
  const std::string xml = graph_text(tasks, {}, note, GraphFormat::graphml);
  EXPECT_NE(xml.find("a &quot;b&quot; &lt;c&gt; &amp; d"), std::string::npos) << xml;
  const std::string dot = graph_text(tasks, {}, note, GraphFormat::dot);
  EXPECT_NE(dot.find("label=\"a \\\"b\\\" <c> & d\""), std::string::npos) << dot;
}

}  // namespace
}  // namespace paceline::simulator
