# Install rules: `find_package(librepdl)` gives the target repdl::repdl, `pkg-config librepdl` the flags.
include(CMakePackageConfigHelpers)

set(repdl_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/librepdl)

install(TARGETS repdl EXPORT librepdl-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET repdl_cuda_library)
  install(TARGETS repdl_cuda_library LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY librepdl/include/librepdl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h" PATTERN "*.def")
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
install(FILES docs/contract.md DESTINATION ${CMAKE_INSTALL_DATADIR}/librepdl/docs)
if(TARGET repdl_cli)  # and the digests that repdl verify compares with
  install(TARGETS repdl_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(DIRECTORY docs/digests DESTINATION ${CMAKE_INSTALL_DATADIR}/librepdl/docs)
endif()

install(EXPORT librepdl-targets NAMESPACE repdl:: DESTINATION ${repdl_package_dir})
configure_package_config_file(cmake/librepdl-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/librepdl-config.cmake
  INSTALL_DESTINATION ${repdl_package_dir} NO_SET_AND_CHECK_MACRO)
# 0.x: a minor version may break the interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/librepdl-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/librepdl-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/librepdl-config-version.cmake DESTINATION ${repdl_package_dir})

# A static library leaves its own needs to whoever links it.
list(TRANSFORM OpenMP_CXX_LIB_NAMES PREPEND -l OUTPUT_VARIABLE repdl_pc_static)
list(JOIN repdl_pc_static " " repdl_pc_static)
string(APPEND repdl_pc_static " -lstdc++ -lm -ldl")
if(REPDL_WITH_CUDA AND REPDL_CUDA_IN_ONE)
  find_package(CUDAToolkit REQUIRED)
  string(APPEND repdl_pc_static " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lpthread -lrt")
endif()
if(BUILD_SHARED_LIBS)
  set(repdl_pc_libs "")
else()
  set(repdl_pc_libs " ${repdl_pc_static}")
endif()
# Relative to the file itself, so that the tree can be installed or moved anywhere.
file(RELATIVE_PATH repdl_pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/librepdl.pc.in ${CMAKE_CURRENT_BINARY_DIR}/librepdl.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/librepdl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
