# Finds libsodium, by which the ranks of a rendezvous know each other. AUTO goes on without it, and then
# `paceline train --rendezvous` says how to get it; ON fails. It was tried with 1.0.18, Debian's.
set(PACELINE_SODIUM_STATE "off")
if(NOT PACELINE_WITH_SODIUM STREQUAL "OFF")
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(SODIUM QUIET IMPORTED_TARGET libsodium>=1.0.18)
  endif()
  if(SODIUM_FOUND)
    set(PACELINE_SODIUM_STATE "${SODIUM_VERSION}")
  elseif(PACELINE_WITH_SODIUM STREQUAL "ON")
    message(FATAL_ERROR "PACELINE_WITH_SODIUM is ON, and libsodium 1.0.18 was not found: "
                        "install libsodium-dev and pkg-config")
  else()
    set(PACELINE_SODIUM_STATE "not found")
  endif()
endif()
