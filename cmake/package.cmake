# find_package(engram 0.1) after `cmake --install build --prefix DIR`.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_DATADIR}/cmake/engram")

install(TARGETS engram EXPORT engramTargets)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/engram" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(EXPORT engramTargets NAMESPACE engram:: DESTINATION "${package_dir}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/engramConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/engramConfig.cmake" INSTALL_DESTINATION "${package_dir}")
# Headers only: any architecture will do. Before 1.0 every minor version may break.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/engramConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/engramConfig.cmake" "${PROJECT_BINARY_DIR}/engramConfigVersion.cmake"
        DESTINATION "${package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
