# SPDX-License-Identifier: Apache-2.0
# zstd::libzstd_static. Debian's and Ubuntu's libzstd-dev bring no CMake package.
find_package(zstd CONFIG QUIET)
if(NOT TARGET zstd::libzstd_static)
  find_path(OPSCOPE_ZSTD_INCLUDE_DIR zstd.h REQUIRED)
  find_library(OPSCOPE_ZSTD_LIBRARY libzstd.a REQUIRED)
  add_library(zstd::libzstd_static STATIC IMPORTED)
  set_target_properties(
    zstd::libzstd_static PROPERTIES IMPORTED_LOCATION "${OPSCOPE_ZSTD_LIBRARY}"
                                    INTERFACE_INCLUDE_DIRECTORIES "${OPSCOPE_ZSTD_INCLUDE_DIR}")
endif()
# Debian's archive has assembly that a shared library can hold only when its symbols stay inside.
set_property(TARGET zstd::libzstd_static APPEND PROPERTY INTERFACE_LINK_OPTIONS
                                                         "LINKER:--exclude-libs,libzstd.a")
