# The C library, static and shared, with what find_package(ggufbpe) and pkg-config need.
#
#     cmake -S . -B build -DGGUFBPE_LIBRARY=ON -DGGUFBPE_EXTENSION=OFF -DCMAKE_BUILD_TYPE=Release
#           [-DGGUFBPE_SANITIZE=address,undefined]
#     cmake --build build && cmake --install build --prefix /usr/local
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
find_package(Threads REQUIRED)

set(GGUFBPE_SANITIZE "" CACHE STRING "sanitizers, as the compiler's -fsanitize takes them")
file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/include/ggufbpe.h version_lines REGEX "^#define GGUFBPE_VERSION_(MAJOR|MINOR) ")
string(REGEX REPLACE "[^0-9;]" "" version_numbers "${version_lines}")
list(JOIN version_numbers "." GGUFBPE_C_VERSION)
list(GET version_numbers 0 GGUFBPE_C_MAJOR)

add_library(ggufbpe_objects OBJECT ${KERNEL_SOURCES} ${LIBRARY_SOURCES})
target_include_directories(ggufbpe_objects PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/include ${KERNEL})
target_compile_definitions(ggufbpe_objects PRIVATE GGUFBPE_BUILDING)
compile_by_folder(ggufbpe_objects)
set_source_files_properties(${KERNEL}/library/open.cpp PROPERTIES COMPILE_DEFINITIONS "GGUFBPE_BUILD=\"${BUILD}\"")
set_target_properties(ggufbpe_objects PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                      VISIBILITY_INLINES_HIDDEN ON)
if(GGUFBPE_SANITIZE)
  target_compile_options(ggufbpe_objects PRIVATE -fsanitize=${GGUFBPE_SANITIZE} -fno-sanitize-recover=all
                         -fno-omit-frame-pointer -g1)
endif()
foreach(kind static shared)
  string(TOUPPER ${kind} KIND)
  add_library(ggufbpe_${kind} ${KIND} $<TARGET_OBJECTS:ggufbpe_objects>)
  add_library(ggufbpe::${kind} ALIAS ggufbpe_${kind})
  target_include_directories(ggufbpe_${kind} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(ggufbpe_${kind} PRIVATE Threads::Threads)
  set_target_properties(ggufbpe_${kind} PROPERTIES EXPORT_NAME ${kind})
  if(GGUFBPE_SANITIZE)
    target_link_options(ggufbpe_${kind} PRIVATE -fsanitize=${GGUFBPE_SANITIZE})
  endif()
endforeach()
set_target_properties(ggufbpe_shared PROPERTIES OUTPUT_NAME ggufbpe VERSION ${GGUFBPE_C_VERSION} SOVERSION ${GGUFBPE_C_MAJOR})
target_compile_definitions(ggufbpe_static PUBLIC GGUFBPE_STATIC)
if(MSVC)
  set_target_properties(ggufbpe_static PROPERTIES OUTPUT_NAME ggufbpe_static)  # ggufbpe.lib is the DLL's
else()
  set_target_properties(ggufbpe_static PROPERTIES OUTPUT_NAME ggufbpe)
endif()
# The standard library's own templates would be exported as well.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  target_link_options(ggufbpe_shared PRIVATE -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cmake/exports.map)
  set_target_properties(ggufbpe_shared PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cmake/exports.map)
endif()

install(TARGETS ggufbpe_static ggufbpe_shared EXPORT ggufbpe)
install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/include/ggufbpe.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/ggufbpe)
install(EXPORT ggufbpe NAMESPACE ggufbpe:: FILE ggufbpe-targets.cmake DESTINATION ${package})
configure_package_config_file(${CMAKE_CURRENT_SOURCE_DIR}/cmake/ggufbpe-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/ggufbpe-config.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/ggufbpe-config-version.cmake VERSION ${GGUFBPE_C_VERSION}
                                 COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ggufbpe-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/ggufbpe-config-version.cmake DESTINATION ${package})
file(RELATIVE_PATH PREFIX_FROM_PKGCONFIG /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_SOURCE_DIR}/cmake/ggufbpe.pc.in ${CMAKE_CURRENT_BINARY_DIR}/ggufbpe.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ggufbpe.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
