# Flags that the bits depend on, in one place.

# What changes values, or chooses a CPU, is taken out of the flags that a user or a parent project has for all code: librepdl's
# directories have variables of their own. So its objects are the same in every build, and a compiler cache has them. Flags that come
# another way are undone by the options below, which are set per target with PRIVATE and follow them.
set(repdl_foreign Ofast "m(arch|cpu|tune|avx|sse|fma)[^ ]*" "-?use_fast_math" "ffp-contract=[^ ]*" "flto[^ ]*"
  "f(no-)?(fast-math|unsafe-math-optimizations|associative-math|reciprocal-math|finite-math-only|signed-zeros|rounding-math)")
list(JOIN repdl_foreign "|" repdl_foreign)
foreach(language C CXX CUDA)
  foreach(kind "" _DEBUG _RELEASE _RELWITHDEBINFO _MINSIZEREL)
    if(CMAKE_${language}_FLAGS${kind})
      string(REGEX REPLACE " -(${repdl_foreign})" "" flags " ${CMAKE_${language}_FLAGS${kind}}")
      string(STRIP "${flags}" CMAKE_${language}_FLAGS${kind})
    endif()
  endforeach()
endforeach()
get_directory_property(options COMPILE_OPTIONS)
list(FILTER options EXCLUDE REGEX "^-(${repdl_foreign})$")
set_property(DIRECTORY PROPERTY COMPILE_OPTIONS ${options})

add_library(repdl_common INTERFACE)
target_compile_features(repdl_common INTERFACE cxx_std_20)
target_include_directories(repdl_common INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/librepdl/include)
# -Ofast also links a start-up file that sets FTZ and DAZ, and turns on value-changing transformations: all are undone.
# REPDL_FAST, of a target: users wait for it, so it is compiled with -O3; the tools, the oracle and the tests compile sooner.
target_compile_options(repdl_common INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:$<$<NOT:$<CONFIG:Debug>>:-O$<IF:$<BOOL:$<TARGET_PROPERTY:REPDL_FAST>>,3,2>>;-fno-fast-math;-ffp-contract=off;-fno-math-errno;-fno-trapping-math;-fopenmp-simd;-fno-lto>)
if(REPDL_WERROR)
  set(repdl_werror -Werror)
endif()
# Messages name files from the root of the sources, wherever they were built.
target_compile_options(repdl_common INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
# -Wrestrict of g++ 12 fires on std::string's operator+ (GCC bug 105651).
target_compile_options(repdl_common INTERFACE
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
target_compile_options(repdl_common INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;${repdl_werror}>)

# What is the library's own, after repdl_common. Tests, tools and the oracle are not instrumented: the sanitizers are there for
# what users link, and what they need is compiled as for the other builds, once.
add_library(repdl_instrumented INTERFACE)
if(REPDL_SANITIZE)
  target_compile_options(repdl_instrumented INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Og;-g1;-UNDEBUG;-fno-omit-frame-pointer>
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${REPDL_SANITIZE};-fno-sanitize=null,object-size;-fno-sanitize-recover=all>)
endif()

if(REPDL_FUZZ)
  # clang's pointer-overflow, unlike g++'s, reports offsets added to null. Row kernels do that: an operand that a variant does
  # not use is null, moves with the others, and is not followed. So null is made an address like any other.
  target_compile_options(repdl_instrumented INTERFACE -fno-delete-null-pointer-checks)
endif()

# The target's instruction sets, and their flags; the drivers are compiled for every CPU of the target.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  set(repdl_kernel_sets neon)
  set(repdl_neon_flags -march=armv8-a)
  set(repdl_driver_flags -march=armv8-a)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set(repdl_kernel_sets baseline avx2 avx512)
  set(repdl_baseline_flags -march=x86-64)
  set(repdl_avx2_flags -march=x86-64-v3)
  set(repdl_avx512_flags -march=x86-64-v4 -mprefer-vector-width=512)
  set(repdl_driver_flags -march=x86-64)
else()
  message(FATAL_ERROR "librepdl: expected CMAKE_SYSTEM_PROCESSOR x86_64 or aarch64, not '${CMAKE_SYSTEM_PROCESSOR}'")
endif()
set(repdl_wanted_sets ${REPDL_INSTRUCTION_SETS})
if(repdl_wanted_sets STREQUAL "native")
  set(repdl_wanted_sets "")
  list(LENGTH repdl_kernel_sets known)
  if(known GREATER 1 AND NOT CMAKE_CROSSCOMPILING)
    try_run(repdl_native_status repdl_native_compiled SOURCES ${PROJECT_SOURCE_DIR}/cmake/widest_set.c
      RUN_OUTPUT_STDOUT_VARIABLE repdl_native_set)
    set(repdl_native_set "${repdl_native_set}" CACHE INTERNAL "")  # try_run runs once
    list(GET repdl_kernel_sets 0 first)
    set(repdl_wanted_sets ${first} ${repdl_native_set})
  endif()
endif()
if(repdl_wanted_sets)
  list(GET repdl_kernel_sets 0 first)
  foreach(isa ${repdl_wanted_sets})
    if(NOT isa IN_LIST repdl_kernel_sets)
      list(JOIN repdl_kernel_sets ", " known)
      message(FATAL_ERROR "REPDL_INSTRUCTION_SETS: expected native, or some of ${known}, got '${isa}'")
    endif()
  endforeach()
  if(NOT first IN_LIST repdl_wanted_sets)
    message(FATAL_ERROR "REPDL_INSTRUCTION_SETS: expected ${first} among them: CPUs without the others need it")
  endif()
  set(repdl_kernel_sets ${repdl_wanted_sets})
  list(REMOVE_DUPLICATES repdl_kernel_sets)
endif()

# A backend in a shared library of its own (backends/loaded): repdl_backend_library(target sources-or-objects...). It exports
# one symbol.
function(repdl_backend_library target)
  add_library(${target} MODULE ${PROJECT_SOURCE_DIR}/backends/loaded/exported_backend.cpp ${ARGN}
    $<TARGET_OBJECTS:repdl_base>)
  target_link_libraries(${target} PRIVATE repdl_common)
  set(exports ${PROJECT_SOURCE_DIR}/backends/loaded/exports.map)
  target_link_options(${target} PRIVATE -Wl,--version-script=${exports})
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${exports} CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON LIBRARY_OUTPUT_DIRECTORY ${REPDL_LIBRARY_DIR} INTERPROCEDURAL_OPTIMIZATION OFF)
endfunction()

# Objects of the arithmetic for one instruction set: repdl_isa_objects(target isa march-flags... SOURCES files...)
function(repdl_isa_objects target isa)
  cmake_parse_arguments(arg "NOT_INSTRUMENTED" "" "FLAGS;SOURCES" ${ARGN})
  add_library(${target} OBJECT ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE repdl_common)
  if(NOT arg_NOT_INSTRUMENTED)
    target_link_libraries(${target} PRIVATE repdl_instrumented)
  endif()
  target_compile_definitions(${target} PRIVATE REPDL_ISA=${isa})
  target_compile_options(${target} PRIVATE -fno-exceptions ${arg_FLAGS})  # nothing in a kernel throws
  set_target_properties(${target} PROPERTIES REPDL_FAST ON POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON INTERPROCEDURAL_OPTIMIZATION OFF)
endfunction()
