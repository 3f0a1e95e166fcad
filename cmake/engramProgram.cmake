# A program (train, evaluate, describe, sample) of one agent type, in the checkout, in a project that has it as a
# subproject, and after find_package(engram):
#
#   engram_add_ablation(NAME lstm_mem [TYPE engram::catalogue::lstm_mem] [HEADER engram/catalogue.hpp] [INCLUDE dir...]
#                       [DEVICES cuda emulated...])
#
# makes the target engram-<NAME>. With TYPE and HEADER it serves types outside the catalogue, such as a user's own
# memory. DEVICES are what --device takes besides cpu. For cuda, engram_use_cuda() comes first: the agent is then traced
# once more in a source that nvcc compiles (minutes), for the CUDA architectures of the build.
#
# What such programs share, engram::program, is compiled in the build that uses it, from the sources in `programs`: it
# holds instances of the same templates as the program and must see the same flags. So set flags before the first use.
# An installed engram has `programs` beside this folder, as the checkout does.

include("${CMAKE_CURRENT_LIST_DIR}/engramDependencies.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/cuda.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/rpc.cmake")

# engram_use_program(): makes engram::program, once a build, and finds what it needs in the caller's folder.
function(engram_use_program)
  engram_find_program_dependencies()
  if(engram_MISSING)
    message(FATAL_ERROR "${engram_MISSING}")
  endif()
  if(TARGET engram_program)
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../programs/*.cpp")
  list(FILTER sources EXCLUDE REGEX "/(emulated_[a-z_]+|world_wire)\\.cpp$")
  # Instances that headers declare `extern` where this library is linked.
  set(instances ${sources})
  list(FILTER instances INCLUDE REGEX "/(operations|environments|json)\\.cpp$")
  list(REMOVE_ITEM sources ${instances})
  add_library(engram_compiled STATIC EXCLUDE_FROM_ALL ${instances})
  # Rules of games are chains of few numbers. g++ packs those that lie side by side for a store or a sum and takes them
  # apart again in the next step: half of a cart pole's time. Whoever embeds engram says their own flags.
  set_source_files_properties("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../programs/environments.cpp" PROPERTIES COMPILE_OPTIONS
    "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<TARGET_EXISTS:engram_build_flags>>:-fno-tree-slp-vectorize>")
  target_compile_definitions(engram_compiled INTERFACE ENGRAM_COMPILED_JSON)
  target_link_libraries(engram_compiled PUBLIC engram::engram PRIVATE $<TARGET_NAME_IF_EXISTS:engram_build_flags>)
  add_library(engram_program STATIC EXCLUDE_FROM_ALL ${sources})
  add_library(engram::program ALIAS engram_program)
  # Small sources share a unit: most of each would be the headers. Training is in units of its own.
  set_target_properties(engram_program PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  set(large ${sources})
  list(FILTER large INCLUDE REGEX "(runs|launch)\\.cpp$")
  set_source_files_properties(${large} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  engram_use_mpi()
  engram_use_rpc()
  if(TARGET engram_wire)
    # gRPC doubles the time that a program takes to start, so what speaks it is loaded when it is asked for
    # (docs/decisions/0030).
    add_library(engram_world MODULE EXCLUDE_FROM_ALL "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../programs/world_wire.cpp")
    set_target_properties(engram_wire PROPERTIES POSITION_INDEPENDENT_CODE ON)
    if(ENGRAM_BIN_DIR)
      set_target_properties(engram_world PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${ENGRAM_BIN_DIR}")
    endif()
    target_link_libraries(engram_world PRIVATE engram_wire engram::engram $<TARGET_NAME_IF_EXISTS:engram_build_flags>)
    add_dependencies(engram_program engram_world)
    target_compile_definitions(engram_program PRIVATE "ENGRAM_WORLD_MODULE=\"$<TARGET_FILE:engram_world>\"")
    target_link_libraries(engram_program PUBLIC ${CMAKE_DL_LIBS})
  endif()
  target_link_libraries(engram_program PUBLIC engram_compiled engram::engram CLI11::CLI11 fmt::fmt
                                       PRIVATE $<TARGET_NAME_IF_EXISTS:engram_build_flags>)
endfunction()

# Several processes of a program train one model where MPI is: ENGRAM_MPI is AUTO, ON or OFF.
function(engram_use_mpi)
  set(ENGRAM_MPI AUTO CACHE STRING "Programs that mpirun and srun start as several processes: AUTO, ON or OFF")
  if(NOT ENGRAM_MPI MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "engram: ENGRAM_MPI is '${ENGRAM_MPI}', expected AUTO, ON or OFF")
  endif()
  if(ENGRAM_MPI STREQUAL "OFF" OR (ENGRAM_MPI STREQUAL "AUTO" AND CMAKE_CROSSCOMPILING))
    return()
  endif()
  find_package(MPI QUIET COMPONENTS CXX)
  if(NOT MPI_CXX_FOUND)
    if(ENGRAM_MPI STREQUAL "ON")
      message(FATAL_ERROR "engram: ENGRAM_MPI=ON needs Open MPI or MPICH, which were not found (Debian: libopenmpi-dev)")
    endif()
    return()
  endif()
  # What a launcher starts, MPI connects; the bindings of C++ that MPI has dropped are not wanted.
  target_compile_definitions(engram_program PRIVATE ENGRAM_MPI OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(engram_program PRIVATE MPI::MPI_CXX)
endfunction()

# engram_use_device(): makes engram_program_<device>, which holds the runs on it, once a build.
function(engram_use_device device)
  engram_use_program()
  if(TARGET engram_program_${device})
    return()
  endif()
  set(programs "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../programs")
  if(device STREQUAL "cuda")
    if(NOT TARGET engram_cuda)
      message(FATAL_ERROR "engram_add_ablation(... DEVICES cuda): call engram_use_cuda() at the top of the project first; "
                          "it needs nvcc and cuBLAS")
    endif()
    add_library(engram_program_cuda STATIC EXCLUDE_FROM_ALL "${programs}/cuda_environments.cu" "${programs}/cuda_runs.cu"
                "${programs}/cuda_sequence_runs.cu" "${programs}/cuda_memup_runs.cu")
    target_link_libraries(engram_program_cuda PUBLIC engram_cuda)
    if(TARGET engram_nccl)
      target_compile_definitions(engram_program_cuda PRIVATE ENGRAM_NCCL)
      target_link_libraries(engram_program_cuda PRIVATE engram_nccl)
    endif()
  elseif(device STREQUAL "emulated")
    add_library(engram_program_emulated STATIC EXCLUDE_FROM_ALL
                "${programs}/emulated_environments.cpp" "${programs}/emulated_runs.cpp"
                "${programs}/emulated_sequence_runs.cpp")
  else()
    message(FATAL_ERROR "engram_add_ablation(... DEVICES ${device}): expected cuda or emulated")
  endif()
  target_link_libraries(engram_program_${device} PUBLIC engram_program
                        PRIVATE $<TARGET_NAME_IF_EXISTS:engram_build_flags>)
endfunction()

function(engram_add_ablation)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TYPE;HEADER" "INCLUDE;DEVICES")
  if(NOT arg_NAME OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "engram_add_ablation(NAME name [TYPE type] [HEADER header] [INCLUDE dir...] [DEVICES device...]): "
                        "bad arguments '${ARGN}'")
  endif()
  set(NAME "${arg_NAME}")
  set(TYPE "${arg_TYPE}")
  set(HEADER "${arg_HEADER}")
  if(NOT TYPE)
    set(TYPE "engram::catalogue::${NAME}")
  endif()
  if(NOT HEADER)
    set(HEADER "engram/catalogue.hpp")
  endif()
  engram_use_program()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/ablation/${NAME}.cpp")
  set(sources "${source}")
  set(FIRST)
  set(EXTERN)
  set(DEVICES)
  set(libraries engram_program)
  foreach(device IN LISTS arg_DEVICES)
    engram_use_device(${device})
    list(PREPEND libraries engram_program_${device})
    string(APPEND DEVICES ", engram::${device}<float>")
    if(device STREQUAL "cuda")
      string(REGEX REPLACE "cpp$" "cu" traced "${source}")
      configure_file("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/ablation.cu.in" "${traced}" @ONLY)
      list(APPEND sources "${traced}")
      string(APPEND EXTERN "extern template engram::traced_agent<engram::cuda<float>> "
                           "engram::trace_agent<${TYPE}, engram::cuda<float>>(\n"
                           "    const ${TYPE}::settings&, const engram::task_shape&, std::uint64_t, engram::purpose);\n")
    else()
      # The bodies of a device's operations come before the agent that is traced for it.
      string(APPEND FIRST "#include <engram/device/operations.hpp>\n")
    endif()
  endforeach()
  configure_file("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/ablation.cpp.in" "${source}" @ONLY)
  add_executable(engram-${NAME} ${sources})
  target_include_directories(engram-${NAME} PRIVATE ${arg_INCLUDE})
  target_link_libraries(engram-${NAME} PRIVATE ${libraries} $<TARGET_NAME_IF_EXISTS:engram_build_flags>)
  if(ENGRAM_BIN_DIR)
    set_target_properties(engram-${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${ENGRAM_BIN_DIR}")
  endif()
endfunction()
