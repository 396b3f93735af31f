# Mistakes that the compiler must refuse, each with its message, and for each a control that differs
# in the mistake only and must compile.
# paceline_must_not_compile(<name> <file> <case> <message of g++ or clang, a regular expression>)
function(paceline_must_not_compile name file case message)
  set(command "${CMAKE_CXX_COMPILER}" -std=c++20 -fsyntax-only "-I${PROJECT_SOURCE_DIR}" -DCASE=${case}
    "${CMAKE_CURRENT_SOURCE_DIR}/models/must_not_compile/${file}")
  add_test(NAME must-not-compile.${name} COMMAND ${command} -DWRONG)
  set_tests_properties(must-not-compile.${name} PROPERTIES PASS_REGULAR_EXPRESSION "${message}")
  add_test(NAME must-not-compile.${name}.control COMMAND ${command})
  set_tests_properties(must-not-compile.${name} must-not-compile.${name}.control PROPERTIES
    LABELS unit ENVIRONMENT "LC_ALL=C" TIMEOUT ${paceline_hang_s})
endfunction()
set(no_operator "no match for 'operator\\%'|invalid operands to binary expression")
string(REPLACE % + no_plus "${no_operator}")
string(REPLACE "\\%" < no_less "${no_operator}")
set(no_conversion "[Cc]onver(t|sion)")
paceline_must_not_compile(seconds-plus-bytes units.cc 1 "${no_plus}")
paceline_must_not_compile(alpha-plus-n units.cc 2 "${no_plus}")
paceline_must_not_compile(bandwidth-as-beta units.cc 3 "${no_conversion}")
paceline_must_not_compile(beta-as-alpha units.cc 4 "${no_conversion}")
paceline_must_not_compile(number-as-seconds units.cc 5 "${no_conversion}")
paceline_must_not_compile(seconds-as-number units.cc 6 "${no_conversion}")
paceline_must_not_compile(seconds-beside-bytes units.cc 7 "${no_less}")
paceline_must_not_compile(work-over-bandwidth units.cc 8 "${no_conversion}")
