// Pages: JSON documents of the command as one HTML file that opens from disk, without a network. Style,
// script and data are inside it, and its scripts draw the documents that --json prints, so that a page
// and a program read the same numbers.
//
// What a document holds is data: it reaches the page as text, never as markup. Besides, the page's
// policy (Content-Security-Policy) forbids every script and style but those of this folder, which it
// knows by their SHA-256, and every request.
//
// The files of this folder, in the order in which they are joined (CMakeLists.txt): sharp.js, pixels for
// print; uPlot, which draws lines; format.js, how numbers are written; dom.js, elements; view.js, theme and
// print; charts.js, charts over uPlot; bars.js, bars in tables; timeline.js, tasks by resource; buckets.js,
// buckets over layers; sections.js, what documents have in common; predictions.js, reproduction.js,
// messages.js and comparison.js, a report for each kind of document; report.js, which puts it on the page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline::page {

struct Document {
  std::string role;  // by which the scripts find it: "result", "timeline"; letters and '-'
  std::string json;
};

struct Page {
  std::string title;    // of the browser's window
  std::string command;  // that made it, for people to repeat
  std::string version;  // of the program
  std::vector<Document> documents;
};

// The file. The same page gives the same text. O(text).
[[nodiscard]] std::string html(const Page& page);

// The what-if page, which asks a server (cli/serve) for its documents: "page.css" and "page.js" stand
// beside it there.
[[nodiscard]] std::string what_if_html();
[[nodiscard]] std::string what_if_style();
[[nodiscard]] std::string what_if_script();

// The words of a command as a shell reads them: those with other characters than letters, digits and
// a few marks are in single quotes.
[[nodiscard]] std::string shell_line(const std::vector<std::string>& words);

}  // namespace paceline::page
