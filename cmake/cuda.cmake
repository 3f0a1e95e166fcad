# CUDA is switched on by the first .cu file of the checkout; until then a toolkit on the machine costs nothing.
# A toolkit that cannot compile is reported and left alone.

file(GLOB_RECURSE ENGRAM_CUDA_SOURCES CONFIGURE_DEPENDS
     "${PROJECT_SOURCE_DIR}/tests/*.cu" "${PROJECT_SOURCE_DIR}/programs/*.cu" "${PROJECT_SOURCE_DIR}/benchmarks/*.cu")
set(ENGRAM_HAS_CUDA OFF)
if(ENGRAM_CUDA_SOURCES)
  if(NOT CMAKE_CUDA_COMPILER AND ENGRAM_NVCC)
    set(CMAKE_CUDA_COMPILER "${ENGRAM_NVCC}")
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90)  # must be set before the language is enabled
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    set(ENGRAM_HAS_CUDA ON)
    # CMake 3.25 drops CMAKE_CUDA_STANDARD 20 silently for nvcc 13, hence the plain flag.
    # 20012: Eigen annotates defaulted members.
    target_compile_options(engram_build_flags INTERFACE
      $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr -diag-suppress=20012 -Xcompiler=-Wall,-Wextra>)
  else()
    message(WARNING "engram: no working CUDA compiler was found; building for the CPU alone")
  endif()
endif()
