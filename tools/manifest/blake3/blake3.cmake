# BLAKE3: the crate blake3 and its C interface, made by cargo into one static library, as RaptorQ is
# (dataplane/coding/raptorq/raptorq.cmake, which see for SLUICE_CARGO and SLUICE_CARGO_VENDOR).
#
# Without a cargo that is new enough, or a crate to be had, the build leaves BLAKE3 out and says so.
# Sets SLUICE_BLAKE3_LIBRARY: what tools/manifest links; empty when BLAKE3 is left out.
#
# A program links this or the library of RaptorQ, not both: each has Rust's standard library in it.
# SPDX-License-Identifier: Apache-2.0
set(crate ${CMAKE_CURRENT_SOURCE_DIR}/manifest/blake3)
set(vendored)
if(SLUICE_CARGO_VENDOR)
  set(vendored --offline --config source.crates-io.replace-with="vendored"
    --config source.vendored.directory="${SLUICE_CARGO_VENDOR}")
endif()

# Why BLAKE3 cannot be built here; empty: it can.
function(sluice_blake3_problem result)
  set(${result} "there is no cargo" PARENT_SCOPE)
  if(NOT SLUICE_CARGO)
    return()
  endif()
  execute_process(COMMAND ${SLUICE_CARGO} --version OUTPUT_VARIABLE version ERROR_QUIET)
  string(REGEX MATCH "[0-9]+\\.[0-9]+" version "${version}")
  if(version VERSION_LESS 1.85)
    set(${result} "cargo ${version} is older than 1.85" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${SLUICE_CARGO} fetch --quiet --locked --manifest-path ${crate}/Cargo.toml ${vendored}
    RESULT_VARIABLE failed ERROR_VARIABLE said)
  if(failed)
    set(${result} "cargo cannot get the crate: ${said}" PARENT_SCOPE)
  else()
    set(${result} "" PARENT_SCOPE)
  endif()
endfunction()

set(can_build ON)
if(NOT DEFINED SLUICE_BLAKE3)
  sluice_blake3_problem(problem)
  if(problem)
    set(can_build OFF)
    message(WARNING "BLAKE3 is left out: ${problem}. --digest blake3 will be refused. ./dev deps installs what is "
      "needed; then configure with -DSLUICE_BLAKE3=ON")
  endif()
endif()
option(SLUICE_BLAKE3 "build BLAKE3 in; needs cargo 1.85 or newer (Debian: cargo-web, rustc-web)" ${can_build})
set(SLUICE_BLAKE3_LIBRARY)
if(NOT SLUICE_BLAKE3)
  message(STATUS "BLAKE3 is left out: SLUICE_BLAKE3 is off")
  return()
endif()
if(NOT SLUICE_CARGO)
  message(FATAL_ERROR "SLUICE_BLAKE3 is on and there is no cargo: run ./dev deps, or configure with -DSLUICE_BLAKE3=OFF")
endif()

set(made ${CMAKE_BINARY_DIR}/cargo-blake3)
set(library ${made}/release/libsluice_blake3.a)
add_custom_command(OUTPUT ${library}
  COMMAND ${SLUICE_CARGO} build --release --locked --quiet --manifest-path ${crate}/Cargo.toml --target-dir ${made} ${vendored}
  DEPENDS ${crate}/Cargo.toml ${crate}/Cargo.lock ${crate}/src/lib.rs
  COMMENT "cargo: the crate blake3" VERBATIM)
add_custom_target(sluice_blake3_crate DEPENDS ${library})
add_library(sluice_blake3 INTERFACE)
add_dependencies(sluice_blake3 sluice_blake3_crate)
target_link_libraries(sluice_blake3 INTERFACE ${library} ${CMAKE_DL_LIBS} Threads::Threads m)
target_compile_definitions(sluice_blake3 INTERFACE SLUICE_BLAKE3)
set(SLUICE_BLAKE3_LIBRARY sluice_blake3)
