# SPDX-License-Identifier: Apache-2.0
# Part of find_package(opscope): the targets that need more than a C++ compiler, where that is found.
if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/opscope_kernels_targets.cmake")
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND)
    include("${CMAKE_CURRENT_LIST_DIR}/opscope_kernels_targets.cmake")
  endif()
endif()
if(TARGET opscope::kernels AND EXISTS "${CMAKE_CURRENT_LIST_DIR}/opscope_torch_targets.cmake")
  find_package(Torch QUIET)
  if(TARGET torch)
    include("${CMAKE_CURRENT_LIST_DIR}/opscope_torch_targets.cmake")
  endif()
endif()
