# find_package(engram 0.1) after `cmake --install build --prefix DIR`; `cpack` makes a tarball of the same files.
#
# The installed share/engram mirrors the checkout: `cmake` beside `programs`.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_DATADIR}/engram/cmake")

install(TARGETS engram EXPORT engramTargets)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/engram" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(EXPORT engramTargets NAMESPACE engram:: DESTINATION "${package_dir}")

# What the programs of users' own agents share is installed as source: it must be compiled with their flags.
file(GLOB program_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/programs/*.[ch]pp"
     "${PROJECT_SOURCE_DIR}/programs/*.cu")
install(FILES ${program_sources} DESTINATION "${CMAKE_INSTALL_DATADIR}/engram/programs")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/third_party" DESTINATION "${CMAKE_INSTALL_DATADIR}/engram")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/engramConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/engramConfig.cmake" INSTALL_DESTINATION "${package_dir}")
# Headers only: any architecture will do. Before 1.0 every minor version may break.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/engramConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/engramConfig.cmake" "${PROJECT_BINARY_DIR}/engramConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/engramDependencies.cmake" "${PROJECT_SOURCE_DIR}/cmake/engramProgram.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/ablation.cpp.in" "${PROJECT_SOURCE_DIR}/cmake/ablation.cu.in"
              "${PROJECT_SOURCE_DIR}/cmake/cuda.cmake" "${PROJECT_SOURCE_DIR}/cmake/rpc.cmake"
        DESTINATION "${package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_GENERATOR TGZ)
  set(CPACK_PACKAGE_FILE_NAME "engram-${PROJECT_VERSION}")
  set(CPACK_PACKAGE_VENDOR engram)
  set(CPACK_VERBATIM_VARIABLES ON)
  include(CPack)
endif()
