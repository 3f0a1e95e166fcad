# The CUDA device: sources that end in .cu, where nvcc and cuBLAS are found and ENGRAM_CUDA has not been turned off. A
# build for the host alone sees no CUDA header, since all that name one end in .cuh or .cu.
#
# engram_use_cuda(): enables the language, once a build, and sets
#   ENGRAM_HAS_CUDA    whether there is a CUDA toolkit that works
#   engram_cuda        the target that whatever compiles .cu files links beside engram::engram
#   engram_nccl        the target of what sums between GPUs by NCCL, where it was found: ENGRAM_NCCL is AUTO, ON or OFF
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
      engram_use_nccl()
    else()
      message(WARNING "engram: nvcc and cuBLAS were not both found to work; building for the CPU alone")
    endif()
  endif()
endmacro()

# Some CUDA toolkits hold NCCL; NCCL_ROOT names the folder of another one, with include and lib, as PyPI's have it.
function(engram_use_nccl)
  set(ENGRAM_NCCL AUTO CACHE STRING "Sum gradients between the GPUs of several processes by NCCL: AUTO, ON or OFF")
  if(NOT ENGRAM_NCCL MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "engram: ENGRAM_NCCL is '${ENGRAM_NCCL}', expected AUTO, ON or OFF")
  endif()
  if(ENGRAM_NCCL STREQUAL "OFF")
    return()
  endif()
  set(roots "${NCCL_ROOT}" "$ENV{NCCL_ROOT}")
  list(REMOVE_ITEM roots "")
  find_path(ENGRAM_NCCL_INCLUDE_DIR nccl.h HINTS ${roots} ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
  find_library(ENGRAM_NCCL_LIBRARY NAMES nccl libnccl.so.2 NAMES_PER_DIR HINTS ${roots} ${CUDAToolkit_LIBRARY_DIR}
               PATH_SUFFIXES lib lib64)
  mark_as_advanced(ENGRAM_NCCL_INCLUDE_DIR ENGRAM_NCCL_LIBRARY)
  if(ENGRAM_NCCL_INCLUDE_DIR AND ENGRAM_NCCL_LIBRARY)
    add_library(engram_nccl INTERFACE)
    target_include_directories(engram_nccl SYSTEM INTERFACE "${ENGRAM_NCCL_INCLUDE_DIR}")
    target_link_libraries(engram_nccl INTERFACE "${ENGRAM_NCCL_LIBRARY}")
  elseif(ENGRAM_NCCL STREQUAL "ON")
    message(FATAL_ERROR "engram: ENGRAM_NCCL=ON needs nccl.h and libnccl.so, which were not both found; name their folder in "
                        "NCCL_ROOT (PyPI: nvidia-nccl-cu13)")
  endif()
endfunction()
