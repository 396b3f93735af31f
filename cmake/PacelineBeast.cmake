# Finds Boost.Beast, which is headers alone. Without it `paceline serve` says how to get it. It was tried
# with Boost 1.74, Debian's.
set(PACELINE_BEAST_STATE "off")
if(NOT PACELINE_WITH_BEAST STREQUAL "OFF")
  find_package(Boost 1.74 QUIET)
  if(Boost_FOUND)
    set(PACELINE_BEAST_STATE "${Boost_VERSION_STRING}")
  elseif(PACELINE_WITH_BEAST STREQUAL "ON")
    message(FATAL_ERROR "PACELINE_WITH_BEAST is ON, and Boost was not found: install libboost-dev")
  else()
    set(PACELINE_BEAST_STATE "not found")
  endif()
endif()
