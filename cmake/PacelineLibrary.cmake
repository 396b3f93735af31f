# paceline_library(<folder> SOURCES ... HEADERS ... [PUBLIC libs...] [PRIVATE libs...])
#
# One library for one folder of the house. Its headers form a file set rooted at the
# project, so that each is spelled "models/base/units.h" everywhere and must compile
# alone (test headers.compile-alone).

# For C++ alone: nvcc has options of its own, and warns enough of what it hands to g++.
add_library(paceline_flags INTERFACE)
function(paceline_cxx_flags)
  foreach(flag IN LISTS ARGN)
    target_compile_options(paceline_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${flag}>")
  endforeach()
endfunction()
paceline_cxx_flags(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
target_compile_options(paceline_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler=-Wall,-Wextra,-Wno-unused-parameter,-Wno-unknown-pragmas --Werror all-warnings --expt-relaxed-constexpr>")
# GCC 12 sees overlapping copies in inlined std::string operator+ (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  paceline_cxx_flags(-Wno-restrict)
endif()
# g++ looks for garbage each time that it has allocated a third more, which is a tenth of its time.
# This floor, in kB, lets most units compile without; the largest take 0.6 GB.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  paceline_cxx_flags("SHELL:--param ggc-min-heapsize=1048576")
endif()
if(PACELINE_SANITIZE)
  paceline_cxx_flags(-fsanitize=${PACELINE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(paceline_flags INTERFACE -fsanitize=${PACELINE_SANITIZE})
  # The host's half of CUDA code, too. nvcc takes a comma for the end of an option of g++.
  string(REPLACE "," ";" sanitizers "${PACELINE_SANITIZE}")
  foreach(sanitizer IN LISTS sanitizers)
    target_compile_options(paceline_flags INTERFACE
      "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fsanitize=${sanitizer}>")
  endforeach()
  # g++ 12 takes what is initialised for uninitialised there (GCC bug 105562).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    paceline_cxx_flags(-Wno-maybe-uninitialized)
  endif()
endif()

# What computes is compiled with Release's own -O3. What reads, writes, prints or only calls what
# computes takes milliseconds at any level, and a third less time to compile with this one.
# (-Wmaybe-uninitialized sees ghosts at -O1.)
set(paceline_light_options "$<$<CONFIG:Release>:-O1;-Wno-maybe-uninitialized>")

# paceline_light_sources(<file>...): files of this folder that compute nothing themselves.
function(paceline_light_sources)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS "${paceline_light_options}")
endfunction()

# Modules and what is loaded by path lie beside nothing else, in one folder that programs find from
# their own place (models/base/module.h).
set(paceline_modules lib/paceline)

# paceline_install(...) is install(...), but not in another project that builds ours inside itself.
function(paceline_install)
  if(PACELINE_INSTALL)
    install(${ARGN})
  endif()
endfunction()

function(paceline_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;HEADERS;PUBLIC;PRIVATE")
  add_library(paceline_${folder} STATIC ${ARG_SOURCES})
  add_library(paceline::${folder} ALIAS paceline_${folder})
  # A unit includes its own header first (tests/layering), which shows that this compiles alone. The
  # headers without a unit of their name are compiled one by one where somebody asks for it.
  set(headers_of_units ${ARG_HEADERS})
  set(lone_headers ${ARG_HEADERS})
  foreach(header IN LISTS ARG_HEADERS)
    string(REGEX REPLACE "\\.h$" ".cc" unit "${header}")
    if(unit IN_LIST ARG_SOURCES)
      list(REMOVE_ITEM lone_headers "${header}")
    else()
      list(REMOVE_ITEM headers_of_units "${header}")
    endif()
  endforeach()
  target_sources(paceline_${folder} PUBLIC
    FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${headers_of_units}
    FILE_SET lone_headers TYPE HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}" FILES ${lone_headers})
  set_target_properties(paceline_${folder} PROPERTIES
    VERIFY_INTERFACE_HEADER_SETS ON INTERFACE_HEADER_SETS_TO_VERIFY lone_headers)
  target_include_directories(paceline_${folder} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_features(paceline_${folder} PUBLIC cxx_std_20)
  target_link_libraries(paceline_${folder} PUBLIC ${ARG_PUBLIC} PRIVATE $<BUILD_INTERFACE:paceline_flags> ${ARG_PRIVATE})
  set_target_properties(paceline_${folder} PROPERTIES EXPORT_NAME ${folder})
  paceline_install(TARGETS paceline_${folder} EXPORT pacelineTargets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/paceline" COMPONENT dev
    FILE_SET lone_headers DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/paceline" COMPONENT dev)
endfunction()

# paceline_embed(<target> NAMESPACE <ns> [PATHS] FILES ...)
#
# Makes the text of data files part of the library, so that the command runs from
# anywhere. Generated is `std::string_view embedded_file(std::string_view name)` in the namespace;
# it returns an empty view for a name that was not embedded. Files are known by their names, or,
# with PATHS, by their paths in this folder; `std::vector<std::string_view> embedded_paths()` then
# lists them.
function(paceline_embed target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "PATHS" "NAMESPACE" "FILES")
  set(entries "")
  foreach(file IN LISTS ARG_FILES)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
    file(READ "${file}" text)
    set(name "${file}")
    if(NOT ARG_PATHS)
      get_filename_component(name "${file}" NAME)
    endif()
    string(APPEND entries "    {\"${name}\", R\"__embedded__(${text})__embedded__\"sv},\n")
  endforeach()
  set(list "")
  if(ARG_PATHS)
    set(list "std::vector<std::string_view> embedded_paths();
std::vector<std::string_view> embedded_paths() {
  std::vector<std::string_view> paths;
  for (const auto& entry : files) paths.push_back(entry.first);
  return paths;
}
")
  endif()
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${target}_embedded.cc")
  file(CONFIGURE OUTPUT "${output}" @ONLY CONTENT
"// Generated by paceline_embed from data files of the source tree.
#include <array>
#include <string_view>
#include <utility>
#include <vector>
namespace @ARG_NAMESPACE@ {
namespace {
using namespace std::string_view_literals;
constexpr std::pair<std::string_view, std::string_view> files[] = {
@entries@};
}  // namespace
@list@std::string_view embedded_file(std::string_view name);
std::string_view embedded_file(std::string_view name) {
  for (const auto& [file, text] : files) {
    if (file == name) return text;
  }
  return {};
}
}
")
  target_sources(${target} PRIVATE "${output}")
endfunction()
