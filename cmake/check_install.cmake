# Installs the build into a scratch prefix, then configures, builds and runs a project that finds engram there.

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\nfailed (${status}):\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE "${SCRATCH}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${SCRATCH}/prefix")
run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${SCRATCH}/build" "-DCMAKE_PREFIX_PATH=${SCRATCH}/prefix"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DENGRAM_EXPECTED_VERSION=${VERSION}"
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
run("${CMAKE_COMMAND}" --build "${SCRATCH}/build")
run("${SCRATCH}/build/consumer")
