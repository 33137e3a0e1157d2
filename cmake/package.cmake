# cpack: one .deb with the program, the library and what is needed to build against it (scripts/package.sh).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME unshuffle)
set(CPACK_PACKAGE_CONTACT "The unshuffle authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION math)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# For those who build against the library.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
  "libeigen3-dev, libfmt-dev, nlohmann-json3-dev, libopenblas-dev, libpugixml-dev, libcsv-dev, zlib1g-dev, libzstd-dev")
include(CPack)
