# The CUDA device: sources that end in .cu, where nvcc and cuBLAS are found and ENGRAM_CUDA has not been turned off. A
# build for the host alone sees no CUDA header, since all that name one end in .cuh or .cu.
#
# engram_use_cuda(): enables the language, once a build, and sets
#   ENGRAM_HAS_CUDA    whether there is a CUDA toolkit that works
#   engram_cuda        the target that whatever compiles .cu files links beside engram::engram
#
# The host's part of a .cu file is compiled as engram_build_flags compile the host's sources: it shares instances of
# templates with them, and numbers of a pack's width.

macro(engram_use_cuda)
  if(NOT TARGET engram_cuda)
    set(ENGRAM_HAS_CUDA OFF)
    if(NOT CMAKE_CUDA_COMPILER AND ENGRAM_NVCC)
      set(CMAKE_CUDA_COMPILER "${ENGRAM_NVCC}")
    endif()
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      # Must be set before the language is enabled. The last one is the PTX that later devices compile for themselves.
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual)
    endif()
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      enable_language(CUDA)
      find_package(CUDAToolkit)
    endif()
    if(TARGET CUDA::cublas)
      set(ENGRAM_HAS_CUDA ON)
      # CMake 3.25 drops CMAKE_CUDA_STANDARD 20 silently for nvcc 13, hence the plain flag.
      # relaxed-constexpr: functors of map are constexpr and thereby device functions. 20012: Eigen annotates defaulted
      # members.
      add_library(engram_cuda INTERFACE)
      target_compile_options(engram_cuda INTERFACE
        $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20 --expt-relaxed-constexpr -diag-suppress=20012 -Xcompiler=-Wall,-Wextra>)
      target_link_libraries(engram_cuda INTERFACE CUDA::cudart CUDA::cublas)
      if(TARGET engram_build_flags)
        target_compile_options(engram_cuda INTERFACE
          "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=$<JOIN:-ffp-contract=fast;${ENGRAM_MACHINE_FLAGS},$<COMMA>>>")
      endif()
    else()
      message(WARNING "engram: nvcc and cuBLAS were not both found to work; building for the CPU alone")
    endif()
  endif()
endmacro()
