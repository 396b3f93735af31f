// Tests: tests/experiments/published_source_test.cc.
#include "experiments/published/source.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>

#include "experiments/published/csv.h"
#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/collective/catalogue.h"

namespace paceline::experiments {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<Role, std::string_view>, 5> roles = {
    {{Role::calibrates, "calibrates"},
     {Role::second_point, "second-point"},
     {Role::predicted, "predicted"},
     {Role::reference, "reference"},
     {Role::left_out, "left-out"}}};
constexpr std::array<std::pair<Quantity, std::string_view>, 8> quantities = {
    {{Quantity::throughput, "throughput"},
     {Quantity::iteration, "iteration"},
     {Quantity::efficiency, "efficiency"},
     {Quantity::ratio, "ratio"},
     {Quantity::minutes, "minutes"},
     {Quantity::flops_per_parameter, "flops-per-parameter"},
     {Quantity::idle_ranks, "idle-ranks"},
     {Quantity::memory, "memory"}}};
constexpr std::array<PublishedUnit, 17> units = {
    {{"samples/s", Quantity::throughput, 1},
     {"images/s", Quantity::throughput, 1},
     {"sequences/s", Quantity::throughput, 1},
     {"tokens/s", Quantity::throughput, 1, true},
     {"tokens/s/GPU", Quantity::throughput, 1, true, true},
     {"s", Quantity::iteration, 1},
     {"ms", Quantity::iteration, 1e-3},
     {"us", Quantity::iteration, 1e-6},
     {"%", Quantity::efficiency, 0.01},
     {"x", Quantity::efficiency, 1},
     {"x", Quantity::ratio, 1},
     {"min", Quantity::minutes, 60},
     {"h", Quantity::minutes, 3600},
     {"s", Quantity::minutes, 1},
     {"FLOP", Quantity::flops_per_parameter, 1},
     {"ranks", Quantity::idle_ranks, 1},
     {"GiB", Quantity::memory, 1024.0 * 1024 * 1024}}};

constexpr int most_batch = 1 << 20;
constexpr int most_sequence = 1 << 20;

// Half of the last digit of a number as it is printed: 0.05 of "253.1", 5 of "2e1".
double rounding_of(std::string_view text) {
  const std::size_t exponent_at = text.find_first_of("eE");
  const std::string_view digits = text.substr(0, exponent_at);
  const std::size_t point = digits.find('.');
  double places =
      point == std::string_view::npos ? 0.0 : static_cast<double>(digits.size() - point - 1);
  if (exponent_at != std::string_view::npos)
    places -=
        parse_number(text.substr(exponent_at + (text[exponent_at + 1] == '+' ? 2 : 1)), -300, 300);
  return 0.5 * std::pow(10.0, -places);
}

// The fields of one record, one after the other, with errors that name the column.
class Fields {
 public:
  Fields(const CsvRecord& record, const std::vector<std::string>& columns)
      : record_(record), columns_(columns) {}

  std::string text() { return record_.fields[at_++]; }
  std::string given() {
    const std::string value = text();
    if (value.empty())
      throw InputError(fmt::format("{} is empty", columns_[at_ - 1]), "every row needs it");
    return value;
  }
  template <class F>
  auto parsed(F parse) {
    const std::string value = given();
    try {
      return parse(std::string_view(value));
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", columns_[at_ - 1], error.problem()), error.remedy());
    }
  }
  int count(int most) {
    return parsed(
        [most](std::string_view text) { return static_cast<int>(parse_count(text, 1, most)); });
  }
  [[nodiscard]] bool next_is_empty() const { return record_.fields[at_].empty(); }

