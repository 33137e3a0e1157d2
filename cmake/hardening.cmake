# What makes a mistake in reading a hostile file harder to use: addresses that are drawn at random, tables of functions
# that cannot be written, guards on the stack, calls that know how long a buffer is, and jumps to marked places only.
# Linking costs nothing and is done always; what changes the code is for packages (UNSHUFFLE_HARDEN).
include(CheckCXXCompilerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)
add_library(unshuffle_hardening INTERFACE)
if(NOT UNSHUFFLE_SANITIZE AND NOT APPLE)
  target_link_options(unshuffle_hardening INTERFACE -Wl,-z,relro,-z,now)
endif()
if(UNSHUFFLE_HARDEN AND NOT UNSHUFFLE_SANITIZE)
  target_compile_options(unshuffle_hardening INTERFACE -fstack-protector-strong
    $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE$<SEMICOLON>-D_FORTIFY_SOURCE=2>)  # which needs optimisation
  check_cxx_compiler_flag(-fcf-protection=full UNSHUFFLE_HAS_CF_PROTECTION)
  if(UNSHUFFLE_HAS_CF_PROTECTION)
    target_compile_options(unshuffle_hardening INTERFACE -fcf-protection=full)
  endif()
endif()
