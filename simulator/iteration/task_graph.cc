// Tests: tests/simulator/task_graph_test.cc, tests/cli/show_dag_test.py.
#include "simulator/iteration/task_graph.h"

#include <algorithm>
#include <array>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/dag_shortest_paths.hpp>
#include <boost/graph/graphml.hpp>
#include <boost/graph/graphviz.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <cmath>
#include <cstddef>
#include <sstream>
#include <string_view>
#include <utility>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

struct Edge {
  double weight = 0;  // the negative duration of the task that it comes from
  int lag = 0;
};
using Graph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, Edge>;
using Vertex = boost::graph_traits<Graph>::vertex_descriptor;
using EdgeOf = boost::graph_traits<Graph>::edge_descriptor;
using BareGraph = boost::compressed_sparse_row_graph<boost::directedS>;

// The dependencies of lag 0, without what they weigh.
BareGraph bare_graph_of(std::size_t tasks, std::span<const Dependency> dependencies) {
  std::vector<std::pair<Vertex, Vertex>> ends;
  ends.reserve(dependencies.size());
  for (const Dependency& d : dependencies)
    if (d.lag == 0) ends.emplace_back(static_cast<Vertex>(d.from), static_cast<Vertex>(d.to));
  return {boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), tasks};
}

// The edges of a vertex stand in the order of its dependencies.
Graph graph_of(std::span<const Task> tasks, std::span<const Dependency> dependencies, int most_lag,
               bool has_source = false) {
  std::vector<std::pair<Vertex, Vertex>> ends;
  std::vector<Edge> edges;
  for (const Dependency& d : dependencies) {
    if (d.lag > most_lag) continue;
    ends.emplace_back(static_cast<Vertex>(d.from), static_cast<Vertex>(d.to));
    edges.push_back({-tasks[to_size(d.from)].duration.value(), d.lag});
  }
  // A source that every task depends on.
  for (std::size_t task = 0; has_source && task < tasks.size(); ++task) {
    ends.emplace_back(tasks.size(), task);
    edges.push_back({});
  }
  return {boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), edges.begin(),
          tasks.size() + (has_source ? 1 : 0)};
}

// Tasks that are ready, as the buffer of a breadth-first visit: the next is the last one that is not of
// the compute stream.
class ReadyTasks {
 public:
  explicit ReadyTasks(std::span<const Task> tasks) : tasks_(tasks) {}
  void push(Vertex task) {
    (tasks_[task].resource == Resource::compute ? compute_ : others_).push_back(task);
  }
  [[nodiscard]] Vertex top() const { return others_.empty() ? compute_.back() : others_.back(); }
  void pop() { (others_.empty() ? compute_ : others_).pop_back(); }
  [[nodiscard]] bool empty() const { return others_.empty() && compute_.empty(); }

 private:
  std::span<const Task> tasks_;
  std::vector<Vertex> compute_;
  std::vector<Vertex> others_;
};

// Counts the edges into each task that were not examined yet, and keeps the tasks as they come.
struct OrderVisitor : boost::default_bfs_visitor {
  std::vector<int>* awaited;
  std::vector<int>* order;
  void examine_vertex(Vertex task, const BareGraph&) const {
    order->push_back(static_cast<int>(task));
  }
  void examine_edge(const boost::graph_traits<BareGraph>::edge_descriptor& edge,
                    const BareGraph& graph) const {
    --(*awaited)[target(edge, graph)];
  }
};

// The colours of a breadth-first visit in which a task is white, that is to be visited, once no edge
// into it is left.
struct ReadyColors {
  using key_type = Vertex;
  using value_type = boost::default_color_type;
  using reference = value_type;
  using category = boost::read_write_property_map_tag;
  const std::vector<int>* awaited;
  friend value_type get(const ReadyColors& colors, Vertex task) {
    return (*colors.awaited)[task] == 0 ? boost::white_color : boost::gray_color;
  }
  friend void put(const ReadyColors&, Vertex, value_type) {}
};

constexpr std::array<std::pair<GraphFormat, std::string_view>, 2> format_names = {
    {{GraphFormat::dot, "dot"}, {GraphFormat::graphml, "graphml"}}};

}  // namespace

