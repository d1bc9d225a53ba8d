# ggufbpe.wasm, which javascript/ is around: the C library as one WebAssembly file without JavaScript of Emscripten's.
#
#     emcmake cmake -S . -B build/wasm -G Ninja -DGGUFBPE_WASM=ON -DGGUFBPE_EXTENSION=OFF -DCMAKE_BUILD_TYPE=Release
#
# scripts/wasm.sh does that. Its functions are those of include/ggufbpe.h.
set(WASM_SOURCES ${KERNEL_SOURCES} ${LIBRARY_SOURCES})
list(FILTER WASM_SOURCES EXCLUDE REGEX "/train\\.cpp$")

file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/include/ggufbpe.h declarations REGEX "^GGUFBPE_API ")
list(TRANSFORM declarations REPLACE ".*(ggufbpe_[a-z_]+)\\(.*" "_\\1" OUTPUT_VARIABLE exported)
list(REMOVE_ITEM exported _ggufbpe_open_file _ggufbpe_open_callback)  # JavaScript reads, asynchronously
list(JOIN exported "," exported)

add_executable(ggufbpe_wasm ${WASM_SOURCES})
target_include_directories(ggufbpe_wasm PRIVATE ${KERNEL} ${CMAKE_CURRENT_SOURCE_DIR}/include)
target_compile_definitions(ggufbpe_wasm PRIVATE GGUFBPE_BUILDING)
compile_by_folder(ggufbpe_wasm)
set_source_files_properties(${KERNEL}/library/open.cpp PROPERTIES COMPILE_DEFINITIONS "GGUFBPE_BUILD=\"${BUILD}\"")
target_compile_options(ggufbpe_wasm PRIVATE -O3 -msimd128 -fwasm-exceptions)
target_link_options(ggufbpe_wasm PRIVATE -O3 -msimd128 -fwasm-exceptions -sSTANDALONE_WASM --no-entry
                    -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB -sTOTAL_STACK=1MB -sMALLOC=emmalloc
                    -sEXPORTED_FUNCTIONS=_malloc,_free,_realloc,${exported})
set_target_properties(ggufbpe_wasm PROPERTIES OUTPUT_NAME ggufbpe SUFFIX .wasm)
