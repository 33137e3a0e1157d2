// Exported symbols of the shared library: everything declared in include/unshuffle. The rest is hidden.
#pragma once

/// Placed after the name of a namespace; applies to what that namespace block declares.
#define UNSHUFFLE_EXPORT __attribute__((visibility("default")))
