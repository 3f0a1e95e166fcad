# Compiles one file without making an object.
#   MODE=header   the header SOURCE, included twice and alone, compiles without one of WARNINGS
#   MODE=fail     SOURCE must not compile, and the message of its line 1 `// error: <fragment>` must appear
#   MODE=cxx17    under the standard before, the first error of the header SOURCE is the sentence about C++20
#   MODE=clang    clang++, whatever compiler builds the rest, takes SOURCE without one of WARNINGS, with the further FLAGS;
#                 skipped where it is missing
#   MODE=host     nothing that SOURCE includes belongs to CUDA, also where a toolkit lies on the compiler's path
#   MODE=twin     SOURCE compiles with -DENGRAM_TWIN: it fails for the stated reason and for no other
#   MODE=once     parses the header SOURCE for those that include it anyway (cmake/parsed_once.cmake), into OUTPUT

string(REPLACE "|" ";" SYSTEM "${SYSTEM}")
list(REMOVE_DUPLICATES SYSTEM)
# -isystem /usr/include would hide the compiler's own headers from #include_next.
list(REMOVE_ITEM SYSTEM "${INCLUDE}" "/usr/include" "")
list(TRANSFORM SYSTEM PREPEND "-isystem")
string(REPLACE "|" ";" WARNINGS "${WARNINGS}")
# -Wpedantic, which takes an extension away, is of all or of none that share what has been parsed.
set(common "${COMPILER}" -std=c++20 -Wpedantic "-I${INCLUDE}" ${SYSTEM})
set(command ${common} -fsyntax-only)

# What SOURCE includes first by whatever way has been parsed; every other header of the library it parses itself.
if(MODE MATCHES "^(header|fail|twin)$" AND EXISTS "${SCRATCH}/once/map.txt")
  file(STRINGS "${SCRATCH}/once/map.txt" lines)
  foreach(line IN LISTS lines)
    if(line MATCHES "^(.+) (.+)$" AND CMAKE_MATCH_1 STREQUAL SOURCE)
      string(MAKE_C_IDENTIFIER "${CMAKE_MATCH_2}" first)
      if(EXISTS "${SCRATCH}/once/${first}.hpp.gch")
        list(APPEND command -Winvalid-pch -include "${SCRATCH}/once/${first}.hpp")
      elseif(EXISTS "${SCRATCH}/once/${first}.hpp.pch")
        list(APPEND command -include-pch "${SCRATCH}/once/${first}.hpp.pch")
      endif()
    endif()
  endforeach()
endif()

if(MODE STREQUAL "header")
  string(MAKE_C_IDENTIFIER "${SOURCE}" name)
  set(unit "${SCRATCH}/${name}.cpp")
  file(WRITE "${unit}" "#include <${SOURCE}>\n#include <${SOURCE}>\n\
#ifndef ENGRAM_VERSION_MAJOR\n#error it includes engram/version.hpp nowhere\n#endif\n")
  list(APPEND command ${WARNINGS} "${unit}")
elseif(MODE STREQUAL "once")
  string(REGEX REPLACE "\\.[a-z]+$" "" unit "${OUTPUT}")
  file(WRITE "${unit}" "#include <${SOURCE}>\n")
  set(command ${common} -x c++-header "${unit}" -o "${OUTPUT}" -MD -MF "${OUTPUT}.d" -MT "${OUTPUT}")
elseif(MODE STREQUAL "cxx17")
  file(WRITE "${SCRATCH}/cxx17.cpp" "#include <${SOURCE}>\n")
  list(APPEND command -std=c++17 "${SCRATCH}/cxx17.cpp")
elseif(MODE STREQUAL "clang")
  find_program(clang clang++)
  if(NOT clang)
    message("skipped: clang++ is not installed")
    return()
  endif()
  list(REMOVE_AT command 0)
  list(PREPEND command "${clang}")
  list(APPEND command ${WARNINGS} -Werror ${FLAGS} "${SOURCE}")
elseif(MODE STREQUAL "host")
  list(APPEND command -M -x c++ "${SOURCE}")
elseif(MODE STREQUAL "twin")
  list(APPEND command -DENGRAM_TWIN "${SOURCE}")
else()
  list(APPEND command "${SOURCE}")
endif()

execute_process(COMMAND ${command} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)

if(MODE STREQUAL "fail")
  file(STRINGS "${SOURCE}" first LIMIT_COUNT 1)
  if(NOT first MATCHES "^// error: (.+)$")
    message(FATAL_ERROR "${SOURCE}: line 1 must be '// error: <expected message fragment>'")
  endif()
  set(expected "${CMAKE_MATCH_1}")
  if(status EQUAL 0)
    message(FATAL_ERROR "${SOURCE} compiles, but must fail with: ${expected}")
  endif()
  # Only what the compiler says counts: the quoted source lines under an error would always hold the fragment.
  string(REGEX REPLACE "\n +[0-9]* *\\|[^\n]*" "" said "\n${output}")
  string(FIND "${said}" "${expected}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "${SOURCE} fails, but without the message: ${expected}\n${output}")
  endif()
elseif(MODE STREQUAL "cxx17")
  string(REGEX MATCH "error: [^\n]*" first "${output}")
  if(status EQUAL 0 OR NOT first MATCHES "\"?engram needs C\\+\\+20: compile with -std=c\\+\\+20")
    message(FATAL_ERROR "${SOURCE} under C++17 should say first that engram needs C++20:\n${output}")
  endif()
elseif(MODE STREQUAL "host" AND status EQUAL 0)
  string(REGEX MATCHALL "[^ \n]*(\\.cuh|/(cuda|cublas|cudnn|curand)[a-zA-Z0-9_]*\\.hp?p?)[ \n]" found "${output}")
  if(NOT output MATCHES "engram/version.hpp" OR found)
    message(FATAL_ERROR "${SOURCE}: a build for the host includes ${found}")
  endif()
elseif(NOT status EQUAL 0)
  message(FATAL_ERROR "${SOURCE} does not compile:\n${output}")
elseif(NOT output STREQUAL "")
  message("${output}")
endif()
