# Crates of Rust behind C interfaces of ours, made by cargo into one static library (dataplane/crates), since a program can
# link Rust's standard library once. Cargo.lock pins what they need by checksums; cargo gets that from crates.io the first
# time. A build without a network has it in a folder: target sluice-vendor fills one, and SLUICE_CARGO_VENDOR names it.
#
# The options SLUICE_RAPTORQ and SLUICE_BLAKE3 leave a crate out. Without a cargo that is new enough, or crates to be had, the
# build leaves both out and says so.
# SPDX-License-Identifier: Apache-2.0
find_program(SLUICE_CARGO cargo)
set(SLUICE_CARGO_VENDOR "" CACHE PATH "a folder that `cargo vendor` filled: cargo then needs no network")
set(SLUICE_CARGO_VENDORED)
if(SLUICE_CARGO_VENDOR)
  set(SLUICE_CARGO_VENDORED --offline --config source.crates-io.replace-with="vendored"
    --config source.vendored.directory="${SLUICE_CARGO_VENDOR}")
endif()
set(SLUICE_CRATES ${CMAKE_SOURCE_DIR}/dataplane/crates)

# Why the crates cannot be built here; empty: they can.
function(sluice_crates_problem result)
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
  execute_process(
    COMMAND ${SLUICE_CARGO} fetch --quiet --locked --manifest-path ${SLUICE_CRATES}/Cargo.toml ${SLUICE_CARGO_VENDORED}
    RESULT_VARIABLE failed ERROR_VARIABLE said)
  if(failed)
    set(${result} "cargo cannot get the crates: ${said}" PARENT_SCOPE)
  else()
    set(${result} "" PARENT_SCOPE)
  endif()
endfunction()

# sluice_crate(Name refused): the option SLUICE_NAME turns it on and off; `refused`: what users are refused without it. Sets
# SLUICE_NAME_LIBRARY: what is linked; empty when the crate is left out. After the last one: sluice_build_crates().
function(sluice_crate title refused)
  string(TOLOWER ${title} name)
  string(TOUPPER SLUICE_${title} wanted)
  set(${wanted}_LIBRARY "" PARENT_SCOPE)
  set(can_build ON)
  if(NOT DEFINED ${wanted})
    sluice_crates_problem(problem)
    if(problem)
      set(can_build OFF)
      message(WARNING "${title} is left out: ${problem}. ${refused} will be refused. ./dev deps installs what is "
        "needed; then configure with -D${wanted}=ON")
    endif()
  endif()
  option(${wanted} "build ${title} in; needs cargo 1.85 or newer (Debian: cargo-web, rustc-web)" ${can_build})
  if(NOT ${wanted})
    message(STATUS "${title} is left out: ${wanted} is off")
    return()
  endif()
  if(NOT SLUICE_CARGO)
    message(FATAL_ERROR "${wanted} is on and there is no cargo: run ./dev deps, or configure with -D${wanted}=OFF")
  endif()
  set_property(GLOBAL APPEND PROPERTY SLUICE_CRATE_FEATURES ${name})
  add_library(sluice_${name} INTERFACE)
  target_link_libraries(sluice_${name} INTERFACE sluice_crates)
  target_compile_definitions(sluice_${name} INTERFACE ${wanted})
  set(${wanted}_LIBRARY sluice_${name} PARENT_SCOPE)
endfunction()

# The library of those that are not left out.
function(sluice_build_crates)
  get_property(features GLOBAL PROPERTY SLUICE_CRATE_FEATURES)
  if(NOT features)
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${SLUICE_CRATES}/src/*.rs)
  list(JOIN features "-" names)
  set(made ${CMAKE_BINARY_DIR}/cargo-${names})
  list(JOIN features "," features)
  set(library ${made}/release/libsluice_crates.a)
  add_custom_command(OUTPUT ${library}
    COMMAND ${SLUICE_CARGO} build --release --locked --quiet --manifest-path ${SLUICE_CRATES}/Cargo.toml
      --features ${features} --target-dir ${made} ${SLUICE_CARGO_VENDORED}
    DEPENDS ${SLUICE_CRATES}/Cargo.toml ${SLUICE_CRATES}/Cargo.lock ${sources}
    COMMENT "cargo: the crates ${features}" VERBATIM)
  add_custom_target(sluice_crates_made DEPENDS ${library})
  add_library(sluice_crates INTERFACE)
  add_dependencies(sluice_crates sluice_crates_made)
  target_link_libraries(sluice_crates INTERFACE ${library} ${CMAKE_DL_LIBS} Threads::Threads m)
endfunction()

if(SLUICE_CARGO)
  add_custom_target(sluice-vendor
    COMMAND ${SLUICE_CARGO} vendor --locked --quiet --manifest-path ${SLUICE_CRATES}/Cargo.toml ${CMAKE_BINARY_DIR}/vendor
    VERBATIM)
endif()
