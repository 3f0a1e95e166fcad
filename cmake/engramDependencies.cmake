# What the headers need, found the same way in the checkout and by find_package(engram).

# FindBoost is asked rather than Boost's own config file, which is not in every distribution's header-only package.
if(POLICY CMP0167)
  cmake_policy(SET CMP0167 OLD)
endif()

# engram_find(<what readers call it> <Debian's package> <arguments of find_package>...)
#
# The first that is missing is one sentence in engram_MISSING, for the caller to raise.
macro(engram_find title debian)
  if(NOT engram_MISSING)
    find_package(${ARGN} QUIET)
    if(NOT ${ARGV2}_FOUND)
      set(engram_MISSING "engram needs ${title}, which was not found; install it (Debian: ${debian}) or name its prefix in CMAKE_PREFIX_PATH")
    endif()
  endif()
endmacro()

macro(engram_find_dependencies)
  set(engram_MISSING "")
  engram_find("Eigen 3.4" libeigen3-dev Eigen3 3.4 NO_MODULE)
  engram_find("xtensor" libxtensor-dev xtensor)
  engram_find("Boost.Hana" libboost-dev Boost)
  engram_find("nlohmann's JSON" nlohmann-json3-dev nlohmann_json)
  engram_find("zlib" zlib1g-dev ZLIB)
  engram_find("a threads library" libc6-dev Threads)
endmacro()

# Programs of an agent parse command lines and print tables besides.
macro(engram_find_program_dependencies)
  set(engram_MISSING "")
  engram_find("CLI11" libcli11-dev CLI11)
  engram_find("fmt" libfmt-dev fmt)
endmacro()
