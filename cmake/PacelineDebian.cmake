# Run by CPack before it packs (cmake/PacelinePackage.cmake): what Debian has at other places than
# `cmake --install`, or compressed. CPACK_TEMPORARY_DIRECTORY has a folder for each component.
cmake_minimum_required(VERSION 3.25)
file(READ "${CPACK_PACELINE_NOTICE}" notice)
string(TIMESTAMP today "%a, %d %b %Y %H:%M:%S +0000" UTC)

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  set(usr "${CPACK_TEMPORARY_DIRECTORY}/${component}/usr")
  if(NOT IS_DIRECTORY "${usr}")
    message(FATAL_ERROR "CPack has no folder for component ${component}")
  endif()
  string(TOUPPER "${component}" name)
  set(doc "${usr}/share/doc/${CPACK_DEBIAN_${name}_PACKAGE_NAME}")
  file(REMOVE "${doc}/LICENSE" "${doc}/NOTICE")
  file(WRITE "${doc}/copyright" "${notice}\nThe Apache License, Version 2.0, is in /usr/share/common-licenses/Apache-2.0.\n")
  file(WRITE "${doc}/changelog" "paceline (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * What changed is in /usr/share/doc/paceline/CHANGELOG.md.gz.

 -- ${CPACK_PACKAGE_CONTACT}  ${today}
")
  file(GLOB long_texts "${usr}/share/man/man1/*.1" "${doc}/changelog" "${doc}/CHANGELOG.md")
  if(long_texts)
    execute_process(COMMAND gzip -9nf ${long_texts} COMMAND_ERROR_IS_FATAL ANY)
  endif()
  if(IS_DIRECTORY "${usr}/share/zsh/site-functions")
    file(RENAME "${usr}/share/zsh/site-functions" "${usr}/share/zsh/vendor-completions")
  endif()
endforeach()
