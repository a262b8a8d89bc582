# RaptorQ (docs/decisions/0017-erasure-codes.md): the crate raptorq and its C interface, made by cargo into one static
# library. Cargo.lock pins the crate by its checksum. cargo gets it from crates.io the first time. A build without a
# network has it in a folder: target sluice-vendor fills one, and SLUICE_CARGO_VENDOR names it.
#
# Sets SLUICE_RAPTORQ_LIBRARY: what dataplane/coding links; empty when RaptorQ is left out.
# SPDX-License-Identifier: Apache-2.0
find_program(SLUICE_CARGO cargo)
if(SLUICE_CARGO)
  set(has_cargo ON)
else()
  set(has_cargo OFF)
endif()
option(SLUICE_RAPTORQ "build RaptorQ in; needs cargo 1.85 or newer (Debian: cargo-web, rustc-web)" ${has_cargo})
set(SLUICE_CARGO_VENDOR "" CACHE PATH "a folder that `cargo vendor` filled: cargo then needs no network")
set(SLUICE_RAPTORQ_LIBRARY)
if(NOT SLUICE_RAPTORQ)
  message(STATUS "RaptorQ is left out: SLUICE_RAPTORQ is off")
  set_source_files_properties(coding/raptorq.cc coding/raptorq_test.cc PROPERTIES HEADER_FILE_ONLY ON)
  return()
endif()
if(NOT SLUICE_CARGO)
  message(FATAL_ERROR "SLUICE_RAPTORQ is on and there is no cargo: run ./dev deps, or configure with -DSLUICE_RAPTORQ=OFF")
endif()

set(crate ${CMAKE_CURRENT_SOURCE_DIR}/coding/raptorq)
set(made ${CMAKE_BINARY_DIR}/cargo)
set(options --release --locked --quiet --manifest-path ${crate}/Cargo.toml --target-dir ${made})
if(SLUICE_CARGO_VENDOR)
  list(APPEND options --offline --config source.crates-io.replace-with="vendored"
    --config source.vendored.directory="${SLUICE_CARGO_VENDOR}")
endif()
set(library ${made}/release/libsluice_raptorq.a)
add_custom_command(OUTPUT ${library}
  COMMAND ${SLUICE_CARGO} build ${options}
  DEPENDS ${crate}/Cargo.toml ${crate}/Cargo.lock ${crate}/src/lib.rs ${crate}/src/arena.rs
  COMMENT "cargo: the crate raptorq" VERBATIM)
add_custom_target(sluice_raptorq_crate DEPENDS ${library})
add_custom_target(sluice-vendor
  COMMAND ${SLUICE_CARGO} vendor --locked --quiet --manifest-path ${crate}/Cargo.toml ${CMAKE_BINARY_DIR}/vendor
  VERBATIM)
add_library(sluice_raptorq INTERFACE)
add_dependencies(sluice_raptorq sluice_raptorq_crate)
target_link_libraries(sluice_raptorq INTERFACE ${library} ${CMAKE_DL_LIBS} Threads::Threads m)
target_compile_definitions(sluice_raptorq INTERFACE SLUICE_RAPTORQ)
set(SLUICE_RAPTORQ_LIBRARY sluice_raptorq)
