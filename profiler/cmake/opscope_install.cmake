# SPDX-License-Identifier: Apache-2.0
# find_package(opscope), from the build tree and from an installed one: opscope::opscope,
# opscope::kernels, and where libtorch is, opscope::torch and opscope::ops.
include(CMakePackageConfigHelpers)

# The targets of this project that linking `target` takes along, static libraries above all.
function(opscope_closure target result)
  set(seen ${target})
  set(open ${target})
  while(open)
    list(POP_FRONT open current)
    get_target_property(linked ${current} INTERFACE_LINK_LIBRARIES)
    foreach(entry IN LISTS linked)
      string(REGEX REPLACE "^\\$<(LINK_ONLY|BUILD_INTERFACE):(.*)>$" "\\2" entry "${entry}")
      if(TARGET "${entry}")
        get_target_property(aliased ${entry} ALIASED_TARGET)
        if(aliased)
          set(entry ${aliased})
        endif()
      endif()
      if(TARGET "${entry}" AND NOT entry IN_LIST seen)
        get_target_property(imported ${entry} IMPORTED)
        if(NOT imported)
          list(APPEND seen ${entry})
          list(APPEND open ${entry})
        endif()
      endif()
    endforeach()
  endwhile()
  set(${result} ${seen} PARENT_SCOPE)
endfunction()

# Exports public targets with what they take along, less what an earlier set has.
function(opscope_export set)
  get_property(exported GLOBAL PROPERTY OPSCOPE_EXPORTED)
  set(members "")
  foreach(target IN LISTS ARGN)
    if(TARGET ${target})
      opscope_closure(${target} closure)
      list(APPEND members ${closure})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES members)
  list(REMOVE_ITEM members ${exported})
  if(NOT members)
    return()
  endif()
  foreach(member IN LISTS members)
    # Stages see each other from the source tree; an installed one has the public headers only.
    get_target_property(folders ${member} INTERFACE_INCLUDE_DIRECTORIES)
    if(folders)
      list(TRANSFORM folders REPLACE "^(/.*)$" "$<BUILD_INTERFACE:\\1>")
      set_target_properties(${member} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${folders}")
    endif()
  endforeach()
  install(TARGETS ${members} EXPORT opscope-${set} COMPONENT development
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT opscope-${set} NAMESPACE opscope:: COMPONENT development
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/opscope)
  export(EXPORT opscope-${set} NAMESPACE opscope:: FILE "${CMAKE_BINARY_DIR}/opscope-${set}.cmake")
  set_property(GLOBAL APPEND PROPERTY OPSCOPE_EXPORTED ${members})
endfunction()

foreach(pair opscope:opscope opscope-kernels:kernels opscope-ops:ops opscope-compare:torch)
  string(REPLACE ":" ";" pair "${pair}")
  list(GET pair 0 target)
  list(GET pair 1 name)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  endif()
endforeach()
opscope_export(targets opscope)
opscope_export(kernels-targets opscope-kernels)
opscope_export(torch-targets opscope-ops opscope-compare)

# Opened at run time, from the folder of the library that asks for them.
foreach(target opscope-core opscope-nvtx opscope-torch)
  if(TARGET ${target})
    install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  endif()
endforeach()
install(DIRECTORY profiler/include/ kernels/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development)
configure_package_config_file(
  profiler/cmake/opscope-config.cmake.in "${CMAKE_BINARY_DIR}/opscope-config.cmake"
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/opscope)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/opscope-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
configure_file(profiler/cmake/opscope_zstd.cmake "${CMAKE_BINARY_DIR}/opscope_zstd.cmake" COPYONLY)
install(FILES "${CMAKE_BINARY_DIR}/opscope-config.cmake"
              "${CMAKE_BINARY_DIR}/opscope-config-version.cmake" profiler/cmake/opscope_zstd.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/opscope COMPONENT development)
