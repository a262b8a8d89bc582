# RaptorQ (docs/decisions/0017-erasure-codes.md): the crate raptorq and its C interface, made by cargo into one static
# library. Cargo.lock pins the crate by its checksum. cargo gets it from crates.io the first time. A build without a
# network has it in a folder: target sluice-vendor fills one, and SLUICE_CARGO_VENDOR names it.
#
# Without a cargo that is new enough, or a crate to be had, the build leaves RaptorQ out and says so.
# Sets SLUICE_RAPTORQ_LIBRARY: what dataplane/coding links; empty when RaptorQ is left out.
# SPDX-License-Identifier: Apache-2.0
find_program(SLUICE_CARGO cargo)
set(SLUICE_CARGO_VENDOR "" CACHE PATH "a folder that `cargo vendor` filled: cargo then needs no network")
set(crate ${CMAKE_CURRENT_SOURCE_DIR}/coding/raptorq)
if(SLUICE_CARGO_VENDOR)
  set(vendored --offline --config source.crates-io.replace-with="vendored"
    --config source.vendored.directory="${SLUICE_CARGO_VENDOR}")
endif()

# Why RaptorQ cannot be built here; empty: it can.
function(sluice_raptorq_problem result)
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
if(NOT DEFINED SLUICE_RAPTORQ)
  sluice_raptorq_problem(problem)
  if(problem)
    set(can_build OFF)
    message(WARNING "RaptorQ is left out: ${problem}. --fec raptorq will be refused. ./dev deps installs what is "
      "needed; then configure with -DSLUICE_RAPTORQ=ON")
  endif()
endif()
option(SLUICE_RAPTORQ "build RaptorQ in; needs cargo 1.85 or newer (Debian: cargo-web, rustc-web)" ${can_build})
set(SLUICE_RAPTORQ_LIBRARY)
if(NOT SLUICE_RAPTORQ)
  message(STATUS "RaptorQ is left out: SLUICE_RAPTORQ is off")
  set_source_files_properties(coding/raptorq.cc coding/raptorq_test.cc PROPERTIES HEADER_FILE_ONLY ON)
  return()
endif()
if(NOT SLUICE_CARGO)
  message(FATAL_ERROR "SLUICE_RAPTORQ is on and there is no cargo: run ./dev deps, or configure with -DSLUICE_RAPTORQ=OFF")
endif()

set(made ${CMAKE_BINARY_DIR}/cargo)
set(options --release --locked --quiet --manifest-path ${crate}/Cargo.toml --target-dir ${made} ${vendored})
set(library ${made}/release/libsluice_raptorq.a)
add_custom_command(OUTPUT ${library}
  COMMAND ${SLUICE_CARGO} build ${options}
  DEPENDS ${crate}/Cargo.toml ${crate}/Cargo.lock ${crate}/src/lib.rs ${crate}/src/arena.rs
  COMMENT "cargo: the crate raptorq" VERBATIM)
add_custom_target(sluice_raptorq_crate DEPENDS ${library})
add_custom_target(sluice-vendor
  COMMAND ${SLUICE_CARGO} vendor --locked --quiet --manifest-path ${crate}/Cargo.toml
    --sync ${CMAKE_SOURCE_DIR}/tools/manifest/blake3/Cargo.toml ${CMAKE_BINARY_DIR}/vendor
  VERBATIM)
add_library(sluice_raptorq INTERFACE)
add_dependencies(sluice_raptorq sluice_raptorq_crate)
target_link_libraries(sluice_raptorq INTERFACE ${library} ${CMAKE_DL_LIBS} Threads::Threads m)
target_compile_definitions(sluice_raptorq INTERFACE SLUICE_RAPTORQ)
set(SLUICE_RAPTORQ_LIBRARY sluice_raptorq)