std::vector<int> task_order(std::span<const Task> tasks, std::span<const Dependency> dependencies) {
  const BareGraph graph = bare_graph_of(tasks.size(), dependencies);
  std::vector<int> awaited(tasks.size(), 0);
  for (const Dependency& d : dependencies)
    if (d.lag == 0) ++awaited[to_size(d.to)];
  std::vector<Vertex> sources;
  for (std::size_t task = 0; task < tasks.size(); ++task)
    if (awaited[task] == 0) sources.push_back(task);
  std::vector<int> order;
  order.reserve(tasks.size());
  OrderVisitor visitor;
  visitor.awaited = &awaited;
  visitor.order = &order;
  ReadyTasks ready(tasks);
  boost::breadth_first_visit(graph, sources.begin(), sources.end(), ready, visitor,
                             ReadyColors{&awaited});
  PACELINE_ASSERT(order.size() == tasks.size(),
                  "the tasks of an iteration do not wait for each other in a circle");
  return order;
}

LongestPath longest_path(std::span<const Task> tasks, std::span<const Dependency> dependencies) {
  if (tasks.empty()) return {};
  const Graph graph = graph_of(tasks, dependencies, 0, /*has_source=*/true);
  const Vertex source = tasks.size();
  std::vector<double> distance(tasks.size() + 1);
  std::vector<Vertex> before(tasks.size() + 1);
  const auto index = get(boost::vertex_index, graph);
  boost::dag_shortest_paths(
      graph, source,
      boost::weight_map(get(&Edge::weight, graph))
          .distance_map(boost::make_iterator_property_map(distance.begin(), index))
          .predecessor_map(boost::make_iterator_property_map(before.begin(), index)));
  const auto end_of = [&](Vertex task) { return tasks[task].duration.value() - distance[task]; };
  Vertex last = 0;
  for (Vertex task = 1; task < tasks.size(); ++task)
    if (end_of(task) > end_of(last)) last = task;
  LongestPath path{Seconds{end_of(last)}, {}};
  for (Vertex task = last; task != source; task = before[task])
    path.tasks.push_back(static_cast<int>(task));
  std::reverse(path.tasks.begin(), path.tasks.end());
  return path;
}

std::string_view name(GraphFormat format) {
  return name_in(format_names, format);
}

GraphFormat graph_format_from_name(std::string_view text) {
  return value_named(format_names, "format", text);
}

std::string graph_text(std::span<const Task> tasks, std::span<const Dependency> dependencies,
                       const std::function<TaskNote(int task)>& note, GraphFormat format) {
  const Graph graph = graph_of(tasks, dependencies, /*most_lag=*/2);
  std::vector<TaskNote> notes;
  for (std::size_t task = 0; task < tasks.size(); ++task)
    notes.push_back(note(static_cast<int>(task)));
  boost::dynamic_properties properties;
  const auto of_tasks = [&](const char* key, const auto& value) {
    properties.property(key, boost::make_function_property_map<Vertex>(value));
  };
  const auto of_edges = [&](const char* key, const auto& value) {
    properties.property(key, boost::make_function_property_map<EdgeOf>(value));
  };
  of_tasks("name", [&](Vertex task) { return notes[task].name; });
  of_tasks("kind", [&](Vertex task) { return std::string(models::name(tasks[task].kind)); });
  of_tasks("resource",
           [&](Vertex task) { return std::string(models::name(tasks[task].resource)); });
  of_tasks("stream", [&](Vertex task) { return tasks[task].stream; });
  of_tasks("duration_ns",
           [&](Vertex task) { return std::lround(1e9 * tasks[task].duration.value()); });
  of_tasks("critical", [&](Vertex task) { return notes[task].is_critical; });
  of_edges("lag", [&](const EdgeOf& edge) { return graph[edge].lag; });
  std::ostringstream text;
  if (format == GraphFormat::graphml) {
    boost::write_graphml(text, graph, properties, /*ordered_vertices=*/true);
    return std::move(text).str();
  }
  of_tasks("id", [](Vertex task) { return task; });
  of_tasks("label", [&](Vertex task) { return notes[task].name; });
  of_tasks("color",
           [&](Vertex task) { return std::string(notes[task].is_critical ? "red" : "black"); });
  of_edges("style", [&](const EdgeOf& edge) {
    return std::string(graph[edge].lag == 0 ? "solid" : "dashed");
  });
  boost::write_graphviz_dp(text, graph, properties, "id");
  return std::move(text).str();
}

}  // namespace paceline::simulator
