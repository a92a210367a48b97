# SPDX-License-Identifier: Apache-2.0
# What a demo needs built, and what a wheel carries beside the Python files of profiler/python.
set(python_libraries "")
foreach(target opscope-core opscope-nvtx opscope-torch opscope-ops opscope-compare _core _compare
               _ops)
  if(TARGET ${target})
    list(APPEND python_libraries ${target})
  endif()
endforeach()
foreach(program opscope-cli opscope_cli)
  if(TARGET ${program})
    set(python_program ${program})
  endif()
endforeach()
add_custom_target(demo-needs DEPENDS ${python_libraries} ${python_program})

if(NOT SKBUILD)
  return()
endif()
# torch and the CUDA libraries lie beside the package in site-packages.
set_target_properties(
  ${python_libraries} PROPERTIES INSTALL_RPATH
                                 "$ORIGIN;$ORIGIN/../../torch/lib;$ORIGIN/../../nvidia/cu13/lib")
# A wheel cannot hold links: one name a library.
set_property(TARGET opscope PROPERTY VERSION)
install(TARGETS _core _compare _ops LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES "$<TARGET_FILE_DIR:opscope-ops>/opscope-ops.json"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY kernels/python/opscope DESTINATION .
        FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed")
