# SPDX-License-Identifier: Apache-2.0
# Everything from package managers, found with find_package; what a machine lacks turns its part off
# with a message.
find_program(OPSCOPE_CCACHE ccache)
if(OPSCOPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${OPSCOPE_CCACHE}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${OPSCOPE_CCACHE}")
endif()

find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt REQUIRED)
include(opscope_zstd)
find_package(ZLIB REQUIRED)

if(OPSCOPE_WITH_PYTHON OR OPSCOPE_WITH_TORCH)
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
endif()

if(OPSCOPE_WITH_CUDA)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90)
  endif()
  include(opscope_cuda_home)
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  find_package(CUDAToolkit 13.0 REQUIRED)
  if(NOT CUDA_TOOLKIT_ROOT_DIR) # torch's CMake files look by themselves, and by this older name
    cmake_path(GET CUDAToolkit_BIN_DIR PARENT_PATH toolkit)
    set(CUDA_TOOLKIT_ROOT_DIR "${toolkit}" CACHE PATH "CUDA toolkit, as torch's CMake files name it")
  endif()
endif()

if(OPSCOPE_WITH_TORCH)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "import torch; print(torch.utils.cmake_prefix_path)"
    OUTPUT_VARIABLE torch_prefix OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  if(NOT DEFINED ENV{TORCH_CUDA_ARCH_LIST})
    set(ENV{TORCH_CUDA_ARCH_LIST} 9.0) # unset, torch's CMake adds eleven architectures
  endif()
  find_package(Torch 2.11 REQUIRED PATHS "${torch_prefix}" NO_DEFAULT_PATH)
endif()

if(OPSCOPE_WITH_PYTHON)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
    OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  find_package(nanobind CONFIG REQUIRED)
endif()

if(OPSCOPE_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(OPSCOPE_BUILD_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()

if(OPSCOPE_WITH_VIEWER)
  find_path(OPSCOPE_HTTPLIB_INCLUDE_DIR httplib.h)
  # Debian splits the header-only library; elsewhere there is nothing to link.
  find_library(OPSCOPE_HTTPLIB_LIBRARY cpp-httplib)
  if(NOT OPSCOPE_HTTPLIB_INCLUDE_DIR)
    message(STATUS "opscope: the viewer is off (install libcpp-httplib-dev)")
    set(OPSCOPE_WITH_VIEWER OFF)
  endif()
endif()
