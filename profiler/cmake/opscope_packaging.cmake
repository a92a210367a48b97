# SPDX-License-Identifier: Apache-2.0
# What a wheel carries beside the pure Python files of profiler/python, and what a demo needs built.
set(opscope_python_libraries opscope-core opscope-nvtx opscope-torch opscope-ops _core)
set(demo_needs "")
foreach(target opscope-cli ${opscope_python_libraries})
  if(TARGET ${target})
    list(APPEND demo_needs ${target})
  endif()
endforeach()
add_custom_target(demo-needs DEPENDS ${demo_needs})

if(NOT SKBUILD)
  return()
endif()
foreach(target IN LISTS opscope_python_libraries)
  if(TARGET ${target})
    # torch and the CUDA libraries lie beside the package in site-packages.
    set_target_properties(
      ${target} PROPERTIES INSTALL_RPATH
                           "$ORIGIN;$ORIGIN/../../torch/lib;$ORIGIN/../../nvidia/cu13/lib")
    install(TARGETS ${target} LIBRARY DESTINATION opscope/lib COMPONENT python)
  endif()
endforeach()
if(TARGET opscope-cli)
  install(TARGETS opscope-cli RUNTIME DESTINATION "${SKBUILD_SCRIPTS_DIR}" COMPONENT python)
endif()
install(DIRECTORY kernels/python/opscope DESTINATION . COMPONENT python
        FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "*.cu")