 private:
  const CsvRecord& record_;
  const std::vector<std::string>& columns_;
  std::size_t at_ = 0;
};

const std::vector<std::string> training_columns = {
    "id",      "where",    "what",     "series",    "role",  "cluster",
    "model",   "batch",    "sequence", "precision", "ranks", "strategy",
    "options", "quantity", "against",  "published", "unit",  "note"};
const std::vector<std::string> all_reduce_columns = {
    "id",      "where",     "series", "role",         "cluster", "ranks",
    "library", "algorithm", "bytes",  "published_us", "note"};

void require_note(Role role, const std::string& note) {
  if (role == Role::left_out && note.empty())
    throw InputError("a row that is left out, without a note", "say in its note why");
}

// What a row that is left out would be needs not be known.
template <class F, class T>
T unless_left_out(Role role, Fields& fields, F read, T otherwise) {
  if (role != Role::left_out) return read();
  (void)fields.text();
  return otherwise;
}

void read_published(Fields& fields, TrainingRow& row) {
  if (row.role == Role::left_out || (row.role == Role::reference && fields.next_is_empty())) {
    (void)fields.text();
    return;
  }
  row.published = fields.parsed([&row](std::string_view text) {
    const double value = parse_number(text, 1e-9, 1e12);
    row.rounding = rounding_of(text);
    return value;
  });
}

TrainingRow training_row(const CsvRecord& record) {
  Fields fields(record, training_columns);
  TrainingRow row;
  row.line = record.line;
  row.id = fields.given();
  row.where = fields.text();
  row.what = fields.given();
  row.series = fields.text();
  row.role = fields.parsed([](std::string_view t) { return value_named(roles, "role", t); });
  const bool out = row.role == Role::left_out;
  if (!out && row.series.empty()) throw InputError("series is empty", "every row needs it");
  row.cluster = out ? fields.text() : fields.given();
  row.model = out ? fields.text() : fields.given();
  row.batch = unless_left_out(
      row.role, fields, [&] { return fields.count(most_batch); }, 0);
  if (fields.next_is_empty() || out) {
    (void)fields.text();
  } else {
    row.sequence = fields.count(most_sequence);
  }
  row.precision = unless_left_out(
      row.role, fields, [&] { return fields.parsed(models::precision_from_name); },
      models::Precision::fp32);
  row.ranks = unless_left_out(
      row.role, fields, [&] { return fields.count(models::max_ranks); }, 0);
  row.strategy = out ? fields.text() : fields.given();
  row.options = fields.text();
  row.quantity = unless_left_out(
      row.role, fields,
      [&] {
        return fields.parsed(
            [](std::string_view t) { return value_named(quantities, "quantity", t); });
      },
      Quantity::throughput);
  row.against = fields.text();
  read_published(fields, row);
  row.unit = fields.text();
  row.note = fields.text();
  require_note(row.role, row.note);
  if (!out && (row.published > 0 || !row.unit.empty()))
    if (published_unit(row.quantity, row.unit).of_tokens && !row.sequence)
      throw InputError(fmt::format("{} of samples without a length", row.unit),
                       "write the tokens of a sample under sequence");
  const bool is_relative = row.quantity == Quantity::efficiency || row.quantity == Quantity::ratio;
  const bool is_reference = row.role == Role::reference && row.published == 0;
  if (!out && !is_reference && is_relative && row.against.empty())
    throw InputError(fmt::format("a row of {} against nothing", name(row.quantity)),
                     "name the id of another row under against");
  if (!out && !is_relative && !row.against.empty())
    throw InputError(fmt::format("a row of {} against another", name(row.quantity)),
                     "leave against empty");
  return row;
}

AllReduceRow all_reduce_row(const CsvRecord& record) {
  Fields fields(record, all_reduce_columns);
  AllReduceRow row;
  row.line = record.line;
  row.id = fields.given();
  row.where = fields.text();
  row.series = fields.text();
  row.role = fields.parsed([](std::string_view t) { return value_named(roles, "role", t); });
  const bool out = row.role == Role::left_out;
  if (row.role == Role::reference || row.role == Role::second_point)
    throw InputError(fmt::format("an all-reduce is no {}", name(row.role)),
                     "write calibrates, predicted or left-out");
  row.cluster = out ? fields.text() : fields.given();
  row.ranks = unless_left_out(
      row.role, fields, [&] { return fields.count(models::max_ranks); }, 0);
  row.library = fields.text();
  row.algorithm = out ? fields.text() : fields.given();
  if (const std::size_t blank = row.algorithm.find(' '); !out && blank != std::string::npos) {
    row.collective = models::collective_from_name(row.algorithm.substr(blank + 1));
    row.algorithm.resize(blank);
  }
  const auto number = [&fields](double most) {
    return fields.parsed([most](std::string_view t) { return parse_number(t, 1e-9, most); });
  };
  row.bytes = unless_left_out(
      row.role, fields, [&] { return number(1e15); }, 0.0);
  row.published_s = unless_left_out(
      row.role, fields,
      [&] {
        return fields.parsed([&row](std::string_view text) {
          constexpr double us = 1e-6;
          row.rounding_s = us * rounding_of(text);
          return us * parse_number(text, 1e-9, 1e12);
        });
      },
      0.0);
  row.note = fields.text();
  require_note(row.role, row.note);
  return row;
}

// Reads each record with `read`, and checks that no id stands twice.
template <class Row>
std::vector<Row> rows_of(const std::string& text, const std::string& file,
                         const std::vector<std::string>& columns, Row (*read)(const CsvRecord&)) {
  std::vector<Row> rows;
  std::set<std::string> ids;
  for (const CsvRecord& record : parse_csv(text, file, columns)) {
    const InputPlace place{file, record.line};
    try {
      rows.push_back(read(record));
    } catch (const InputError& error) {
      throw error.at(place);
    }
    if (!ids.insert(rows.back().id).second)
      throw InputError(place, fmt::format("the id {} stands twice", in_quotes(rows.back().id)),
                       "give each row an id of its own");
  }
  return rows;
}

// A second point says what several ranks lose against the one that computes alone, and so there
// must be a first: a row of the series on fewer ranks that calibrates.
void check_second_points(const Source& source, const std::string& file) {
  for (const TrainingRow& row : source.training) {
    if (row.role != Role::second_point) continue;
    const bool has_first = std::any_of(
        source.training.begin(), source.training.end(), [&row](const TrainingRow& other) {
          return other.role == Role::calibrates && other.series == row.series &&
                 other.ranks < row.ranks;
        });
    if (!has_first)
      throw InputError({file, row.line},
                       fmt::format("series {} has no first point", in_quotes(row.series)),
                       "let a row of it on fewer ranks calibrate");
  }
}

// Every row that others are against must be there and be predicted as a throughput itself.
void check_against(const Source& source, const std::string& file) {
  for (const TrainingRow& row : source.training) {
    if (row.against.empty() || row.role == Role::left_out) continue;
    const InputPlace place{file, row.line};
    const TrainingRow* other = source.row(row.against);
    if (other == nullptr)
      throw InputError(place,
                       fmt::format("there is no row {} to be against", in_quotes(row.against)),
                       "name the id of a row of this file");
    if (other->role == Role::left_out)
      throw InputError(place,
                       fmt::format("it is against {}, which is left out", in_quotes(row.against)),
                       "name a row that is predicted, or leave this one out, too");
  }
}

// Whether a file of a source's folder is one that is read.
bool belongs(const std::string& path) {
  return path == "README.md" || path == "expected.csv" || path == "all_reduce.csv" ||
         ((path.starts_with("clusters/") || path.starts_with("networks/")) &&
          (path.ends_with(".yaml") || path.ends_with(".json")));
}

}  // namespace

