# A program (train, evaluate, describe, sample) of one agent type, in the checkout, in a project that has it as a
# subproject, and after find_package(engram):
#
#   engram_add_ablation(NAME lstm_mem [TYPE engram::catalogue::lstm_mem] [HEADER engram/catalogue.hpp] [INCLUDE dir...])
#
# makes the target engram-<NAME>. With TYPE and HEADER it serves types outside the catalogue, such as a user's own
# memory.
#
# What such programs share, engram::program, is compiled in the build that uses it, from the sources in `programs`: it
# holds instances of the same templates as the program and must see the same flags. So set flags before the first use.
# An installed engram has `programs` beside this folder, as the checkout does.

include("${CMAKE_CURRENT_LIST_DIR}/engramDependencies.cmake")

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
  add_library(engram_program STATIC EXCLUDE_FROM_ALL ${sources})
  add_library(engram::program ALIAS engram_program)
  target_link_libraries(engram_program PUBLIC engram::engram CLI11::CLI11 fmt::fmt
                                       PRIVATE $<TARGET_NAME_IF_EXISTS:engram_build_flags>)
endfunction()

function(engram_add_ablation)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TYPE;HEADER" "INCLUDE")
  if(NOT arg_NAME OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "engram_add_ablation(NAME name [TYPE type] [HEADER header] [INCLUDE dir...]): "
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
  configure_file("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/ablation.cpp.in" "${source}" @ONLY)
  add_executable(engram-${NAME} "${source}")
  target_include_directories(engram-${NAME} PRIVATE ${arg_INCLUDE})
  target_link_libraries(engram-${NAME} PRIVATE engram_program $<TARGET_NAME_IF_EXISTS:engram_build_flags>)
  if(ENGRAM_BIN_DIR)
    set_target_properties(engram-${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${ENGRAM_BIN_DIR}")
  endif()
endfunction()
