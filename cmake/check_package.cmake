# What somebody does who takes engram into a project, from a clean folder outside the checkout.
#   MODE=find_package, add_subdirectory, fetch_content   build and run a program that needs all that engram::engram
#                    brings; no flag of ours reaches it
#   MODE=ablation    engram_add_ablation() after find_package; the program describes and trains
#   MODE=compiler    the compiler call that README.md prints
#   MODE=tarball     what cpack packs
#   MODE=missing     a library that is not there is one sentence
#   MODE=nvcc        so is ENGRAM_CUDA=ON without nvcc
#   MODE=presets     CMakePresets.json holds what the documentation names, and CMake reads it

cmake_minimum_required(VERSION 3.22)

foreach(variable CXXFLAGS CPPFLAGS LDFLAGS CMAKE_PREFIX_PATH CUDACXX)
  unset(ENV{${variable}})
endforeach()

# What has been compiled before need not be compiled again; the checkout does the same.
find_program(ccache ccache)
if(ccache)
  set(ENV{CMAKE_CXX_COMPILER_LAUNCHER} "${ccache}")
endif()

# run(<out> <command>...): the output, both streams; fails unless the command succeeds.
function(run out)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output
                  WORKING_DIRECTORY "${SCRATCH}")
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nfailed (${status}):\n${output}")
  endif()
  set(${out} "${output}" PARENT_SCOPE)
endfunction()

# refused(<sentence> <command>...): the command fails and says so; a configuration says nothing else.
function(refused sentence)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output
                  WORKING_DIRECTORY "${SCRATCH}")
  list(JOIN ARGN " " command)
  if(status EQUAL 0)
    message(FATAL_ERROR "${command}\nsucceeds, but should say: ${sentence}\n${output}")
  endif()
  string(REGEX REPLACE "[ \n]+" " " said "${output}")
  string(FIND "${said}" "${sentence}" position)
  string(REGEX MATCHALL "CMake (Error|Warning)" problems "${said}")
  list(LENGTH problems count)
  if(position EQUAL -1 OR count GREATER 1)
    message(FATAL_ERROR "${command}\nshould say this once and nothing else: ${sentence}\n${output}")
  endif()
endfunction()

function(check_learnt output)
  if(NOT output MATCHES "one update of [0-9]+ parameters: loss -?[0-9.]+, gradient norm [0-9.]+")
    message(FATAL_ERROR "the example said: ${output}")
  endif()
  message("${output}")
endfunction()

# Every compiler call below `folder` holds the standard, include folders and definitions, and no other flag.
function(check_flags folder)
  file(READ "${folder}/compile_commands.json" calls)
  string(JSON count LENGTH "${calls}")
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON call GET "${calls}" ${i} command)
    separate_arguments(words UNIX_COMMAND "${call}")
    foreach(word IN LISTS words)
      if(word MATCHES "^-" AND NOT word MATCHES "^-(D.*|I.*|isystem|std=(gnu|c)\\+\\+20|o|c)$")
        message(FATAL_ERROR "a flag that the user did not ask for, ${word}, in: ${call}")
      endif()
    endforeach()
  endforeach()
endfunction()

set(no_binaries -DENGRAM_BUILD_TESTS=OFF -DENGRAM_BUILD_PROGRAMS=OFF -DENGRAM_BUILD_EXAMPLES=OFF
                -DENGRAM_BUILD_BENCHMARKS=OFF)