bool is_spent(Role role, CalibrationPoints points) {
  if (points == CalibrationPoints::none) return false;
  return role == Role::calibrates ||
         (role == Role::second_point && points == CalibrationPoints::two);
}

double unit_factor(const TrainingRow& row) {
  const PublishedUnit unit = published_unit(row.quantity, row.unit);
  return unit.factor * (unit.of_rank ? row.ranks : 1) /
         (unit.of_tokens ? row.sequence.value_or(1) : 1);
}

PublishedUnit published_unit(Quantity quantity, std::string_view name) {
  std::vector<std::string> known;
  for (const PublishedUnit& unit : units) {
    if (unit.quantity != quantity) continue;
    if (unit.name == name) return unit;
    known.emplace_back(unit.name);
  }
  throw unknown_name(fmt::format("unit of {}", experiments::name(quantity)), name, known);
}

const TrainingRow* Source::row(std::string_view id) const {
  const auto found = std::find_if(training.begin(), training.end(),
                                  [id](const TrainingRow& r) { return r.id == id; });
  return found == training.end() ? nullptr : &*found;
}

std::string title_of(std::string_view readme) {
  if (!readme.starts_with("# ")) return "";
  std::string title(readme.substr(2, readme.find('\n') - 2));
  while (!title.empty() && static_cast<unsigned char>(title.back()) <= ' ') title.pop_back();
  return title;
}

std::string_view name(Role role) {
  return name_in(roles, role);
}

std::string_view name(Quantity quantity) {
  return name_in(quantities, quantity);
}

Source read_source(SourceFiles files) {
  Source source;
  source.files = std::move(files);
  const auto& texts = source.files.texts;
  if (const auto readme = texts.find("README.md"); readme != texts.end())
    source.title = title_of(readme->second);
  if (source.title.empty()) source.title = source.files.name;
  const auto training = texts.find("expected.csv");
  const auto all_reduces = texts.find("all_reduce.csv");
  if (training == texts.end() && all_reduces == texts.end())
    throw InputError({source.files.folder}, "neither expected.csv nor all_reduce.csv is there",
                     "a source has one of them");
  if (training != texts.end()) {
    const std::string file = source.path("expected.csv");
    source.training = rows_of(training->second, file, training_columns, training_row);
    check_against(source, file);
    check_second_points(source, file);
  }
  if (all_reduces != texts.end())
    source.all_reduces = rows_of(all_reduces->second, source.path("all_reduce.csv"),
                                 all_reduce_columns, all_reduce_row);
  return source;
}

SourceFiles source_files(const std::string& folder,
                         const std::function<std::string(const std::string&)>& read) {
  const fs::path root(folder);
  std::error_code error;
  if (!fs::is_directory(root, error))
    throw InputError({folder}, "this is no folder", "give a folder with expected.csv");
  SourceFiles files;
  files.folder = folder;
  while (files.folder.size() > 1 && files.folder.back() == '/') files.folder.pop_back();
  files.name = fs::path(files.folder).filename().string();
  for (const char* below : {"", "clusters", "networks"}) {
    std::vector<std::string> paths;
    for (const fs::directory_entry& entry : fs::directory_iterator(root / below, error)) {
      const std::string path = (fs::path(below) / entry.path().filename()).string();
      if (belongs(path)) paths.push_back(path);
    }
    for (const std::string& path : paths) files.texts[path] = read(files.folder + "/" + path);
  }
  return files;
}

}  // namespace paceline::experiments
