// The tasks of an iteration as a graph of Boost.Graph: an order of them, the longest path, and the graph
// as text. Vertices are tasks, edges are dependencies.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "simulator/iteration/task.h"

namespace paceline::simulator {

// The tasks in an order in which every dependency of lag 0 goes forward, and in which a task of the
// compute stream comes after all tasks that do not wait for it. Of several that could be next it is the
// one that was ready last. Aborts where tasks wait for each other in a circle. O(tasks + dependencies).
[[nodiscard]] std::vector<int> task_order(std::span<const Task> tasks,
                                          std::span<const Dependency> dependencies);

// The tasks that one iteration by itself takes longest for, the first task first.
struct LongestPath {
  Seconds length;
  std::vector<int> tasks;
};

// Over the dependencies of lag 0. O(tasks + dependencies).
[[nodiscard]] LongestPath longest_path(std::span<const Task> tasks,
                                       std::span<const Dependency> dependencies);

enum class GraphFormat { dot, graphml };
[[nodiscard]] std::string_view name(GraphFormat format);
// Throws InputError.
[[nodiscard]] GraphFormat graph_format_from_name(std::string_view text);

// What is said of a task beside what it has itself.
struct TaskNote {
  std::string name;
  bool is_critical = false;  // on the critical path of the steady state (steady_state.h)
};

// The graph as a text of this format, with all dependencies. Tasks have `name`, `kind`, `resource`,
// `stream`, `duration_ns` (the library writes six digits of a number in seconds) and `critical`, dependencies have `lag`; DOT also has labels and colours.
[[nodiscard]] std::string graph_text(std::span<const Task> tasks,
                                     std::span<const Dependency> dependencies,
                                     const std::function<TaskNote(int task)>& note,
                                     GraphFormat format);

}  // namespace paceline::simulator
