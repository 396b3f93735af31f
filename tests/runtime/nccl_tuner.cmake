# The tuner plugin, loaded and asked as NCCL does.
paceline_runtime_test(nccl_tuner_test SOURCES nccl_tuner/tuner_plugin_test.cc)
target_compile_definitions(nccl_tuner_test PRIVATE
  PACELINE_NCCL_TUNER="$<TARGET_FILE:paceline_nccl_tuner>")
target_link_libraries(nccl_tuner_test PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(nccl_tuner_test paceline_nccl_tuner)
if(NOT PACELINE_SANITIZE)
  add_test(NAME nccl_tuner.library COMMAND Python3::Interpreter
    "${CMAKE_CURRENT_SOURCE_DIR}/nccl_tuner/tuner_library_test.py" -v)
  set_tests_properties(nccl_tuner.library PROPERTIES LABELS unit TIMEOUT ${paceline_hang_s}
    ENVIRONMENT "PACELINE_NCCL_TUNER=$<TARGET_FILE:paceline_nccl_tuner>;PYTHONDONTWRITEBYTECODE=1")
endif()
