# Tests of runtime/collective and of the transports that it runs on.
paceline_runtime_test(executor_test SOURCES executor_test.cc)
paceline_runtime_test(executor_late_test SOURCES executor_late_test.cc LIBRARIES paceline_late_device)
paceline_thorough(executor_test)
paceline_thorough(executor_late_test)
paceline_runtime_test(launcher_test SOURCES launcher_test.cc)
if(PACELINE_SODIUM_STATE MATCHES "^[0-9]")
  paceline_runtime_test(tcp_transport_test SOURCES tcp_transport_test.cc LIBRARIES GTest::gmock)
endif()
paceline_runtime_test(stream_program_test SOURCES stream_program_test.cc)
paceline_runtime_test(thread_transport_test SOURCES thread_transport_test.cc LIBRARIES GTest::gmock)

# Between processes. Root may run mpirun by these variables; ranks may outnumber cores.
if(NOT PACELINE_MPI_STATE STREQUAL "off" AND NOT PACELINE_MPI_STATE STREQUAL "not found")
  find_program(PACELINE_MPIRUN mpirun)
endif()
if(PACELINE_MPIRUN AND NOT PACELINE_SANITIZE)
  add_executable(mpi_executor_test mpi_executor_test.cc)
  target_include_directories(mpi_executor_test PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_options(mpi_executor_test PRIVATE -Wno-dangling-else)
  target_link_libraries(mpi_executor_test PRIVATE paceline::mpi paceline_flags GTest::gmock)
  # paceline_mpi_test(<name> <ranks> <arguments...>)
  function(paceline_mpi_test name ranks)
    add_test(NAME mpi.${name}-${ranks}
      COMMAND "${PACELINE_MPIRUN}" --oversubscribe --bind-to none -n ${ranks}
        $<TARGET_FILE:mpi_executor_test> ${ARGN})
    set_tests_properties(mpi.${name}-${ranks} PROPERTIES LABELS mpi TIMEOUT 300
      ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
  endfunction()
  foreach(ranks 1 2 3 4 8)
    paceline_mpi_test(executor ${ranks})
  endforeach()
  paceline_mpi_test(silent 3 silent)
  set_tests_properties(mpi.silent-3 PROPERTIES TIMEOUT 30
    PASS_REGULAR_EXPRESSION "cannot receive from rank 1: nothing came from it for 0.5 s")
  # With three ranks the powers of two are all distances there are.
  paceline_mpi_test(connections 3 connections)
  set_tests_properties(mpi.connections-3 PROPERTIES TIMEOUT 60 ENVIRONMENT
    "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_btl=self,tcp;OMPI_MCA_btl_tcp_if_include=lo;OMPI_MCA_pml=ob1")
  paceline_mpi_test(dies 3 dies)
  set_tests_properties(mpi.dies-3 PROPERTIES WILL_FAIL TRUE TIMEOUT 30)
endif()
