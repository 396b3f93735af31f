// The table of a question's fields: what options, parameters of a query, keywords and words of a row are
// called, what they take, and what they mean.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/field.h"
#include "simulator/question/question.h"

namespace paceline::simulator {

// Groups of help, in the order of the table; those of thresholds are in threshold_fields.h.
inline constexpr std::string_view job_group = "Job";
inline constexpr std::string_view layout_group = "Layout of the ranks";
inline constexpr std::string_view precision_group = "Precision";
inline constexpr std::string_view computation_group = "What computation takes";
inline constexpr std::string_view engine_group = "Engines";
inline constexpr std::string_view straggler_group = "Stragglers";
inline constexpr std::string_view size_group = "Number of ranks";  // one of its fields is given
inline constexpr std::string_view question_group = "Questions";

inline constexpr int most_batch = 1 << 20;  // samples of a rank

// All fields, in the order in which help has them.
[[nodiscard]] std::span<const Field<Question>> question_fields();

// The field of this name, which must be one.
[[nodiscard]] const Field<Question>& question_field(std::string_view name);

// Those of stragglers, which a command may take without a question.
[[nodiscard]] std::span<const Field<StragglerTexts>> straggler_fields();

// The names of fields of these groups, in the order of the table.
[[nodiscard]] std::vector<std::string_view> names_of_groups(
    std::initializer_list<std::string_view> groups);

// The options of fields that are given and that a plan takes the place of.
[[nodiscard]] std::vector<std::string> options_beside_plan(const Question& question);

}  // namespace paceline::simulator
