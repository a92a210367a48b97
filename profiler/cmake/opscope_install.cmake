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

# Installed, they find the libtorch that they were built with; a wheel's find the one beside it.
if(OPSCOPE_WITH_TORCH AND NOT SKBUILD)
  set(torch_folders "${TORCH_INSTALL_PREFIX}/lib")
  if(TARGET CUDA::cudart) # not the links that a CUDA home of the build tree is made of
    get_target_property(cudart CUDA::cudart IMPORTED_LOCATION)
    file(REAL_PATH "${cudart}" cudart)
    cmake_path(GET cudart PARENT_PATH cudart_folder)
    list(APPEND torch_folders "${cudart_folder}")
  endif()
  set_target_properties(opscope-torch opscope-ops opscope-compare
                        PROPERTIES INSTALL_RPATH "$ORIGIN;${torch_folders}")
endif()

install(DIRECTORY kernels/include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES profiler/include/opscope/compare.hpp
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/opscope")
configure_file(profiler/cmake/opscope_optional.cmake "${PROJECT_BINARY_DIR}/opscope_optional.cmake"
               COPYONLY)
install(FILES profiler/cmake/opscope_optional.cmake DESTINATION "${package_dir}")
