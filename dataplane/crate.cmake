# A crate of Rust behind a C interface of ours, made by cargo into one static library. Its Cargo.lock pins what it needs
# by checksums; cargo gets that from crates.io the first time. A build without a network has it in a folder: target
# sluice-vendor fills one, and SLUICE_CARGO_VENDOR names it.
#
# Without a cargo that is new enough, or a crate to be had, the build leaves the crate out and says so.
#
# A program links the library of one crate, not of two: each has Rust's standard library in it.
# SPDX-License-Identifier: Apache-2.0
find_program(SLUICE_CARGO cargo)
set(SLUICE_CARGO_VENDOR "" CACHE PATH "a folder that `cargo vendor` filled: cargo then needs no network")
set(SLUICE_CARGO_VENDORED)
if(SLUICE_CARGO_VENDOR)
  set(SLUICE_CARGO_VENDORED --offline --config source.crates-io.replace-with="vendored"
    --config source.vendored.directory="${SLUICE_CARGO_VENDOR}")
endif()

# Why a crate cannot be built here; empty: it can.
function(sluice_crate_problem result folder)
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
    COMMAND ${SLUICE_CARGO} fetch --quiet --locked --manifest-path ${folder}/Cargo.toml ${SLUICE_CARGO_VENDORED}
    RESULT_VARIABLE failed ERROR_VARIABLE said)
  if(failed)
    set(${result} "cargo cannot get the crate: ${said}" PARENT_SCOPE)
  else()
    set(${result} "" PARENT_SCOPE)
  endif()
endfunction()

# sluice_crate(Name folder refused): the crate of this name, in lower case, in a folder with a wrapper of ours. `refused`:
# what users are refused without it. The option SLUICE_NAME turns it on and off. Sets SLUICE_NAME_LIBRARY: what is linked;
# empty when the crate is left out.
function(sluice_crate title folder refused)
  string(TOLOWER ${title} name)
  string(TOUPPER SLUICE_${title} wanted)
  set(${wanted}_LIBRARY "" PARENT_SCOPE)
  set(can_build ON)
  if(NOT DEFINED ${wanted})
    sluice_crate_problem(problem ${folder})
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
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/src/*.rs)
  set(made ${CMAKE_BINARY_DIR}/cargo-${name})
  set(library ${made}/release/libsluice_${name}.a)
  add_custom_command(OUTPUT ${library}
    COMMAND ${SLUICE_CARGO} build --release --locked --quiet --manifest-path ${folder}/Cargo.toml
      --target-dir ${made} ${SLUICE_CARGO_VENDORED}
    DEPENDS ${folder}/Cargo.toml ${folder}/Cargo.lock ${sources}
    COMMENT "cargo: the crate ${name}" VERBATIM)
  add_custom_target(sluice_${name}_crate DEPENDS ${library})
  add_library(sluice_${name} INTERFACE)
  add_dependencies(sluice_${name} sluice_${name}_crate)
  target_link_libraries(sluice_${name} INTERFACE ${library} ${CMAKE_DL_LIBS} Threads::Threads m)
  target_compile_definitions(sluice_${name} INTERFACE ${wanted})
  set(${wanted}_LIBRARY sluice_${name} PARENT_SCOPE)
endfunction()

if(SLUICE_CARGO)
  add_custom_target(sluice-vendor
    COMMAND ${SLUICE_CARGO} vendor --locked --quiet
      --manifest-path ${CMAKE_SOURCE_DIR}/dataplane/coding/raptorq/Cargo.toml
      --sync ${CMAKE_SOURCE_DIR}/control/hash/blake3/Cargo.toml ${CMAKE_BINARY_DIR}/vendor
    VERBATIM)
endif()
