// Published results beside ours, as text for people.
#pragma once

#include <span>
#include <string>

#include "cli/table.h"
#include "experiments/reproduction.h"

namespace paceline::cli {

// One source, row by row, in a table of at most `width` characters a line.
[[nodiscard]] std::string to_text(const experiments::Reproduction& result, int width);

// The rows of one source.
[[nodiscard]] Table rows_table(const experiments::Reproduction& result);

// What becomes of the rows of all sources without each mechanism: how many move, the errors of
// training and of single all-reduces, and the bias of each source. `width` as above.
[[nodiscard]] std::string mechanisms_text(std::span<const experiments::Reproduction> with,
                                          std::span<const experiments::Without> without, int width);

// The same in two tables: for all sources together, and the bias of each.
[[nodiscard]] Table mechanisms_table(std::span<const experiments::Reproduction> with,
                                     std::span<const experiments::Without> without);
[[nodiscard]] Table mechanisms_of_sources(std::span<const experiments::Reproduction> with,
                                          std::span<const experiments::Without> without);

// One line for each source, and one for all of them.
[[nodiscard]] std::string summary_text(std::span<const experiments::Reproduction> results,
                                       int width);

// A row for each source and kind of its rows.
[[nodiscard]] Table summary_table(std::span<const experiments::Reproduction> results);

// The command of each row that has one, with the row above it as a comment.
[[nodiscard]] std::string commands_text(std::span<const experiments::Reproduction> results);

}  // namespace paceline::cli
