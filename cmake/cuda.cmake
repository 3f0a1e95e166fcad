# The CUDA device. The library's own .cu files are tests and benchmarks that want a GPU, so they are compiled on request
# (ENGRAM_GPU_TESTS, as benchmarks/gpu/run.sh does), where nvcc and cuBLAS are found. A build for the host alone sees no
# CUDA header, since all that name one end in .cuh or .cu.
#
# Gives engram_cuda: what a target that compiles .cu files links beside engram::engram.

set(ENGRAM_HAS_CUDA OFF)
option(ENGRAM_GPU_TESTS "Compile the tests and benchmarks that need a GPU" OFF)
if(NOT ENGRAM_GPU_TESTS)
  return()
endif()
if(NOT CMAKE_CUDA_COMPILER AND ENGRAM_NVCC)
  set(CMAKE_CUDA_COMPILER "${ENGRAM_NVCC}")
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  # Must be set before the language is enabled. The last one is the PTX that later devices compile for themselves.
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual)
endif()
set(ENGRAM_CUDA_TEST_ARCHITECTURE 90 CACHE STRING "The one architecture that tests are compiled for (native: this machine's)")
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  find_package(CUDAToolkit)
endif()
if(TARGET CUDA::cublas)
  set(ENGRAM_HAS_CUDA ON)
  # CMake 3.25 drops CMAKE_CUDA_STANDARD 20 silently for nvcc 13, hence the plain flag.
  # relaxed-constexpr: functors of map are constexpr and thereby device functions. 20012: Eigen annotates defaulted members.
  add_library(engram_cuda INTERFACE)
  target_compile_options(engram_cuda INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr -diag-suppress=20012 -Xcompiler=-Wall,-Wextra>)
  target_link_libraries(engram_cuda INTERFACE CUDA::cudart CUDA::cublas)
else()
  message(WARNING "engram: nvcc and cuBLAS were not both found to work; building for the CPU alone")
endif()
