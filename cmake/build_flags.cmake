# Flags of the checkout's own binaries. They live on a private target: who links engram::engram inherits none of them.

add_library(engram_build_flags INTERFACE)

# What continuous integration has. A newer compiler may know warnings that nobody here has seen, and is no error for them.
set(tested_compiler OFF)
if("${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" MATCHES "^(GNU 12|Clang 14)\\.")
  set(tested_compiler ON)
endif()

# The header tests compile with these too, and with -Werror whatever ENGRAM_WERROR says of the binaries.
set(ENGRAM_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
target_compile_options(engram_build_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${ENGRAM_WARNINGS}>"
  # For plain loops; packs say themselves what is fused (docs/decisions/0016).
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=fast>)

# g++ 12 sees uninitialised values inside its own AVX-512 intrinsics, out-of-bounds reads in xtensor's sorts, and
# overlapping copies in "text" + std::string.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(engram_build_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized -Wno-array-bounds -Wno-restrict>)
endif()

# A collection of garbage less often: a twentieth of the time, for a third more of the compiler's memory.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(ENGRAM_COLLECTION --param=ggc-min-expand=400 --param=ggc-min-heapsize=400000)
  target_compile_options(engram_build_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${ENGRAM_COLLECTION}>")
endif()

# g++ 12 vectorises loops of unknown length at -O3 only. A target whose code runs once, or with small sizes, names less by its
# property ENGRAM_LEVEL, O1 or O0, and is compiled in three quarters or half of the time; a source of it that is as hot as
# others of the checkout has the options ENGRAM_HOT.
set(level "$<TARGET_PROPERTY:ENGRAM_LEVEL>")
target_compile_options(engram_build_flags INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-$<IF:$<STREQUAL:${level},>,O3,${level}>>)
set(ENGRAM_HOT "$<$<CONFIG:Release>:-O3>")

if(ENGRAM_MACHINE_FLAGS)
  target_compile_options(engram_build_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${ENGRAM_MACHINE_FLAGS}>")
endif()
# `tested` is what ./dev says. Whoever brings flags decides about them.
if((ENGRAM_WERROR STREQUAL "tested" AND tested_compiler AND CMAKE_CXX_FLAGS STREQUAL "") OR
   (ENGRAM_WERROR AND NOT ENGRAM_WERROR STREQUAL "tested"))
  target_compile_options(engram_build_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  # What g++ 12 sees in code that it has inlined, and that is not there, comes and goes with what else is inlined.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(engram_build_flags INTERFACE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-error=stringop-overflow$<SEMICOLON>-Wno-error=stringop-overread>)
  endif()
endif()
if(ENGRAM_SANITIZE STREQUAL "thread")
  set(sanitize -fsanitize=thread)
elseif(ENGRAM_SANITIZE)
  set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=undefined)
endif()
if(sanitize)
  target_compile_options(engram_build_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${sanitize};-fno-omit-frame-pointer>)
  target_link_options(engram_build_flags INTERFACE ${sanitize})
endif()
