# The Python module that runs plans in PyTorch's DDP: what needs no PyTorch, and what does.
foreach(part IN ITEMS plan torch)
  add_test(NAME ddp.${part} COMMAND Python3::Interpreter "${CMAKE_CURRENT_SOURCE_DIR}/ddp/${part}_test.py" -v)
  set_tests_properties(ddp.${part} PROPERTIES LABELS unit TIMEOUT ${paceline_hang_s} SKIP_RETURN_CODE 77
    ENVIRONMENT "PACELINE_DDP=${PROJECT_SOURCE_DIR}/runtime/ddp;PYTHONDONTWRITEBYTECODE=1")
endforeach()
set_tests_properties(ddp.torch PROPERTIES PROCESSORS 2)
