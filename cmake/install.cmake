# cmake --install: library, public headers, the program, find_package(unshuffle) and pkg-config.
install(TARGETS unshuffle unshuffle_common unshuffle_cytometry unshuffle_tracking unshuffle_pixels EXPORT unshuffle_targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(UNSHUFFLE_BUILD_APP)
  install(TARGETS unshuffle_app RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # Where run_fastest_build() of apps/unshuffle/levels.cpp looks for them.
  foreach(level IN LISTS UNSHUFFLE_PACKED_LEVELS)
    install(PROGRAMS ${PROJECT_SOURCE_DIR}/build/package-${level}/unshuffle DESTINATION ${UNSHUFFLE_MODULES_DIR}/${level})
  endforeach()
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/unshuffle DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_BINARY_DIR}/include/unshuffle/version.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/unshuffle)

set(UNSHUFFLE_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/unshuffle)
install(EXPORT unshuffle_targets NAMESPACE unshuffle:: FILE unshuffleTargets.cmake
  DESTINATION ${UNSHUFFLE_CONFIG_DIR})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/unshuffleConfig.cmake.in
  ${PROJECT_BINARY_DIR}/unshuffleConfig.cmake INSTALL_DESTINATION ${UNSHUFFLE_CONFIG_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/unshuffleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/unshuffleConfig.cmake ${PROJECT_BINARY_DIR}/unshuffleConfigVersion.cmake
  DESTINATION ${UNSHUFFLE_CONFIG_DIR})

# find_package from the build folder, without installing (-Dunshuffle_DIR).
export(EXPORT unshuffle_targets NAMESPACE unshuffle:: FILE ${PROJECT_BINARY_DIR}/unshuffleTargets.cmake)

# pkg-config knows nothing of targets: what the static library needs is written out.
set(UNSHUFFLE_PC_LIBS "-lfmt -lpugixml ${OpenMP_CXX_FLAGS}")
set(UNSHUFFLE_ZSTD_USED "")
if(UNSHUFFLE_ZSTD)
  set(UNSHUFFLE_ZSTD_USED ${ZSTD_LIBRARY})
endif()
foreach(library IN LISTS CSV_LIBRARY ZLIB_LIBRARIES UNSHUFFLE_ZSTD_USED LAPACK_LIBRARIES)
  # By name where linkers look anyway: another machine may have the file elsewhere.
  get_filename_component(folder "${library}" DIRECTORY)
  if(folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    string(REGEX REPLACE "^.*/lib([^/]*)\\.(so|a)$" "-l\\1" library "${library}")
  endif()
  string(APPEND UNSHUFFLE_PC_LIBS " ${library}")
endforeach()
if(UNSHUFFLE_SANITIZE)
  string(APPEND UNSHUFFLE_PC_LIBS " -fsanitize=${UNSHUFFLE_SANITIZE}")
endif()
# Relative to the .pc file, so that `cmake --install --prefix` and a moved prefix both work.
file(RELATIVE_PATH UNSHUFFLE_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/unshuffle.pc.in ${PROJECT_BINARY_DIR}/unshuffle.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/unshuffle.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
