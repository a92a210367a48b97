# SPDX-License-Identifier: Apache-2.0
# Without a CUDA toolkit on the machine, one is made of the pip packages beside torch, in the build
# tree. Does nothing where a compiler was named or is found.
function(opscope_make_cuda_home)
  if(CMAKE_CUDA_COMPILER OR DEFINED ENV{CUDACXX})
    return()
  endif()
  find_program(OPSCOPE_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(OPSCOPE_NVCC)
    return()
  endif()
  set(home "${CMAKE_BINARY_DIR}/cuda")
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
            "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE packages OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  cmake_path(GET packages PARENT_PATH packages)
  if(NOT EXISTS "${packages}/nvidia/cu13/bin/nvcc")
    return()
  endif()
  message(STATUS "No CUDA toolkit installed: ${home} is made of the pip packages")
  execute_process(COMMAND "${CMAKE_SOURCE_DIR}/.ci/cuda-home" "${packages}" "${home}"
                          COMMAND_ERROR_IS_FATAL ANY)
  set(CMAKE_CUDA_COMPILER "${home}/bin/nvcc" CACHE FILEPATH "CUDA compiler")
  set(CUDAToolkit_ROOT "${home}" CACHE PATH "CUDA toolkit")
  set(CUDA_TOOLKIT_ROOT_DIR "${home}" CACHE PATH "CUDA toolkit, as torch's CMake files name it")
endfunction()
opscope_make_cuda_home()
