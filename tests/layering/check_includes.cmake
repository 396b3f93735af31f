# Fails when a folder includes what stands below it in the house (docs/design.md), or when a
# public header shows a third-party library. Run as
#   cmake -D SOURCE_DIR=<root> -P check_includes.cmake
cmake_minimum_required(VERSION 3.25)

set(may_include_models models)
set(may_include_simulator models simulator)
set(may_include_runtime models runtime)
set(may_include_calibration models runtime simulator calibration)
set(may_include_experiments models simulator runtime calibration experiments)
set(may_include_cli models simulator runtime calibration experiments cli)
# Inside models, base stands below everything else.
set(folders models simulator runtime calibration experiments cli)
set(third_party "<(fmt|nlohmann|yaml-cpp|boost|CLI|Eigen|mpi|nccl|cuda|simgrid|spdlog|gtest|dnnl|zlib|turbojpeg|google|isa-l)[./_a-zA-Z]*")
# Headers that show yaml-cpp or nlohmann are private to .cc files of models and in no header set.
set(private_headers models/base/yaml_reader.h models/base/json_reader.h
  models/cluster/catalog_file.h models/cluster/cluster_reader.h models/cluster/figure_reader.h models/cluster/part_reader.h)
set(third_party "<(fmt|nlohmann|yaml-cpp|boost|CLI|Eigen|mpi|nccl|cuda|simgrid|spdlog|gtest|oneapi|dnnl|omp)[./_a-zA-Z]*")
# Headers that show yaml-cpp, nlohmann or oneDNN are private to .cc files of their folder and in no header set.
file(GLOB private_headers RELATIVE "${SOURCE_DIR}" "${SOURCE_DIR}/runtime/network/onednn/*.h")
list(APPEND private_headers models/base/yaml_reader.h models/base/json_reader.h
  models/cluster/catalog_file.h models/cluster/cluster_reader.h models/cluster/figure_reader.h models/cluster/part_reader.h)

set(violations "")
set(files_read 0)
foreach(folder IN LISTS folders)
  file(GLOB_RECURSE files RELATIVE "${SOURCE_DIR}"
       "${SOURCE_DIR}/${folder}/*.h" "${SOURCE_DIR}/${folder}/*.cc" "${SOURCE_DIR}/${folder}/*.cu" "${SOURCE_DIR}/${folder}/*.cuh")
  foreach(file IN LISTS files)
    math(EXPR files_read "${files_read} + 1")
    file(STRINGS "${SOURCE_DIR}/${file}" lines REGEX "^[ \t]*#[ \t]*include")
    foreach(line IN LISTS lines)
      if(line MATCHES "\"([^\"]+)\"")
        set(target "${CMAKE_MATCH_1}")
        string(REGEX REPLACE "/.*" "" target_folder "${target}")
        if(NOT target_folder IN_LIST may_include_${folder})
          string(APPEND violations "\n  ${file} includes \"${target}\": ${folder} may include only ${may_include_${folder}}")
        elseif(file MATCHES "^models/base/" AND NOT target MATCHES "^models/base/")
          string(APPEND violations "\n  ${file} includes \"${target}\": models/base includes nothing else of ours")
        endif()
        if(file MATCHES "\\.h$" AND NOT file IN_LIST private_headers AND target IN_LIST private_headers)
          string(APPEND violations "\n  ${file} includes \"${target}\": it is private to .cc files")
        endif()
      elseif(file MATCHES "\\.h$" AND NOT folder STREQUAL "cli" AND NOT file IN_LIST private_headers AND line MATCHES "${third_party}")
        string(APPEND violations "\n  ${file}: a public header shows a third-party library: ${line}")
      endif()
    endforeach()
  endforeach()
endforeach()

if(files_read EQUAL 0)
  message(FATAL_ERROR "no source files under ${SOURCE_DIR}")
endif()
if(violations)
  message(FATAL_ERROR "the house is not in order:${violations}")
endif()
message(STATUS "layering: ${files_read} files are in order")
