# graph/bits.cpp once more for other compilers, levels and contractions: no promise of equal bits may hang on one of them.
# A few everywhere; all of them, with the laws of a whole agent, are labelled `long`.

list(JOIN ENGRAM_MACHINE_FLAGS "|" machine)
set(bits "${CMAKE_COMMAND}" "-DMAIN=$<TARGET_OBJECTS:engram_doctest_main>" "-DINCLUDE=${PROJECT_SOURCE_DIR}/include"
    "-DSYSTEM=$<JOIN:$<TARGET_PROPERTY:engram_doctest_main,INCLUDE_DIRECTORIES>,|>"
    "-DSCRATCH=${CMAKE_CURRENT_BINARY_DIR}/bits" "-DMACHINE=${machine}")

function(engram_add_bits_test compiler level contract)
  cmake_parse_arguments(PARSE_ARGV 3 arg "LONG" "SUFFIX" "FLAGS;SOURCES")
  set(name "bits.${compiler}.O${level}.${contract}${arg_SUFFIX}")
  list(TRANSFORM arg_SOURCES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  list(JOIN arg_FLAGS "|" flags)
  list(JOIN arg_SOURCES "|" sources)
  add_test(NAME ${name} COMMAND ${bits} "-DCOMPILER=${compiler}" "-DNAME=${name}" "-DSOURCES=${sources}"
           "-DFLAGS=-O${level}|-ffp-contract=${contract}|${flags}" -P "${CMAKE_CURRENT_SOURCE_DIR}/bits_of.cmake")
  set_tests_properties(${name} PROPERTIES TIMEOUT 900 SKIP_REGULAR_EXPRESSION "^skipped: ")
  if(arg_LONG)
    set_tests_properties(${name} PROPERTIES LABELS long)
  endif()
endfunction()

foreach(few "g++ 1 off" "clang++ 3 fast")
  separate_arguments(few)
  engram_add_bits_test(${few} SOURCES graph/bits.cpp)
endforeach()
# g++ avoids chains of fused operations when it tunes for these processors.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  engram_add_bits_test(g++ 3 fast SUFFIX .znver3 FLAGS -mtune=znver3 SOURCES graph/bits.cpp)
endif()
foreach(compiler g++ clang++)
  foreach(level 1 2 3)
    foreach(contract off on fast)
      engram_add_bits_test(${compiler} ${level} ${contract} LONG SUFFIX .long
                           SOURCES graph/bits.cpp kernels/product.cpp kernels/convolution.cpp laws/in_float.cpp)
    endforeach()
  endforeach()
endforeach()
