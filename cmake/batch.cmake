# cmake -DOUTPUT=batch.cpp -DSOURCES=a.cpp|b.cpp -P batch.cmake: one translation unit of several tests.
#
# Parsing the engine and instantiating it is most of what a test costs the compiler; in one unit both are paid once. What
# follows the last #include of a source stands in a namespace of its own, so that two tests may use a name twice. #line
# keeps the file and line of every message, and of doctest's --source-file.

string(REPLACE "|" ";" SOURCES "${SOURCES}")
set(text "// Made by cmake/batch.cmake.\n")
foreach(source IN LISTS SOURCES)
  file(READ "${source}" content)
  set(content "\n${content}")
  string(FIND "${content}" "\n#include " last REVERSE)
  if(last EQUAL -1)
    message(FATAL_ERROR "${source}: a test includes doctest")
  endif()
  math(EXPR last "${last} + 1")
  string(SUBSTRING "${content}" ${last} -1 rest)
  string(FIND "${rest}" "\n" end)
  math(EXPR end "${last} + ${end} + 1")
  string(SUBSTRING "${content}" 0 ${end} head)
  string(SUBSTRING "${content}" ${end} -1 body)

  string(REGEX MATCHALL "\n#if" opened "${head}")
  string(REGEX MATCHALL "\n#endif" closed "${head}")
  list(LENGTH opened opened)
  list(LENGTH closed closed)
  if(NOT opened EQUAL closed)
    # The condition around the last #include ends after it.
    string(FIND "${body}" "#endif\n" end)
    if(NOT end EQUAL 0)
      message(FATAL_ERROR "${source}: #endif is to follow the last #include at once")
    endif()
    string(APPEND head "#endif\n")
    string(SUBSTRING "${body}" 7 -1 body)
  endif()
  if(body MATCHES "\n(namespace engram {|ENGRAM_REFLECT|BOOST_HANA_ADAPT)")
    message(FATAL_ERROR "${source}: a test that adds to another namespace is a unit of its own; list it as `alone` in tests/CMakeLists.txt")
  endif()
  string(REGEX REPLACE "[^\n]" "" lines "${head}")
  string(LENGTH "${lines}" line)
  string(REGEX REPLACE "^.*/tests/|\\.cpp$" "" name "${source}")
  string(MAKE_C_IDENTIFIER "test_${name}" name)
  # `head` starts with a line break that the source does not have.
  string(APPEND text "#line 1 \"${source}\"")
  string(APPEND text "${head}namespace ${name} {\n#line ${line} \"${source}\"\n${body}}  // namespace ${name}\n")
endforeach()
file(WRITE "${OUTPUT}" "${text}")
