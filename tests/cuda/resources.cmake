# What each kernel of the product needs of a GPU, held against tests/golden/cuda. The tables are made
# when the product is built, with its options: nvcc takes seconds for each unit.
set(measure "${CMAKE_CURRENT_SOURCE_DIR}/resources/resources.py")
get_target_property(units paceline_cuda SOURCES)
get_target_property(folder paceline_cuda SOURCE_DIR)
list(FILTER units INCLUDE REGEX "\\.cu$")
set(tables "")
foreach(unit IN LISTS units)
  cmake_path(GET unit STEM name)
  set(table "${CMAKE_CURRENT_BINARY_DIR}/resources/${name}.txt")
  get_source_file_property(options "${folder}/${unit}" TARGET_DIRECTORY paceline_cuda COMPILE_OPTIONS)
  if(NOT options)
    set(options "")
  endif()
  add_custom_command(OUTPUT "${table}"
    COMMAND Python3::Interpreter "${measure}" measure "${CMAKE_CUDA_COMPILER}" "${folder}/${unit}" "${table}"
      "${table}.d" "-I${PROJECT_SOURCE_DIR}" -std=c++20 -O3 -DNDEBUG ${options}
    DEPENDS "${folder}/${unit}" "${measure}" DEPFILE "${table}.d" VERBATIM)
  list(APPEND tables "${table}")
  add_test(NAME cuda.resources.${name} COMMAND Python3::Interpreter "${measure}" compare "${table}"
    "${PROJECT_SOURCE_DIR}/tests/golden/cuda/${name}_resources.txt")
  set_tests_properties(cuda.resources.${name} PROPERTIES LABELS unit SKIP_RETURN_CODE 77 TIMEOUT ${paceline_hang_s})
endforeach()
file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/resources")
add_custom_target(paceline_cuda_resources ALL DEPENDS ${tables})
