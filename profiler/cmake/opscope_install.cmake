# SPDX-License-Identifier: Apache-2.0
# What find_package(opscope) gives beside opscope::opscope: opscope::kernels where a CUDA toolkit is,
# opscope::torch and opscope::ops where libtorch is too. From the build tree and an installed one.
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/opscope")

function(opscope_export set)
  set(members "")
  foreach(pair IN LISTS ARGN)
    string(REPLACE "=" ";" pair "${pair}")
    list(GET pair 0 target)
    list(GET pair 1 name)
    if(TARGET ${target})
      set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
      list(APPEND members ${target})
    endif()
  endforeach()
  if(NOT members)
    return()
  endif()
  install(TARGETS ${members} EXPORT ${set} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT ${set} NAMESPACE opscope:: DESTINATION "${package_dir}")
  export(EXPORT ${set} NAMESPACE opscope:: FILE "${PROJECT_BINARY_DIR}/${set}.cmake")
endfunction()

opscope_export(opscope_kernels_targets opscope-kernels=kernels opscope_warnings=warnings)
opscope_export(opscope_torch_targets opscope-ops=ops opscope-compare=torch)

install(DIRECTORY kernels/include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES profiler/include/opscope/compare.hpp
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/opscope")
configure_file(profiler/cmake/opscope_optional.cmake "${PROJECT_BINARY_DIR}/opscope_optional.cmake"
               COPYONLY)
install(FILES profiler/cmake/opscope_optional.cmake DESTINATION "${package_dir}")