set(configured "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)

file(REMOVE_RECURSE "${SCRATCH}")
file(MAKE_DIRECTORY "${SCRATCH}")

if(MODE MATCHES "^(find_package|add_subdirectory|fetch_content|ablation)$")
  file(COPY "${SOURCE}/examples" "${SOURCE}/tests/package" DESTINATION "${SCRATCH}")
  set(consumer "-DWAY=${MODE}" "-DEXPECTED_VERSION=${VERSION}" "-DEXAMPLES=${SCRATCH}/examples")
  if(MODE MATCHES "^(find_package|ablation)$")
    run(ignored "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${SCRATCH}/prefix")
    # What gRPC's generated code is compiled with is not what users' own is.
    list(APPEND consumer "-DCMAKE_PREFIX_PATH=${SCRATCH}/prefix" -DENGRAM_RPC=OFF)
  else()
    # What a release holds, unpacked or as an archive, without this build folder.
    set(parts CMakeLists.txt LICENSE cmake include programs third_party)
    list(TRANSFORM parts PREPEND "${SOURCE}/" OUTPUT_VARIABLE paths)
    file(COPY ${paths} DESTINATION "${SCRATCH}/engram")
    if(MODE STREQUAL "fetch_content")
      run(ignored "${CMAKE_COMMAND}" -E chdir "${SCRATCH}" "${CMAKE_COMMAND}" -E tar czf engram.tar.gz engram)
      file(REMOVE_RECURSE "${SCRATCH}/engram")
      list(APPEND consumer "-DENGRAM_SOURCE=file://${SCRATCH}/engram.tar.gz")
    else()
      list(APPEND consumer "-DENGRAM_SOURCE=${SCRATCH}/engram")
    endif()
  endif()
  run(ignored "${CMAKE_COMMAND}" -S "${SCRATCH}/package" -B "${SCRATCH}/build" ${configured} ${consumer})
  check_flags("${SCRATCH}/build")
  run(ignored "${CMAKE_COMMAND}" --build "${SCRATCH}/build")
  if(MODE STREQUAL "ablation")
    set(program "${SCRATCH}/build/engram-own_memory")
    run(said "${program}" describe)
    if(NOT said MATCHES "own_memory")
      message(FATAL_ERROR "engram-own_memory describe said: ${said}")
    endif()
    cmake_host_system_information(RESULT processor QUERY OS_PLATFORM)
    if(processor STREQUAL "x86_64")
      run(ignored "${CMAKE_COMMAND}" -DWIDER=ON "${SCRATCH}/build")
      refused("engram::run_program<32>" "${CMAKE_COMMAND}" --build "${SCRATCH}/build" --target engram-wider)
    endif()
    run(ignored "${program}" train --task arbitrary_visuomotor_mapping --steps 960 --evaluate 0 --threads 1 --quiet
        --out "${SCRATCH}/run")
    if(NOT EXISTS "${SCRATCH}/run/checkpoint/latest.safetensors")
      message(FATAL_ERROR "engram-own_memory train left no checkpoint in ${SCRATCH}/run")
    endif()
  else()
    run(said "${SCRATCH}/build/consumer")
    if(NOT said STREQUAL "written and read unpacked {\"sums\":24,\"rate\":0.5}\n")
      message(FATAL_ERROR "tests/package/consumer.cpp said: ${said}")
    endif()
  endif()

elseif(MODE STREQUAL "compiler")
  file(STRINGS "${SOURCE}/README.md" line REGEX "^ *g\\+\\+ .*examples/one_update\\.cpp")
  if(NOT line MATCHES "^ *g\\+\\+ (.*) && \\./one_update$")
    message(FATAL_ERROR "README.md: expected one compiler call with examples/one_update.cpp, found '${line}'")
  endif()
  # What the level makes faster is not asked here, and is what the compiler needs most of its time for.
  string(REPLACE " -O3 " " " line "${CMAKE_MATCH_1}")
  separate_arguments(words UNIX_COMMAND "${line}")
  file(COPY "${SOURCE}/include" "${SOURCE}/examples" DESTINATION "${SCRATCH}")
  run(ignored "${COMPILER}" ${words})
  run(said ./one_update)
  check_learnt("${said}")

elseif(MODE STREQUAL "tarball")
  run(ignored "${CMAKE_CPACK_COMMAND}" --config "${BUILD}/CPackConfig.cmake" -G TGZ -B "${SCRATCH}")
  run(ignored "${CMAKE_COMMAND}" -E tar xzf "engram-${VERSION}.tar.gz")
  set(root "${SCRATCH}/engram-${VERSION}")
  file(GLOB_RECURSE headers RELATIVE "${SOURCE}" "${SOURCE}/include/*.hpp" "${SOURCE}/include/*.cuh")
  foreach(file IN LISTS headers ITEMS share/engram/cmake/engramConfig.cmake
                                      share/engram/cmake/engramConfigVersion.cmake share/doc/engram/LICENSE)
    if(NOT EXISTS "${root}/${file}")
      message(FATAL_ERROR "the tarball lacks ${file}")
    endif()
  endforeach()
  file(GLOB_RECURSE files RELATIVE "${root}" "${root}/*")
  foreach(file IN LISTS files)
    if(NOT file MATCHES "^(include/engram/.*\\.(hpp|cuh)|share/engram/cmake/[A-Za-z.-]+\\.cmake|share/engram/cmake/ablation\\.(cpp|cu)\\.in|share/engram/programs/[a-z_]+\\.([ch]pp|cu)|share/engram/third_party/(README\\.md|LICENSE-Apache-2\\.0|[a-z0-9_/]+\\.proto)|share/doc/engram/LICENSE)$")
      message(FATAL_ERROR "the tarball holds ${file}")
    endif()
    file(READ "${root}/${file}" text)
    foreach(folder IN ITEMS "${SOURCE}/" "${BUILD}")
      string(FIND "${text}" "${folder}" position)
      if(NOT position EQUAL -1)
        message(FATAL_ERROR "${file} of the tarball names ${folder}")
      endif()
    endforeach()
  endforeach()
  list(LENGTH files count)
  message("${count} files")

elseif(MODE STREQUAL "missing")
  set(sentence "which was not found; install it (Debian:")
  foreach(library IN ITEMS "Eigen3|Eigen 3.4" "ZLIB|zlib")
    string(REGEX REPLACE "\\|.*" "" package "${library}")
    string(REGEX REPLACE ".*\\|" "" title "${library}")
    refused("engram needs ${title}, ${sentence}" "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${SCRATCH}/own-${package}"
            ${configured} ${no_binaries} "-DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON")
  endforeach()
  run(ignored "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${SCRATCH}/prefix")
  file(COPY "${SOURCE}/tests/package" DESTINATION "${SCRATCH}")
  foreach(library IN ITEMS "xtensor|xtensor|find_package" "Boost|Boost.Hana|find_package" "CLI11|CLI11|ablation")
    string(REPLACE "|" ";" library "${library}")
    list(GET library 0 package)
    list(GET library 1 title)
    list(GET library 2 way)
    refused("engram needs ${title}, ${sentence}" "${CMAKE_COMMAND}" -S "${SCRATCH}/package" -B "${SCRATCH}/${package}"
            ${configured} "-DWAY=${way}" "-DEXPECTED_VERSION=${VERSION}" "-DCMAKE_PREFIX_PATH=${SCRATCH}/prefix"
            "-DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON")
  endforeach()

elseif(MODE STREQUAL "nvcc")
  # An empty name is a name: CMake then looks nowhere.
  refused("engram: ENGRAM_CUDA=ON needs nvcc, which was not found;" "${CMAKE_COMMAND}" -S "${SOURCE}"
          -B "${SCRATCH}/build" ${configured} ${no_binaries} -DENGRAM_CUDA=ON -DENGRAM_NVCC=)

elseif(MODE STREQUAL "presets")
  foreach(kind IN ITEMS configure build test)
    execute_process(COMMAND "${CMAKE_COMMAND}" -E chdir "${SOURCE}" "${CMAKE_COMMAND}" "--list-presets=${kind}"
                    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    string(REGEX MATCHALL "\"[a-z-]+\"" names "${output}")
    list(JOIN names " " names)
    if(NOT status EQUAL 0 OR NOT names STREQUAL
       "\"release\" \"debug\" \"sanitize\" \"thread-sanitize\" \"clang\" \"cuda\"")
      message(FATAL_ERROR "${kind} presets: ${names}\n${output}")
    endif()
  endforeach()

else()
  message(FATAL_ERROR "check_package: unknown MODE '${MODE}'")
endif()
