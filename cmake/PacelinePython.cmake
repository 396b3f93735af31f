# The package for Python (cli/python). Without pybind11 or the headers of Python it is left out, and
# everything else is as it would be.
set(PACELINE_WITH_PYTHON AUTO CACHE STRING "Package for Python: AUTO, ON or OFF")
set_property(CACHE PACELINE_WITH_PYTHON PROPERTY STRINGS AUTO ON OFF)
# The interpreter that the package is for. Debian's comes before others in the PATH, for NumPy, pytest
# and PyTorch are Debian's, too.
find_program(PACELINE_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH DOC "Interpreter that the package for Python is for")
find_program(PACELINE_PYTHON NAMES python3)
set(PACELINE_PYTHON_STATE "off")
if(PACELINE_WITH_PYTHON)
  set(missing "")
  set(PYBIND11_NOPYTHON ON)  # only its headers are of use
  find_package(pybind11 2.10 CONFIG QUIET)
  if(NOT pybind11_FOUND)
    set(missing "pybind11 2.10 (pybind11-dev)")
  endif()
  if(PACELINE_PYTHON)
    execute_process(COMMAND "${PACELINE_PYTHON}" -c "import sys, sysconfig
print('%d.%d' % sys.version_info[:2], sysconfig.get_path('include'), sysconfig.get_config_var('SOABI'), sep=';')"
      OUTPUT_VARIABLE python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    list(GET python 0 PACELINE_PYTHON_VERSION)
    list(GET python 1 PACELINE_PYTHON_INCLUDE)
    list(GET python 2 PACELINE_PYTHON_SOABI)
  endif()
  if(NOT PACELINE_PYTHON OR PACELINE_PYTHON_VERSION VERSION_LESS 3.11)
    set(missing "Python 3.11 (python3)")
  elseif(NOT EXISTS "${PACELINE_PYTHON_INCLUDE}/Python.h")
    set(missing "the headers of ${PACELINE_PYTHON} (python3-dev)")
  endif()
  if(missing STREQUAL "")
    set(PACELINE_PYTHON_STATE "${PACELINE_PYTHON_VERSION}")
  elseif(PACELINE_WITH_PYTHON STREQUAL "AUTO")
    set(PACELINE_PYTHON_STATE "not found")
    message(STATUS "The package for Python is left out, for there is no ${missing}")
  else()
    message(FATAL_ERROR "PACELINE_WITH_PYTHON is ON, and there is no ${missing}")
  endif()
endif()
